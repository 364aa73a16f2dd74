//! Shells: terminals in a workspace, beside its agent. Their names, and what runs in them.
//!
//! Not here: the state of an agent. A shell has none.

use crate::slug::Slug;

/// The name of the first shell of a workspace.
pub const USUAL_NAME: &str = "shell";

/// A name that no other shell of the workspace has: `shell`, `shell-2`, `shell-3`.
pub fn free_name(is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u64| format!("{USUAL_NAME}-{number}"));
    let mut names = std::iter::once(USUAL_NAME.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// Splits `fix-login:server` into the task and the shell. A task's own name has no colon.
pub fn split_name(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((task, shell)) => (task, Some(shell)),
        None => (text, None),
    }
}

/// Checks the name of a shell. It follows the rule of slugs.
pub fn check_name(text: &str) -> Result<Slug, String> {
    Slug::new(text).map_err(|err| err.to_string())
}

/// The program that a shell was opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The user's shell, which waits for commands.
    UserShell,
    /// A command of the user's own, which is work as long as it runs.
    Command,
}

/// The process group that runs in a shell and that the user may not want to lose. `first` is the group of the program
/// that the shell was opened with, `foreground` the one that the terminal belongs to now.
pub fn running_group(opened: Opened, first: i32, foreground: Option<i32>) -> Option<i32> {
    match (opened, foreground.filter(|group| *group > 0)) {
        (_, Some(group)) if group != first => Some(group),
        (Opened::Command, _) => Some(first),
        (Opened::UserShell, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_the_first_free_name() {
        let taken = ["shell", "shell-2", "server"];
        assert_eq!(free_name(|_| false), "shell");
        assert_eq!(free_name(|name| taken.contains(&name)), "shell-3");
    }

    #[test]
    fn the_part_after_the_colon_is_the_shell() {
        assert_eq!(split_name("fix-login"), ("fix-login", None));
        assert_eq!(split_name("fix-login:server"), ("fix-login", Some("server")));
        assert_eq!(split_name("1:"), ("1", Some("")));
        assert!(check_name("").is_err() && check_name("a b").is_err() && check_name("db-2").is_ok());
    }

    #[test]
    fn a_prompt_is_not_work_and_everything_else_is() {
        assert_eq!(running_group(Opened::UserShell, 7, Some(7)), None, "the prompt");
        assert_eq!(running_group(Opened::UserShell, 7, Some(9)), Some(9), "a program in the foreground");
        assert_eq!(running_group(Opened::UserShell, 7, None), None, "a terminal without a group");
        assert_eq!(running_group(Opened::UserShell, 7, Some(-1)), None, "no foreground group");
        assert_eq!(running_group(Opened::Command, 7, Some(7)), Some(7), "the command itself");
        assert_eq!(running_group(Opened::Command, 7, Some(9)), Some(9), "what the command runs");
    }
}
