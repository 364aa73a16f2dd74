//! Finds which commits of a merge are the task's own, and which are not finished.
//!
//! A workspace may be on top of the user's working copy. That commit belongs to the user: as long as they
//! work on it, it changes, and everything on top of it changes with it.

use crate::error::OperationCause;
use crate::integration::MergeMethod;
use crate::jj::repository::{JjRepository, any_of};
use crate::name::WorkspaceName;
use crate::tool::ToolError;
use crate::unfinished_commit::UnfinishedCommit;

/// Prints `qpvuntsm default@ first line`: the change id, the workspaces that work on it, and the subject.
const COMMIT_LINE: &str = r#"change_id.shortest(8) ++ " " ++ working_copies.map(|w| w.name() ++ "@").join(",") ++ " " ++ description.first_line() ++ "\n""#;

/// The commits of a merge, as revsets.
pub(super) struct MergeCommits {
    all: String,
    /// Those that are working copies of other workspaces.
    others_working_copies: String,
    /// Those without a description.
    undescribed: String,
    /// Those that no other workspace works on, or on top of.
    pub(super) commits: String,
}

impl MergeCommits {
    /// `described` is a commit that will have a description by the time of the merge.
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

    /// Returns remarks for the user after the merge.
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
            .then(|| format!("{into} now also has commits below your @: {}", named.join(", ")));
        let stays = format!("your @ did not move; to continue from {into}: jj new {into}");
        Ok(along.into_iter().chain([stays]).collect())
    }

    /// Refuses commits that another workspace still works on, because they would change under the target, and
    /// commits without a description, because the user could not push them.
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
            // Afterwards the task's own commits are one commit with a description.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_line_of_jj_is_described_in_words() {
        let shown = |line: &str| parse(line).unwrap().to_string();
        assert_eq!(shown("qpvuntsm default@ "), "qpvuntsm, which is your own working copy @");
        assert_eq!(shown("qpvuntsm default@ a b"), "qpvuntsm (a b), which is your own working copy @");
        assert_eq!(shown("qpvuntsm  "), "qpvuntsm, which has no description");
        assert_eq!(shown("qpvuntsm 2-on@ x"), "qpvuntsm, which is the working copy 2-on@");
    }
}
