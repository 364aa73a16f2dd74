//! The short name of a task, and its whole name with the id.
//!
//! Not here: which task a user means by a word (see `task_reference`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;

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

    /// Checks the name of a new task. `_` becomes `-`, and a number is refused: it would be read as an id.
    pub fn for_new_task(text: &str) -> Result<Slug, SlugError> {
        let slug = Slug::new(&text.replace('_', "-"))
            .map_err(|error| SlugError { text: text.to_owned(), ..error })?;
        match slug.0.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Err(SlugError {
                text: text.to_owned(),
                problem: SlugProblem::Number,
                suggestion: Slug::cleaned(&format!("task-{text}")),
            }),
            false => Ok(slug),
        }
    }

    /// A name for a task that has only a text: the first words of its first line that say something. `is_taken` says
    /// which names other tasks have.
    pub fn from_text(text: &str, is_taken: impl Fn(&str) -> bool) -> Slug {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let plain: String = line.chars().map(plain_letters).collect::<String>().to_lowercase();
        let words = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let mut name = String::new();
        for word in words.filter(|word| !FILLERS.contains(word)).take(WORDS_IN_NAME) {
            if !name.is_empty() && name.len() + 1 + word.len() > LONGEST_MADE_NAME {
                break;
            }
            name = if name.is_empty() { word.to_owned() } else { format!("{name}-{word}") };
        }
        name.truncate(LONGEST_MADE_NAME);
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            name = format!("task-{name}").trim_end_matches('-').to_owned();
        }
        let numbered = (2..).map(|number: u64| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name));
        Slug(free.unwrap_or(name))
    }

    /// The slug that is nearest to any text, or `None` if the text has no letter and no digit.
    pub fn cleaned(text: &str) -> Option<Slug> {
        let plain: String = text.chars().map(plain_letters).collect();
        let dashed = plain.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
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

/// A name that is made from a text has this many words at most, so that it can be typed.
const WORDS_IN_NAME: usize = 4;
const LONGEST_MADE_NAME: usize = 32;

/// Words that say nothing about a task.
const FILLERS: [&str; 12] =
    ["a", "an", "and", "can", "for", "in", "of", "please", "that", "the", "to", "you"];

/// A letter without its accents. Any other character is itself.
fn plain_letters(c: char) -> String {
    let plain = match c {
        'ä' | 'æ' => "ae",
        'ö' | 'ø' | 'œ' => "oe",
        'ü' => "ue",
        'ß' => "ss",
        'Ä' | 'Æ' => "Ae",
        'Ö' | 'Ø' => "Oe",
        'Ü' => "Ue",
        'à' | 'á' | 'â' | 'ã' | 'å' => "a",
        'ç' => "c",
        'è' | 'é' | 'ê' | 'ë' => "e",
        'ì' | 'í' | 'î' | 'ï' => "i",
        'ñ' => "n",
        'ò' | 'ó' | 'ô' | 'õ' => "o",
        'ù' | 'ú' | 'û' => "u",
        other => return other.to_string(),
    };
    plain.to_owned()
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
    #[error("it contains `{}`; only letters A to Z and a to z, digits and `-` are allowed", .0.escape_debug())]
    Character(char),
    /// Commands would read it as an id.
    #[error("it is a number, and numbers are the ids of tasks")]
    Number,
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
pub(crate) fn parse_id(text: &str) -> Option<TaskId> {
    let number: u64 = text.parse().ok()?;
    (number <= MAX_ID && number.to_string() == text).then_some(TaskId(number))
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
                "`fix login!` is not a task name: it contains ` `; only letters A to Z and a to z, digits and `-` are allowed",
                "try `fix-login`",
            ),
            (
                "größe",
                "`größe` is not a task name: it contains `ö`; only letters A to Z and a to z, digits and `-` are allowed",
                "try `groesse`",
            ),
            (
                "../../etc",
                "`../../etc` is not a task name: it contains `.`; only letters A to Z and a to z, digits and `-` are allowed",
                "try `etc`",
            ),
            (
                "日本",
                "`日本` is not a task name: it contains `日`; only letters A to Z and a to z, digits and `-` are allowed",
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

    #[test]
    fn a_new_task_is_not_named_like_an_id() {
        assert_eq!(Slug::for_new_task("fix_login").map(String::from), Ok("fix-login".to_owned()));
        assert_eq!(Slug::for_new_task("2fa").map(String::from), Ok("2fa".to_owned()));
        let error = Slug::for_new_task("12").expect_err("a number");
        assert_eq!(
            error.to_string(),
            "`12` is not a task name: it is a number, and numbers are the ids of tasks"
        );
        assert_eq!(error.hint(), "try `task-12`");
        assert_eq!(
            Slug::for_new_task("My_Task!").expect_err("!").to_string().split(':').next(),
            Some("`My_Task!` is not a task name")
        );
        assert_eq!(Slug::for_new_task("überall").expect_err("ü").hint(), "try `ueberall`");
    }

    #[test]
    fn a_name_is_made_from_the_text() {
        let made = |text: &str| {
            Slug::from_text(text, |name| ["fix-login", "fix-login-2"].contains(&name)).to_string()
        };
        for (text, expected) in [
            ("Make the login work", "make-login-work"),
            ("please fix login", "fix-login-3"),
            ("\n\n# Prüfe die Größe!\nmore", "pruefe-die-groesse"),
            ("a very long explanation-of-something that goes on and on", "very-long-explanation-something"),
            ("日本語", "task"),
            ("", "task"),
            ("42", "task-42"),
            ("internationalization-and-localization-and-more", "internationalization"),
        ] {
            let made = made(text);
            assert!(Slug::for_new_task(&made).is_ok(), "{made}");
            assert_eq!(made, expected, "{text}");
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
        fn a_whole_name_is_read_as_it_was_written(id in 0..=MAX_ID, slug in "[A-Za-z0-9][A-Za-z0-9-]{0,63}") {
            let task = TaskName { id: TaskId(id), slug: Slug::new(&slug).expect("a slug") };
            prop_assert_eq!(task.to_string().parse(), Ok(task.clone()));
        }
    }
}
