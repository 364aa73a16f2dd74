//! The signs in lists: emoji, or ASCII where the terminal or the locale shows no others.

use agency_api::view::WorkspaceStatus;
use agency_core::config::MarkStyle;
use agency_core::rail;

/// Which signs to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    Emoji,
    Ascii,
}

impl Marks {
    /// `setting` is the user's `ui.marks`. An option of this command (`--config ui.marks=ascii`) wins over it.
    pub(crate) fn choose(setting: &str, options: &[String]) -> Marks {
        let option = options.iter().rev().find_map(|option| {
            let (key, value) = option.split_once('=')?;
            (key.trim() == "ui.marks").then_some(value.trim())
        });
        match option.unwrap_or(setting).parse().unwrap_or_default() {
            MarkStyle::Ascii => Marks::Ascii,
            MarkStyle::Emoji => Marks::Emoji,
            MarkStyle::Auto => Marks::detect(|name| std::env::var(name).ok()),
        }
    }

    fn detect(variable: impl Fn(&str) -> Option<String>) -> Marks {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let is_simple = variable("TERM").is_some_and(|term| matches!(term.as_str(), "dumb" | "linux"));
        // The first variable that is set decides, as in the C library. Many containers set none and show everything.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
        let is_ascii = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            !locale.contains("utf-8") && !locale.contains("utf8")
        });
        if is_simple || is_ascii { Marks::Ascii } else { Marks::Emoji }
    }

    /// The sign of a workspace.
    pub(crate) fn of_workspace(self, status: WorkspaceStatus) -> &'static str {
        let status = match status {
            WorkspaceStatus::Idle => rail::WorkspaceStatus::Idle,
            WorkspaceStatus::Running => rail::WorkspaceStatus::Running,
            WorkspaceStatus::NeedsInput => rail::WorkspaceStatus::NeedsInput,
            WorkspaceStatus::Stale => rail::WorkspaceStatus::Stale,
            WorkspaceStatus::Completed => rail::WorkspaceStatus::Completed,
            WorkspaceStatus::Errored => rail::WorkspaceStatus::Errored,
        };
        match self {
            Marks::Emoji => status.mark(),
            Marks::Ascii => status.ascii_mark(),
        }
    }

    /// The sign between the parts of a line.
    pub(crate) fn separator(self) -> &'static str {
        match self {
            Marks::Emoji => " · ",
            Marks::Ascii => ", ",
        }
    }

    /// The sign of a conflict.
    pub(crate) fn conflict(self) -> &'static str {
        match self {
            Marks::Emoji => "⚔",
            Marks::Ascii => "x",
        }
    }

    /// The sign before a task that another task's agent started.
    pub(crate) fn branch(self) -> &'static str {
        match self {
            Marks::Emoji => "└ ",
            Marks::Ascii => "- ",
        }
    }

    /// The sign in place of a text that does not fit.
    pub(crate) fn ellipsis(self) -> &'static str {
        match self {
            Marks::Emoji => "…",
            Marks::Ascii => "..",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(variables: &[(&str, &str)]) -> Marks {
        Marks::detect(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_users_setting_wins_over_the_terminal_and_an_option_over_the_setting() {
        assert_eq!(Marks::choose("ascii", &[]), Marks::Ascii);
        assert_eq!(Marks::choose("emoji", &[]), Marks::Emoji);
        let options = ["ui.marks=emoji".to_owned(), "max_agents=3".to_owned()];
        assert_eq!(Marks::choose("ascii", &options), Marks::Emoji);
    }

    #[test]
    fn the_terminal_and_the_locale_choose_the_signs() {
        assert_eq!(detected(&[]), Marks::Emoji);
        assert_eq!(detected(&[("LANG", "de_DE.UTF-8"), ("TERM", "xterm-256color")]), Marks::Emoji);
        assert_eq!(detected(&[("LANG", "C")]), Marks::Ascii);
        assert_eq!(detected(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "POSIX")]), Marks::Ascii);
        assert_eq!(detected(&[("LANG", "C"), ("LC_CTYPE", "C.utf8"), ("LC_ALL", "")]), Marks::Emoji);
        assert_eq!(detected(&[("TERM", "dumb"), ("LANG", "C.UTF-8")]), Marks::Ascii);
        assert_eq!(detected(&[("TERM", "linux")]), Marks::Ascii);
    }
}
