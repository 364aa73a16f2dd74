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
