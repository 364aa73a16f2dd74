//! Hooks: reports that an agent sends to a program of Agency at the moment something happens.

use serde::{Deserialize, Serialize};

use crate::activity::{Activity, Why};

/// One call of a hook, as the journal keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// The agent's name of the event: `Stop`.
    pub event: String,
    /// The agent's own id of its session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The tool that it is about.
    #[serde(default)]
    pub tool: Option<String>,
    /// The kind of a notification.
    #[serde(default)]
    pub kind: Option<String>,
    /// The agent's own words.
    #[serde(default)]
    pub message: Option<String>,
}

pub(super) enum HookMeaning {
    /// The agent waits. Strong evidence: the hook fires only then.
    Waits(Why),
    /// The agent works. Weak evidence: an interrupt ends the work and calls no hook.
    Works,
    /// Withdraws earlier hooks.
    Nothing,
    /// Not about the state.
    Aside,
}

impl Hook {
    /// Whether the agent's session has a turn. An agent cannot resume a session without one: Claude Code writes a session
    /// down when it gets the first message, and reports the start, the end and idle prompts of an empty session, too.
    pub fn shows_turn(&self) -> bool {
        !matches!(self.event.as_str(), "SessionStart" | "SessionEnd" | "Notification")
    }

    pub(super) fn meaning(&self) -> HookMeaning {
        match (self.event.as_str(), self.kind.as_deref()) {
            ("PermissionRequest", _) => HookMeaning::Waits(match self.tool.as_deref() {
                Some("AskUserQuestion" | "ExitPlanMode") => Why::Question,
                _ => Why::Permission,
            }),
            ("Notification", Some("permission_prompt")) => HookMeaning::Waits(Why::Permission),
            ("Notification", Some("idle_prompt")) => HookMeaning::Waits(Why::Prompt),
            ("Notification", Some("agent_needs_input" | "elicitation_dialog")) => {
                HookMeaning::Waits(Why::Question)
            }
            ("Stop", _) => HookMeaning::Waits(Why::Finished),
            ("StopFailure", _) => HookMeaning::Waits(Why::Error),
            ("UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PreCompact", _) => {
                HookMeaning::Works
            }
            ("SessionStart" | "SessionEnd", _) => HookMeaning::Nothing,
            _ => HookMeaning::Aside,
        }
    }

    /// The agent's request, in its own words.
    pub(super) fn detail(&self) -> Option<String> {
        match (&self.message, &self.tool) {
            (Some(message), _) => Some(super::status::one_line(message)),
            (None, Some(tool)) if self.event == "PermissionRequest" => {
                Some(format!("Allow {}?", super::status::one_line(tool)))
            }
            _ => None,
        }
    }

    pub(super) fn rule(&self) -> String {
        let words = [Some(&self.event), self.kind.as_ref()].into_iter().flatten();
        super::status::one_line(&words.cloned().collect::<Vec<_>>().join(" "))
    }

    pub(super) fn activity(&self) -> Option<Activity> {
        match self.meaning() {
            HookMeaning::Waits(why) => Some(Activity::Waiting(why)),
            HookMeaning::Works => Some(Activity::Working),
            HookMeaning::Nothing | HookMeaning::Aside => None,
        }
    }
}
