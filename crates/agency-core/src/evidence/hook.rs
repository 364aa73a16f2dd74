//! Hooks: what an agent tells a program of ours, at the moment it happens.

use serde::{Deserialize, Serialize};

use super::claim::{Activity, Why};

/// One call of a hook, as the journal keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    pub event: String,
    #[serde(default)]
    pub session_id: Option<String>,
    #[serde(default)]
    pub tool: Option<String>,
    #[serde(default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub message: Option<String>,
}

pub(super) enum Told {
    /// Strong: it happens only then.
    Waits(Why),
    /// Weak: an interrupt ends the work and calls no hook.
    Works,
    /// What was said before is over.
    Nothing,
    /// About something else.
    Aside,
}

impl Hook {
    pub(super) fn told(&self) -> Told {
        match (self.event.as_str(), self.kind.as_deref()) {
            ("PermissionRequest", _) => Told::Waits(match self.tool.as_deref() {
                Some("AskUserQuestion" | "ExitPlanMode") => Why::Question,
                _ => Why::Permission,
            }),
            ("Notification", Some("permission_prompt")) => Told::Waits(Why::Permission),
            ("Notification", Some("idle_prompt")) => Told::Waits(Why::Prompt),
            ("Notification", Some("agent_needs_input" | "elicitation_dialog")) => Told::Waits(Why::Question),
            ("Stop", _) => Told::Waits(Why::Finished),
            ("StopFailure", _) => Told::Waits(Why::Error),
            ("UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PreCompact", _) => {
                Told::Works
            }
            ("SessionStart" | "SessionEnd", _) => Told::Nothing,
            _ => Told::Aside,
        }
    }

    /// What it says that it wants.
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
        match self.told() {
            Told::Waits(why) => Some(Activity::Waiting(why)),
            Told::Works => Some(Activity::Working),
            Told::Nothing | Told::Aside => None,
        }
    }
}
