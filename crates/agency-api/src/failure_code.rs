//! The codes of failures: short stable words that programs can match.
//!
//! Not the text for people, which may change at any time: that is [`crate::Failure`].

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

macro_rules! failure_codes {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal;)*) => {
        /// The reason of a failure, as one stable word. A code never changes its meaning. A newer version may have more
        /// codes: treat a code that you do not know as `failed`.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
        pub enum FailureCode {
            /// Something else went wrong: `message` and `causes` say what.
            #[default]
            #[serde(rename = "failed")]
            Failed,
            $(
                $(#[doc = $doc])*
                #[serde(rename = $code)]
                $name,
            )*
        }

        impl FailureCode {
            /// Every code.
            pub const ALL: &[FailureCode] = &[FailureCode::Failed, $(FailureCode::$name),*];

            /// The word in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    FailureCode::Failed => "failed",
                    $(FailureCode::$name => $code,)*
                }
            }

            /// The code of this word; `Failed` for a word of a newer version.
            pub fn from_word(word: &str) -> FailureCode {
                match word {
                    $($code => FailureCode::$name,)*
                    _ => FailureCode::Failed,
                }
            }

            /// The meaning of the code, for the reference.
            pub fn description(self) -> &'static str {
                match self {
                    FailureCode::Failed => "Something else went wrong: `message` and `causes` say what.",
                    $(FailureCode::$name => concat!($($doc),*).trim_ascii(),)*
                }
            }
        }
    };
}

failure_codes! {
    /// Agency itself failed: a bug, or a state that it cannot explain.
    Internal = "internal";
    /// The operating system refused to read or write a file, a directory or a socket.
    IoError = "io_error";
    /// The command line was not understood (exit code 2), or an argument has a value that cannot be used.
    InvalidArgument = "invalid_argument";
    /// This agent, driver or kind of project cannot do that.
    Unsupported = "unsupported";
    /// There is no such turn, trash entry, queued message, orphan, connection or file.
    NotFound = "not_found";
    /// A name fits several tasks or trash entries.
    AmbiguousName = "ambiguous_name";
    /// A task, branch, workspace or file of that name exists already.
    AlreadyExists = "already_exists";
    /// It changed after it was shown or checked. Look again, then retry.
    ChangedMeanwhile = "changed_meanwhile";
    /// The user cancelled it: by Ctrl-C, by a stop, or by answering no.
    Cancelled = "cancelled";
    /// The command needs a terminal, and standard input or output is not one.
    NeedsTerminal = "needs_terminal";
    /// No answer came in time.
    TimedOut = "timed_out";
    /// No daemon is running, and none could be started.
    NoDaemon = "no_daemon";
    /// The daemon ended before it answered. It may have done what was asked.
    DaemonLost = "daemon_lost";
    /// The daemon and the caller do not understand each other, or a newer version of Agency wrote the state directory.
    VersionMismatch = "version_mismatch";
    /// The directory is not in a project, or the project is gone.
    NotAProject = "not_a_project";
    /// The project has tasks or live agents, so Agency cannot be taken out of it.
    ProjectInUse = "project_in_use";
    /// There is no such task.
    TaskNotFound = "task_not_found";
    /// The task file cannot be parsed.
    TaskFileBroken = "task_file_broken";
    /// The status of the task does not allow it: a draft cannot be merged, and a merged task cannot be synced.
    WrongStatus = "wrong_status";
    /// The task is in the middle of another operation: starting, stopping, merging, being removed. Retry in a moment.
    Busy = "busy";
    /// The removal of the task was interrupted and could not be finished. Another removal tries again.
    RemovalUnfinished = "removal_unfinished";
    /// The task has no live agent.
    NotRunning = "not_running";
    /// An agent is running and has to be stopped or restarted first.
    AgentRunning = "agent_running";
    /// A program runs in a terminal beside the agent, and would be ended. Close the terminal first, or force it.
    ProgramRunning = "program_running";
    /// The agent is in the middle of a turn. Wait for its end, or interrupt it.
    AgentWorking = "agent_working";
    /// The task runs on another host that shares this home directory.
    RunningElsewhere = "running_elsewhere";
    /// As many agents are running as `max_agents` allows.
    MaxAgentsReached = "max_agents_reached";
    /// The machine has no capacity for another agent: open files, terminals or processes.
    OutOfCapacity = "out_of_capacity";
    /// No agent of that name is configured, or it has no command for this driver.
    AgentNotConfigured = "agent_not_configured";
    /// The program of the agent was not found.
    AgentNotInstalled = "agent_not_installed";
    /// The command of a task, or a program that Agency needs, was not found or cannot be executed.
    CommandNotFound = "command_not_found";
    /// The agent could not be started.
    StartFailed = "start_failed";
    /// A setup command of the workspace failed. The task and its workspace stay.
    SetupFailed = "setup_failed";
    /// The agent's process did not end, not even by SIGKILL.
    StopFailed = "stop_failed";
    /// The connection to the agent failed or was lost.
    ConnectionFailed = "connection_failed";
    /// The agent did not take the message, or Agency did not send it.
    NotDelivered = "not_delivered";
    /// The request is not open: a user or a rule has answered it, or the agent has withdrawn it.
    NoOpenRequest = "no_open_request";
    /// A configuration file, key or value cannot be used.
    InvalidConfig = "invalid_config";
    /// The configuration key has no value.
    ConfigNotSet = "config_not_set";
    /// The project's files want to run something to which the user has not agreed: `agency trust`.
    NotTrusted = "not_trusted";
    /// `[mcp]` in the user's configuration does not allow an agent to do that.
    NotAllowed = "not_allowed";
    /// Files in the workspace are not committed.
    UncommittedWork = "uncommitted_work";
    /// Commits in the workspace are not merged.
    UnmergedWork = "unmerged_work";
    /// The work conflicts with other work, or conflicts in it are not resolved.
    Conflict = "conflict";
    /// The target has all of the work already.
    NothingToMerge = "nothing_to_merge";
    /// The target has commits that the workspace does not have.
    NotFastForward = "not_fast_forward";
    /// There is no such branch, bookmark, tag or commit, or no branch to merge into.
    BranchNotFound = "branch_not_found";
    /// Changed or untracked files in the target's checkout are in the way.
    TargetDirty = "target_dirty";
    /// The workspace does not exist, or is not the one that Agency made.
    WorkspaceMissing = "workspace_missing";
    /// The path leads out of the workspace, also if only a symbolic link does.
    OutsideWorkspace = "outside_workspace";
    /// git or jj failed or is not installed.
    VcsFailed = "vcs_failed";
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailureCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| FailureCode::from_word(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_documented_words_in_snake_case() {
        let mut words: Vec<&str> = FailureCode::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), FailureCode::ALL.len());
        for code in FailureCode::ALL {
            let word = code.as_str();
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{word}");
            assert!(!word.starts_with('_') && !word.ends_with('_') && !word.contains("__"), "{word}");
            assert!(code.description().ends_with(['.', '`']), "{word}: {}", code.description());
            assert_eq!(FailureCode::from_word(word), *code);
            assert_eq!(serde_json::to_value(code).unwrap(), word);
            assert_eq!(serde_json::from_value::<FailureCode>(word.into()).unwrap(), *code);
        }
    }

    #[test]
    fn an_unknown_code_is_read_as_failed() {
        let code: FailureCode = serde_json::from_str(r#""flux_capacitor_missing""#).unwrap();
        assert_eq!(code, FailureCode::Failed);
    }
}
