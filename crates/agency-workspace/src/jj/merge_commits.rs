//! Which of the commits that a merge would take over are the task's own, and which are not finished.
//!
//! A workspace may stand on what the user has in front of them. That is theirs: as long as it is their working
//! copy, it goes on, and whatever stands on it goes on with it.

use std::fmt;

use crate::jj::repository::{JjRepository, any_of};
use crate::merge::MergeMethod;
use crate::name::WorkspaceName;
use crate::operation::OperationCause;
use crate::tool::ToolError;

/// `qpvuntsm default@ first line`: what a user calls it, who works on it, and what it is about.
const COMMIT_LINE: &str = r#"change_id.shortest(8) ++ " " ++ working_copies.map(|w| w.name() ++ "@").join(",") ++ " " ++ description.first_line() ++ "\n""#;

/// The commits of a merge, as revsets.
pub(super) struct MergeCommits {
    all: String,
    /// Working copies of others among them.
    others_working_copies: String,
    /// Without description.
    undescribed: String,
    /// Without what others work on, and what is below that.
    pub(super) commits: String,
}

/// A commit that is not ready to be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedCommit {
    /// As jj names it.
    pub change: String,
    /// The workspace whose working copy it is, with an `@`.
    pub working_copy: Option<String>,
    pub subject: String,
}

impl MergeCommits {
    /// `described` is one that will have a description by the time of the merge.
    pub(super) fn find(
        repository: &JjRepository,
        name: &WorkspaceName,
        all: &str,
        described: Option<&str>,
    ) -> Result<Self, ToolError> {
        let others: Vec<String> = crate::jj::JjWorkspace::find(repository, name)?.others;
        let others_working_copies = format!("({all}) & ({})", any_of(&others));
        let undescribed = format!("({all}) & description(exact:\"\") ~ {}", described.unwrap_or("none()"));
        let commits = format!("({all}) ~ ::({others_working_copies})");
        Ok(Self { all: all.to_owned(), others_working_copies, undescribed, commits })
    }

    /// What the user should know once it is merged.
    pub(super) fn notes(
        &self,
        repository: &JjRepository,
        how: MergeMethod,
        into: &str,
    ) -> Result<Vec<String>, ToolError> {
        let along = match how {
            MergeMethod::Merge | MergeMethod::Squash | MergeMethod::FastForward => {
                list_commits(repository, &format!("({}) & ::@", self.all))?
            }
            MergeMethod::Rebase => Vec::new(),
        };
        let named: Vec<String> =
            along.iter().map(|one| format!("{} ({})", one.change, one.subject)).collect();
        let along = (!named.is_empty())
            .then(|| format!("{into} also has what your @ stands on now: {}", named.join(", ")));
        let stays = format!("your @ stays where it was; to go on from {into}: jj new {into}");
        Ok(along.into_iter().chain([stays]).collect())
    }

    /// What somebody still works on would change under the target; what has no description nobody could push.
    pub(super) fn refuse_unfinished(
        &self,
        repository: &JjRepository,
        how: MergeMethod,
        into: &str,
    ) -> Result<(), OperationCause> {
        let Self { all, others_working_copies, undescribed, commits } = self;
        let unfinished = match how {
            MergeMethod::Merge | MergeMethod::FastForward => {
                format!("({others_working_copies}) | ({undescribed})")
            }
            // Its own are one commit afterwards, with a description.
            MergeMethod::Squash => {
                format!("({others_working_copies}) | ({undescribed}) & ::({others_working_copies})")
            }
            MergeMethod::Rebase => format!("({undescribed}) & ({commits})"),
        };
        let found = list_commits(repository, &unfinished)?;
        if found.is_empty() {
            return Ok(());
        }
        let can_leave_out = !repository.revisions(&format!("({all}) & ({commits})"))?.is_empty();
        let leaves_out = can_leave_out && found.iter().any(|commit| commit.working_copy.is_some());
        Err(OperationCause::UnfinishedCommits { target: into.to_owned(), commits: found, leaves_out })
    }
}

fn list_commits(repository: &JjRepository, revset: &str) -> Result<Vec<UnfinishedCommit>, ToolError> {
    let lines = repository.jj().read_lines(&["log", "--no-graph", "-r", revset, "-T", COMMIT_LINE])?;
    Ok(lines.iter().filter_map(|line| parse(line)).collect())
}

fn parse(line: &str) -> Option<UnfinishedCommit> {
    let mut fields = line.splitn(3, ' ');
    let (change, names, subject) = (fields.next()?, fields.next()?, fields.next()?);
    let working_copy = (!names.is_empty()).then(|| names.to_owned());
    Some(UnfinishedCommit { change: change.to_owned(), working_copy, subject: subject.to_owned() })
}

impl UnfinishedCommit {
    /// With how to finish it, as a user would.
    pub(crate) fn hint(&self) -> String {
        let change = &self.change;
        match self.working_copy.as_deref() {
            Some("default@") => "`jj commit` finishes it".into(),
            Some(other) => format!("`jj commit` in workspace {} finishes it", other.trim_end_matches('@')),
            None => format!("`jj describe -r {change}` gives it one"),
        }
    }
}

impl fmt::Display for UnfinishedCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, working_copy, subject } = self;
        match (working_copy.as_deref(), subject.as_str()) {
            (Some("default@"), "") => write!(f, "{change}, which is your own working copy @"),
            (Some("default@"), subject) => {
                write!(f, "{change} ({subject}), which is your own working copy @")
            }
            (Some(other), _) => write!(f, "{change}, which is the working copy {other}"),
            (None, _) => write!(f, "{change}, which has no description"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_jj_prints_of_a_commit_is_said_in_words() {
        let said = |line: &str| parse(line).unwrap().to_string();
        assert_eq!(said("qpvuntsm default@ "), "qpvuntsm, which is your own working copy @");
        assert_eq!(said("qpvuntsm default@ a b"), "qpvuntsm (a b), which is your own working copy @");
        assert_eq!(said("qpvuntsm  "), "qpvuntsm, which has no description");
        assert_eq!(said("qpvuntsm 2-on@ x"), "qpvuntsm, which is the working copy 2-on@");
    }
}
