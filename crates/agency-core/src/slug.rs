//! The short name of a task, and finding the task that a user named.
//!
//! Knows nothing of files: the caller passes the names of all tasks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::spelling::{did_you_mean, nearest};

/// `{id}-{slug}` becomes a directory, a branch and a file name. Longer names hit limits of other tools.
pub const MAX_SLUG_LEN: usize = 64;

/// JSON readers keep whole numbers exact up to here. No project has that many tasks.
pub const MAX_ID: u64 = 1 << 53;

/// `[A-Za-z0-9-]+`, at most [`MAX_SLUG_LEN`] bytes, not starting with `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slug(String);

impl Slug {
    /// Checks a text.
    pub fn new(text: &str) -> Result<Slug, SlugError> {
        match problem(text) {
            None => Ok(Slug(text.to_owned())),
            Some(problem) => {
                Err(SlugError { text: text.to_owned(), problem, suggestion: Slug::cleaned(text) })
            }
        }
    }

    /// The slug that is nearest to any text, or `None` if the text has no letter and no digit.
    pub fn cleaned(text: &str) -> Option<Slug> {
        let dashed = text.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let words: Vec<&str> = dashed.split('-').filter(|word| !word.is_empty()).collect();
        let mut joined = words.join("-");
        joined.truncate(MAX_SLUG_LEN);
        let joined = joined.trim_end_matches('-');
        (!joined.is_empty()).then(|| Slug(joined.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn problem(text: &str) -> Option<SlugProblem> {
    if text.is_empty() {
        return Some(SlugProblem::Empty);
    }
    if text.starts_with('-') {
        return Some(SlugProblem::StartsWithDash);
    }
    if let Some(found) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || *c == '-')) {
        return Some(SlugProblem::Character(found));
    }
    (text.len() > MAX_SLUG_LEN).then_some(SlugProblem::TooLong(text.len()))
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Slug {
    type Err = SlugError;
    fn from_str(text: &str) -> Result<Slug, SlugError> {
        Slug::new(text)
    }
}

impl TryFrom<String> for Slug {
    type Error = SlugError;
    fn try_from(text: String) -> Result<Slug, SlugError> {
        Slug::new(&text)
    }
}

impl From<Slug> for String {
    fn from(slug: Slug) -> String {
        slug.0
    }
}

/// Why a text is not a slug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a task name: {problem}", .text.escape_debug())]
pub struct SlugError {
    /// The text.
    pub text: String,
    /// The problem.
    pub problem: SlugProblem,
    /// A slug that the user may use instead.
    pub suggestion: Option<Slug>,
}

impl SlugError {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        match &self.suggestion {
            Some(slug) => format!("try `{slug}`"),
            None => "use letters, digits and dashes, for example `fix-login`".to_owned(),
        }
    }
}

/// A problem with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlugProblem {
    /// It has no characters.
    #[error("it is empty")]
    Empty,
    /// Commands would read it as an option.
    #[error("it starts with `-`")]
    StartsWithDash,
    /// It has a character that is not allowed.
    #[error("it contains `{}`; only letters a to z, digits and `-` are allowed", .0.escape_debug())]
    Character(char),
    /// It has more than [`MAX_SLUG_LEN`] characters.
    #[error("it is {0} characters long; at most {MAX_SLUG_LEN} are allowed")]
    TooLong(usize),
}

/// The name of a task: `12-fix-login`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskName {
    /// The number of the task.
    pub id: TaskId,
    /// Its short name.
    pub slug: Slug,
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}", self.id, self.slug))
    }
}

impl FromStr for TaskName {
    type Err = TaskNameError;

    /// Reads the stem of a task file or the name of a worktree: `12-fix-login`.
    fn from_str(text: &str) -> Result<TaskName, TaskNameError> {
        let not_one = || TaskNameError(text.to_owned());
        let (id, slug) = text.split_once('-').ok_or_else(not_one)?;
        let id = parse_id(id).ok_or_else(not_one)?;
        Ok(TaskName { id, slug: Slug::new(slug).map_err(|_| not_one())? })
    }
}

/// The text is not the name of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not of the form ID-SLUG", .0.escape_debug())]
pub struct TaskNameError(String);

/// Accepts ids only as Agency writes them: `03` and `+3` are slugs or mistakes.
fn parse_id(text: &str) -> Option<TaskId> {
    let number: u64 = text.parse().ok()?;
    (number <= MAX_ID && number.to_string() == text).then_some(TaskId(number))
}

/// Finds the task that the word names: `3`, `3-fix-login`, `fix-login`, or the beginning of exactly one slug.
pub fn resolve<'a>(word: &str, tasks: &'a [TaskName]) -> Result<&'a TaskName, ResolveError> {
    for names in [by_id, by_whole_name, by_slug, by_prefix] {
        let found: Vec<&TaskName> = tasks.iter().filter(|task| names(word, task)).collect();
        match found.as_slice() {
            [] => continue,
            [one] => return Ok(one),
            several => {
                let candidates = several.iter().map(|task| (*task).clone()).collect();
                return Err(ResolveError::Ambiguous { word: word.to_owned(), candidates });
            }
        }
    }
    Err(unknown(word, tasks))
}

fn by_id(word: &str, task: &TaskName) -> bool {
    parse_id(word) == Some(task.id)
}

fn by_whole_name(word: &str, task: &TaskName) -> bool {
    word == task.to_string()
}

fn by_slug(word: &str, task: &TaskName) -> bool {
    word == task.slug.as_str()
}

fn by_prefix(word: &str, task: &TaskName) -> bool {
    !word.is_empty() && task.slug.as_str().starts_with(word)
}

fn unknown(word: &str, tasks: &[TaskName]) -> ResolveError {
    let near = nearest(word, tasks.iter().map(|task| task.slug.as_str()));
    let near = near.into_iter().map(str::to_owned).collect();
    ResolveError::Unknown { word: word.to_owned(), nearest: near }
}

/// Why a word does not name one task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No task fits.
    #[error("no task is called `{}`", .word.escape_debug())]
    Unknown {
        /// The word that the user gave.
        word: String,
        /// Slugs that look similar.
        nearest: Vec<String>,
    },
    /// Several tasks fit.
    #[error("`{word}` could be {}", list_names(.candidates))]
    Ambiguous {
        /// The word that the user gave.
        word: String,
        /// All tasks that fit.
        candidates: Vec<TaskName>,
    },
}

impl ResolveError {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        match self {
            ResolveError::Unknown { nearest, .. } => {
                did_you_mean(nearest).unwrap_or_else(|| "`agency ls` lists all tasks".to_owned())
            }
            ResolveError::Ambiguous { candidates, .. } => {
                let ids = candidates.iter().map(|task| task.id.to_string()).collect();
                format!("use its id: {}", join_first(ids))
            }
        }
    }
}

fn list_names(candidates: &[TaskName]) -> String {
    join_first(candidates.iter().map(TaskName::to_string).collect())
}

/// Names at most this many, and counts the others.
const MOST_LISTED: usize = 5;

fn join_first(mut words: Vec<String>) -> String {
    let others = words.len().saturating_sub(MOST_LISTED);
    if others > 0 {
        words.truncate(MOST_LISTED);
        words.push(format!("{others} more"));
    }
    join_with_or(&words)
}

fn join_with_or(words: &[String]) -> String {
    match words.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn good_names_are_taken_as_they_are() {
        let longest = "a".repeat(MAX_SLUG_LEN);
        for text in ["fix-login", "A", "7", "42-is-fine", "ends-", "Fix-LOGIN-2", longest.as_str()] {
            assert_eq!(Slug::new(text).map(String::from), Ok(text.to_owned()));
        }
    }

    #[test]
    fn bad_names_give_a_reason_and_a_suggestion() {
        let too_long = format!("{}-b", "a".repeat(MAX_SLUG_LEN - 1));
        for (text, expected, hint) in [
            (
                "",
                "`` is not a task name: it is empty",
                "use letters, digits and dashes, for example `fix-login`",
            ),
            ("-rf", "`-rf` is not a task name: it starts with `-`", "try `rf`"),
            (
                "fix login!",
                "`fix login!` is not a task name: it contains ` `; only letters a to z, digits and `-` are allowed",
                "try `fix-login`",
            ),
            (
                "größe",
                "`größe` is not a task name: it contains `ö`; only letters a to z, digits and `-` are allowed",
                "try `gr-e`",
            ),
            (
                "../../etc",
                "`../../etc` is not a task name: it contains `.`; only letters a to z, digits and `-` are allowed",
                "try `etc`",
            ),
            (
                "日本",
                "`日本` is not a task name: it contains `日`; only letters a to z, digits and `-` are allowed",
                "use letters, digits and dashes, for example `fix-login`",
            ),
            (
                too_long.as_str(),
                &format!("`{too_long}` is not a task name: it is 65 characters long; at most 64 are allowed"),
                &format!("try `{}`", "a".repeat(MAX_SLUG_LEN - 1)),
            ),
        ] {
            let error = Slug::new(text).expect_err(text);
            assert_eq!((error.to_string().as_str(), error.hint().as_str()), (expected, hint));
        }
    }

    fn tasks() -> Vec<TaskName> {
        let names = "1-fix-login 2-fix-logout 3-docs 4-docs-api 12-3 13-fix-login 14-1-fix";
        names.split(' ').map(|name| name.parse().expect("a task name")).collect()
    }

    #[test]
    fn a_word_finds_its_task() {
        for (word, expected) in [
            ("1", "1-fix-login"),
            ("1-fix-login", "1-fix-login"),
            ("13-fix-login", "13-fix-login"),
            ("fix-logout", "2-fix-logout"),
            ("fix-logou", "2-fix-logout"),
            // An exact name is not ambiguous, even if a longer name begins with it.
            ("docs", "3-docs"),
            ("docs-", "4-docs-api"),
            // Ids come first, even if a slug looks like an id.
            ("3", "3-docs"),
            ("1-", "14-1-fix"),
        ] {
            assert_eq!(resolve(word, &tasks()).map(TaskName::to_string), Ok(expected.to_owned()), "{word}");
        }
    }

    #[test]
    fn a_word_that_fits_several_tasks_lists_them() {
        for (word, expected, hint) in [
            ("fix-login", "`fix-login` could be 1-fix-login or 13-fix-login", "use its id: 1 or 13"),
            ("fix", "`fix` could be 1-fix-login, 2-fix-logout or 13-fix-login", "use its id: 1, 2 or 13"),
        ] {
            let error = resolve(word, &tasks()).expect_err(word);
            assert_eq!(error.to_string(), expected);
            assert_eq!(error.hint(), hint);
        }
    }

    #[test]
    fn of_many_tasks_only_the_first_are_listed() {
        let tasks: Vec<TaskName> =
            (1..=20).map(|id| format!("{id}-fix-{id}").parse().expect("a name")).collect();
        let error = resolve("fix", &tasks).expect_err("20 fit");
        let expected = "`fix` could be 1-fix-1, 2-fix-2, 3-fix-3, 4-fix-4, 5-fix-5 or 15 more";
        assert_eq!(
            (error.to_string().as_str(), error.hint().as_str()),
            (expected, "use its id: 1, 2, 3, 4, 5 or 15 more")
        );
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
            let error = resolve(word, &tasks()).expect_err(word);
            assert_eq!(error.to_string(), format!("no task is called `{word}`"));
            assert_eq!(error.hint(), hint, "{word}");
        }
    }

    #[test]
    fn only_names_as_agency_writes_them_are_task_names() {
        for text in ["", "1", "1-", "x-fix", "01-fix", "-1-fix", "+1-fix", "1--fix", "1-fix_it"] {
            assert!(text.parse::<TaskName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_above_the_limit_is_not_an_id() {
        assert!("9007199254740992-x".parse::<TaskName>().is_ok());
        assert!("9007199254740993-x".parse::<TaskName>().is_err());
        assert!("18446744073709551615-x".parse::<TaskName>().is_err());
    }

    proptest! {
        #[test]
        fn a_cleaned_name_is_a_name(text in any::<String>()) {
            if let Some(slug) = Slug::cleaned(&text) {
                prop_assert_eq!(Slug::new(slug.as_str()), Ok(slug));
            }
        }

        #[test]
        fn a_task_is_found_by_its_whole_name(id in 0..=MAX_ID, slug in "[A-Za-z0-9][A-Za-z0-9-]{0,63}") {
            let task = TaskName { id: TaskId(id), slug: Slug::new(&slug).expect("a slug") };
            prop_assert_eq!(task.to_string().parse(), Ok(task.clone()));
            prop_assert_eq!(resolve(&task.to_string(), std::slice::from_ref(&task)), Ok(&task));
        }
    }
}
