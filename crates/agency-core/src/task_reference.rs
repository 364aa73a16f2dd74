//! Finds the task that a user named, in one project or in all of them.
//!
//! Knows nothing of files: the caller passes the names of all tasks.
//!
//! Invariant: ids and prefixes never leave the user's project, unless the user names another one. The ids of two
//! projects are alike, and `agency rm 3` in the wrong directory must not remove a task elsewhere.

use crate::ids::TaskId;
use crate::slug::{TaskName, parse_id};
use crate::spelling::{did_you_mean, nearest};

/// A list that is longer than a few lines is not read.
const MOST_CANDIDATES: usize = 5;

/// A project with its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectTasks {
    /// The path of its root directory.
    pub root: String,
    /// All of its tasks.
    pub tasks: Vec<NamedTask>,
}

/// A task as users name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTask {
    /// Its id and its slug.
    pub name: TaskName,
    /// Whether its work has landed. A later task of the same slug hides it.
    pub is_merged: bool,
}

/// The task that a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundTask {
    /// The position of its project in the list that the caller passed.
    pub project: usize,
    /// Its id.
    pub task: TaskId,
}

/// Finds the task that the word names: `3`, `3-fix-login`, `fix-login` or the beginning of exactly one slug in the
/// project `here`; `shop/fix-login` in the project whose path ends with `shop`; or a whole slug that only one project
/// has.
pub fn resolve(
    word: &str,
    here: Option<usize>,
    projects: &[ProjectTasks],
) -> Result<FoundTask, ResolveError> {
    let search = Search { here, projects };
    // `agency new fix_login` makes the slug `fix-login`.
    match word.rsplit_once('/') {
        Some((project, name)) => search.in_named_project(word, project, &name.replace('_', "-")),
        None => search.here_or_elsewhere(&word.replace('_', "-")),
    }
}

struct Search<'a> {
    here: Option<usize>,
    projects: &'a [ProjectTasks],
}

impl Search<'_> {
    fn in_named_project(&self, word: &str, project: &str, name: &str) -> Result<FoundTask, ResolveError> {
        let named: Vec<usize> =
            self.indexes().filter(|index| ends_with(self.root(*index), project)).collect();
        if named.is_empty() {
            return Err(self.unknown_project(project, name));
        }
        let fitting = named.iter().flat_map(|index| self.fitting(*index, name)).collect();
        self.choose(word, fitting).unwrap_or_else(|| {
            let slugs = named.iter().flat_map(|index| self.slugs(*index));
            let near = nearest(name, slugs).into_iter().map(|slug| format!("{project}/{slug}")).collect();
            Err(ResolveError::Unknown { word: word.to_owned(), nearest: near, place: Place::NamedProject })
        })
    }

    /// Suggests projects that have the task, or else projects with a similar name.
    fn unknown_project(&self, project: &str, name: &str) -> ResolveError {
        let labels: Vec<String> = self.indexes().map(|index| self.label(index)).collect();
        let near = nearest(project, labels.iter().map(String::as_str));
        let has_task = |label: &&str| {
            let index = labels.iter().position(|known| known == label).unwrap_or_default();
            !self.fitting(index, name).is_empty()
        };
        let with_task: Vec<&str> = near.iter().copied().filter(has_task).collect();
        let near = if with_task.is_empty() { near } else { with_task };
        let nearest = near.into_iter().map(|label| format!("{label}/{name}")).collect();
        ResolveError::UnknownProject { project: project.to_owned(), nearest }
    }

    fn here_or_elsewhere(&self, word: &str) -> Result<FoundTask, ResolveError> {
        let fitting = self.here.map(|here| self.fitting(here, word)).unwrap_or_default();
        if let Some(found) = self.choose(word, fitting) {
            return found;
        }
        let elsewhere = self.indexes().filter(|index| Some(*index) != self.here);
        let fitting =
            elsewhere.flat_map(|index| self.fitting_by(index, word, &[by_whole_name, by_slug])).collect();
        self.choose(word, fitting).unwrap_or_else(|| Err(self.unknown(word)))
    }

    /// The tasks of a project that the word fits best: an id before a whole name, a slug, and the beginning of slugs.
    fn fitting(&self, project: usize, word: &str) -> Vec<FoundTask> {
        self.fitting_by(project, word, &[by_id, by_whole_name, by_slug, by_prefix])
    }

    fn fitting_by(&self, project: usize, word: &str, ways: &[fn(&str, &TaskName) -> bool]) -> Vec<FoundTask> {
        let tasks = &self.projects[project].tasks;
        let by = |fits: &fn(&str, &TaskName) -> bool| -> Vec<FoundTask> {
            let fitting = tasks.iter().filter(|task| fits(word, &task.name));
            fitting.map(|task| FoundTask { project, task: task.name.id }).collect()
        };
        ways.iter().map(by).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The only task; or the only one that is not merged, if all have the same slug. `None` without tasks.
    fn choose(&self, word: &str, fitting: Vec<FoundTask>) -> Option<Result<FoundTask, ResolveError>> {
        let slugs_differ =
            fitting.windows(2).any(|pair| self.task(pair[0]).name.slug != self.task(pair[1]).name.slug);
        let open: Vec<FoundTask> = match slugs_differ {
            true => fitting.clone(),
            false => fitting.iter().copied().filter(|found| !self.task(*found).is_merged).collect(),
        };
        match (fitting.as_slice(), open.as_slice()) {
            ([], _) => None,
            ([one], _) | (_, [one]) => Some(Ok(*one)),
            (several, _) => {
                let candidates = several.iter().map(|found| self.exact_name(*found)).collect();
                Some(Err(ResolveError::Ambiguous { word: word.to_owned(), candidates }))
            }
        }
    }

    fn unknown(&self, word: &str) -> ResolveError {
        let here = self.here.into_iter().flat_map(|here| self.slugs(here));
        let mut near: Vec<String> = nearest(word, here).into_iter().map(str::to_owned).collect();
        if near.is_empty() && parse_id(word).is_none() {
            near = self.near_elsewhere(word);
        }
        let place = match self.here {
            Some(_) => Place::ThisProject,
            None if parse_id(word).is_some() => Place::IdWithoutProject,
            None => Place::NoProject,
        };
        ResolveError::Unknown { word: word.to_owned(), nearest: near, place }
    }

    fn near_elsewhere(&self, word: &str) -> Vec<String> {
        let elsewhere = self.indexes().filter(|index| Some(*index) != self.here);
        let named: Vec<(usize, &str)> =
            elsewhere.flat_map(|index| self.slugs(index).map(move |slug| (index, slug))).collect();
        let similar = nearest(word, named.iter().map(|(_, slug)| *slug));
        let is_near = |slug: &str| (!word.is_empty() && slug.starts_with(word)) || similar.contains(&slug);
        let near = named.iter().filter(|(_, slug)| is_near(slug));
        let mut near: Vec<String> =
            near.map(|(index, slug)| format!("{}/{slug}", self.label(*index))).collect();
        near.sort();
        near.dedup();
        near.truncate(3);
        near
    }

    /// A name that means this task and no other: with its project if that is not the user's.
    fn exact_name(&self, found: FoundTask) -> String {
        let name = &self.task(found).name;
        match self.here == Some(found.project) {
            true => name.to_string(),
            false => format!("{}/{name}", self.label(found.project)),
        }
    }

    fn label(&self, project: usize) -> String {
        let roots: Vec<&str> = self.projects.iter().map(|project| project.root.as_str()).collect();
        project_label(project, &roots)
    }

    fn indexes(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.projects.len()
    }

    fn root(&self, project: usize) -> &str {
        &self.projects[project].root
    }

    fn slugs(&self, project: usize) -> impl Iterator<Item = &str> {
        self.projects[project].tasks.iter().map(|task| task.name.slug.as_str())
    }

    fn task(&self, found: FoundTask) -> &NamedTask {
        let tasks = &self.projects[found.project].tasks;
        let position = tasks.iter().position(|task| task.name.id == found.task).unwrap_or_default();
        &tasks[position]
    }
}

/// The short name of a project: the last directories of its path, as many as no other project has.
pub fn project_label(project: usize, roots: &[&str]) -> String {
    let parts: Vec<&str> = roots[project].split('/').filter(|part| !part.is_empty()).collect();
    let mut labels = (0..parts.len()).rev().map(|start| parts[start..].join("/"));
    let is_unique = |label: &String| roots.iter().filter(|root| ends_with(root, label)).count() == 1;
    labels.find(is_unique).unwrap_or_else(|| roots[project].to_owned())
}

/// The position of the project that a user names by the end of its path.
pub fn resolve_project(word: &str, roots: &[&str]) -> Result<usize, ResolveError> {
    let named: Vec<usize> = (0..roots.len()).filter(|index| ends_with(roots[*index], word)).collect();
    match named.as_slice() {
        [one] => Ok(*one),
        [] => {
            let labels: Vec<String> = (0..roots.len()).map(|index| project_label(index, roots)).collect();
            let near = nearest(word, labels.iter().map(String::as_str));
            let nearest = near.into_iter().map(str::to_owned).collect();
            Err(ResolveError::UnknownProject { project: word.to_owned(), nearest })
        }
        several => Err(ResolveError::AmbiguousProject {
            project: word.to_owned(),
            candidates: several.iter().map(|index| project_label(*index, roots)).collect(),
        }),
    }
}

/// Whether the last directories of the path have these names.
fn ends_with(root: &str, names: &str) -> bool {
    let mut parts = root.rsplit('/').filter(|part| !part.is_empty());
    let mut wanted = names.rsplit('/').filter(|part| !part.is_empty()).peekable();
    wanted.peek().is_some() && wanted.all(|name| parts.next() == Some(name))
}

fn by_id(word: &str, name: &TaskName) -> bool {
    parse_id(word) == Some(name.id)
}

fn by_whole_name(word: &str, name: &TaskName) -> bool {
    word == name.to_string()
}

fn by_slug(word: &str, name: &TaskName) -> bool {
    word == name.slug.as_str()
}

fn by_prefix(word: &str, name: &TaskName) -> bool {
    !word.is_empty() && name.slug.as_str().starts_with(word)
}

/// Why a word does not name one task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No task fits.
    #[error("no task is called `{}`", .word.escape_debug())]
    Unknown {
        /// The word that the user gave.
        word: String,
        /// Names that look similar.
        nearest: Vec<String>,
        /// Where the task was searched first.
        place: Place,
    },
    /// No project has that name.
    #[error("no project is called `{}`", .project.escape_debug())]
    UnknownProject {
        /// The word that the user gave.
        project: String,
        /// Names that look similar, with the name of the task if the user gave one.
        nearest: Vec<String>,
    },
    /// Several projects have that name.
    #[error("`{project}` could be one of {} projects", .candidates.len())]
    AmbiguousProject {
        /// The word that the user gave.
        project: String,
        /// A name for each project that fits.
        candidates: Vec<String>,
    },
    /// Several tasks fit.
    #[error("`{word}` could be one of {} tasks", .candidates.len())]
    Ambiguous {
        /// The word that the user gave.
        word: String,
        /// A name for each task that fits.
        candidates: Vec<String>,
    },
}

/// Where a task was searched first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the project that the user is in.
    ThisProject,
    /// In the project that the user named.
    NamedProject,
    /// The user is in no project.
    NoProject,
    /// The user is in no project, and gave an id.
    IdWithoutProject,
}

impl ResolveError {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        match self {
            ResolveError::Unknown { nearest, place, .. } => {
                did_you_mean(nearest).unwrap_or_else(|| place.hint().to_owned())
            }
            ResolveError::UnknownProject { nearest, .. } => {
                did_you_mean(nearest).unwrap_or_else(|| "`agency projects` lists all projects".to_owned())
            }
            ResolveError::Ambiguous { candidates, .. }
            | ResolveError::AmbiguousProject { candidates, .. } => {
                let shown = candidates.iter().take(MOST_CANDIDATES).map(String::as_str);
                let more = candidates.len().saturating_sub(MOST_CANDIDATES);
                let more = (more > 0).then(|| format!("and {more} more"));
                let lines: Vec<&str> =
                    std::iter::once("name one of them:").chain(shown).chain(more.as_deref()).collect();
                lines.join("\n      ")
            }
        }
    }
}

impl Place {
    fn hint(self) -> &'static str {
        match self {
            Place::ThisProject => "`agency ls` lists all tasks",
            Place::NamedProject | Place::NoProject => "`agency ls --all` lists the tasks of all projects",
            Place::IdWithoutProject => {
                "every project has its own ids: name the project too, for example `agency attach shop/3`"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/p/shop: 1-fix 2-docs(merged)`, one project a line.
    fn projects(text: &str) -> Vec<ProjectTasks> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let (root, tasks) = line.split_once(':').expect("root: tasks");
                ProjectTasks { root: root.to_owned(), tasks: tasks.split_whitespace().map(task).collect() }
            })
            .collect()
    }

    fn task(word: &str) -> NamedTask {
        let name = word.strip_suffix("(merged)").unwrap_or(word);
        NamedTask { name: name.parse().expect("a task name"), is_merged: word != name }
    }

    fn desk() -> Vec<ProjectTasks> {
        projects(
            "/home/me/shop: 1-fix-login 2-fix-logout 3-docs 4-docs-api 12-x3 13-fix-login 14-1-fix
             /home/me/blog: 1-theme 2-comments 3-search
             /srv/old/shop: 1-cart 2-comments
             /srv/tools: 7-linter 8-linter(merged) 9-many-a 10-many-b 11-many-c 12-many-d 13-many-e 14-many-f",
        )
    }

    #[track_caller]
    fn finds(here: Option<usize>, word: &str, project: usize, id: u64) {
        assert_eq!(resolve(word, here, &desk()), Ok(FoundTask { project, task: TaskId(id) }), "{word}");
    }

    #[track_caller]
    fn refuses(here: Option<usize>, word: &str, message: &str, hint: &str) {
        let error = resolve(word, here, &desk()).expect_err(word);
        assert_eq!((error.to_string().as_str(), error.hint().as_str()), (message, hint), "{word}");
    }

    #[test]
    fn a_word_finds_a_task_of_the_users_project() {
        finds(Some(0), "1", 0, 1);
        finds(Some(0), "1-fix-login", 0, 1);
        finds(Some(0), "13-fix-login", 0, 13);
        finds(Some(0), "fix-logout", 0, 2);
        finds(Some(0), "fix-logou", 0, 2);
        // An exact name is not ambiguous, even if a longer name begins with it.
        finds(Some(0), "docs", 0, 3);
        finds(Some(0), "docs-", 0, 4);
        finds(Some(0), "1-", 0, 14);
        finds(Some(0), "fix_logout", 0, 2);
    }

    #[test]
    fn a_whole_slug_that_one_project_has_is_enough_everywhere() {
        finds(None, "theme", 1, 1);
        finds(Some(0), "theme", 1, 1);
        finds(None, "1-theme", 1, 1);
        finds(Some(3), "3-docs", 0, 3);
        // The user's own project wins.
        finds(Some(1), "comments", 1, 2);
        finds(Some(2), "comments", 2, 2);
    }

    #[test]
    fn ids_and_prefixes_stay_in_the_users_project() {
        refuses(Some(1), "7", "no task is called `7`", "`agency ls` lists all tasks");
        refuses(
            Some(1),
            "fix-logou",
            "no task is called `fix-logou`",
            "did you mean `me/shop/fix-login` or `me/shop/fix-logout`?",
        );
        let hint = "every project has its own ids: name the project too, for example `agency attach shop/3`";
        refuses(None, "3", "no task is called `3`", hint);
        refuses(None, "them", "no task is called `them`", "did you mean `blog/theme`?");
    }

    #[test]
    fn a_project_is_named_by_the_end_of_its_path() {
        finds(None, "blog/theme", 1, 1);
        finds(Some(0), "blog/1", 1, 1);
        finds(Some(0), "blog/them", 1, 1);
        finds(None, "/home/me/blog/theme", 1, 1);
        finds(None, "old/shop/1", 2, 1);
        // Only one of the two projects has it.
        finds(None, "shop/cart", 2, 1);
        finds(None, "shop/docs", 0, 3);
        refuses(None, "blgo/theme", "no project is called `blgo`", "did you mean `blog/theme`?");
        refuses(
            None,
            "nowhere/at/all",
            "no project is called `nowhere/at`",
            "`agency projects` lists all projects",
        );
        refuses(None, "/theme", "no project is called ``", "`agency projects` lists all projects");
        refuses(Some(1), "shop/crat", "no task is called `shop/crat`", "did you mean `shop/cart`?");
        refuses(
            None,
            "shop/banana",
            "no task is called `shop/banana`",
            "`agency ls --all` lists the tasks of all projects",
        );
    }

    #[test]
    fn a_word_that_fits_several_tasks_lists_names_that_work() {
        refuses(
            Some(0),
            "fix",
            "`fix` could be one of 3 tasks",
            "name one of them:\n      1-fix-login\n      2-fix-logout\n      13-fix-login",
        );
        refuses(
            None,
            "comments",
            "`comments` could be one of 2 tasks",
            "name one of them:\n      blog/2-comments\n      old/shop/2-comments",
        );
        refuses(
            None,
            "shop/1",
            "`shop/1` could be one of 2 tasks",
            "name one of them:\n      me/shop/1-fix-login\n      old/shop/1-cart",
        );
        refuses(
            Some(3),
            "many",
            "`many` could be one of 6 tasks",
            "name one of them:\n      9-many-a\n      10-many-b\n      11-many-c\n      12-many-d\n      13-many-e\n      and 1 more",
        );
        for name in ["blog/2-comments", "old/shop/2-comments", "me/shop/1-fix-login"] {
            assert!(resolve(name, None, &desk()).is_ok(), "{name}");
        }
    }

    #[test]
    fn projects_are_named_by_the_end_of_their_paths() {
        let roots = ["/home/me/shop", "/home/me/blog", "/srv/old/shop"];
        let labels: Vec<String> = (0..3).map(|index| project_label(index, &roots)).collect();
        assert_eq!(labels, ["me/shop", "blog", "old/shop"]);
        assert_eq!(resolve_project("blog", &roots), Ok(1));
        assert_eq!(resolve_project("/srv/old/shop", &roots), Ok(2));
        let error = resolve_project("shop", &roots).expect_err("two projects");
        assert_eq!(error.to_string(), "`shop` could be one of 2 projects");
        assert_eq!(error.hint(), "name one of them:\n      me/shop\n      old/shop");
        assert_eq!(resolve_project("blgo", &roots).expect_err("none").hint(), "did you mean `blog`?");
    }

    #[test]
    fn a_merged_task_does_not_hide_an_open_one_of_the_same_slug() {
        finds(Some(3), "linter", 3, 7);
        finds(None, "linter", 3, 7);
        finds(Some(3), "8", 3, 8);
        let both = projects("/p: 1-fix(merged) 2-fix(merged)");
        assert!(resolve("fix", Some(0), &both).is_err());
        // The beginning of a name says less than a name: both could be meant.
        let differ = projects("/p: 1-fix-a(merged) 2-fix-b");
        assert!(resolve("fix", Some(0), &differ).is_err());
    }

    #[test]
    fn a_word_that_fits_no_task_suggests_similar_names() {
        for (word, hint) in [
            ("dcos", "did you mean `docs`?"),
            ("fix-logot", "did you mean `fix-logout` or `fix-login`?"),
            ("banana", "`agency ls` lists all tasks"),
            ("99", "`agency ls` lists all tasks"),
            ("01", "`agency ls` lists all tasks"),
            ("", "`agency ls` lists all tasks"),
        ] {
            refuses(Some(0), word, &format!("no task is called `{word}`"), hint);
        }
        refuses(
            None,
            "banana",
            "no task is called `banana`",
            "`agency ls --all` lists the tasks of all projects",
        );
    }
}
