//! The words that a user types in `agency chat`: Agency's own commands, completions, and files.

use std::path::{Path, PathBuf};

use agency_api::chat::SlashCommand;

use crate::image;

/// Agency's own commands, and what they do.
pub(super) const OWN_COMMANDS: [(&str, &str); 8] = [
    ("help", "list these commands"),
    ("show", "NUMBER: print an entry in full; without a number, the last one that was shortened"),
    ("option", "show the options of the session; NAME VALUE changes one"),
    ("model", "show the models; NAME changes the model"),
    ("mode", "show the modes; NAME changes the mode"),
    ("allow", "allow what the agent asks for"),
    ("always", "allow it for the rest of the session"),
    ("deny", "WHY: deny what the agent asks for"),
];

/// A line that is a command of Agency: the name and the rest of the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnCommand<'a> {
    pub(super) name: &'static str,
    pub(super) rest: Option<&'a str>,
}

/// Parses a command of Agency. A command that the agent has too is the agent's, unless it begins with two slashes.
pub(super) fn own_command<'a>(line: &'a str, agents: &[SlashCommand]) -> Option<OwnCommand<'a>> {
    let (word, rest) = line.split_once(' ').map_or((line, None), |(word, rest)| (word, Some(rest.trim())));
    let (name, is_forced) = match word.strip_prefix("//") {
        Some(name) => (name, true),
        None => (word.strip_prefix('/')?, false),
    };
    let (name, _) = OWN_COMMANDS.into_iter().find(|(own, _)| *own == name)?;
    let is_agents = agents.iter().any(|command| command.name == name);
    (is_forced || !is_agents).then_some(OwnCommand { name, rest: rest.filter(|rest| !rest.is_empty()) })
}

/// The lines of `/help`.
pub(super) fn help_lines(agents: &[SlashCommand]) -> Vec<String> {
    let is_agents = |name: &str| agents.iter().any(|command| command.name == name);
    let mut lines = vec!["Agency's commands:".to_owned()];
    lines.extend(OWN_COMMANDS.iter().map(|(name, effect)| {
        let slash = if is_agents(name) { "//" } else { "/" };
        format!("  {:<10} {effect}", format!("{slash}{name}"))
    }));
    if agents.is_empty() {
        lines.push("The agent has listed no commands.".to_owned());
        return lines;
    }
    lines.push("The agent's commands:".to_owned());
    let width = agents.iter().map(|command| command.name.chars().count()).max().unwrap_or(0).min(24) + 1;
    lines.extend(agents.iter().map(|command| {
        let hint = command.hint.as_ref().map(|hint| format!(" [{hint}]")).unwrap_or_default();
        format!("  {:<width$} {}{hint}", format!("/{}", command.name), command.description)
    }));
    lines
}

/// The words that can replace the word before the cursor.
pub(super) fn completions(
    word: &str,
    begins_message: bool,
    agents: &[SlashCommand],
    directory: &Path,
) -> Vec<String> {
    let mut words = match (word.strip_prefix('@'), word.strip_prefix('/')) {
        (Some(path), _) => files(path, directory),
        (_, Some(_)) if begins_message => {
            let own = OWN_COMMANDS.iter().flat_map(|(name, _)| {
                let is_agents = agents.iter().any(|command| command.name == *name);
                [format!("/{name}"), format!("//{name}")].into_iter().skip(usize::from(is_agents))
            });
            let agents = agents.iter().map(|command| format!("/{}", command.name));
            own.chain(agents).filter(|name| name.starts_with(word)).collect()
        }
        _ => Vec::new(),
    };
    // The long form of a command matters only to a user who writes it.
    if !word.starts_with("//") {
        words.retain(|name| !name.starts_with("//"));
    }
    words.sort();
    words.dedup();
    words
}

/// The files that begin with a path, as `@path`. Directories end with a slash.
fn files(path: &str, directory: &Path) -> Vec<String> {
    let (parent, begin) = path.rsplit_once('/').map_or(("", path), |(parent, begin)| (parent, begin));
    let base = match (parent, path.starts_with('/')) {
        ("", true) => PathBuf::from("/"),
        ("", false) => directory.to_path_buf(),
        (parent, _) => directory.join(parent),
    };
    let Ok(entries) = std::fs::read_dir(base) else { return Vec::new() };
    let word = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_hidden = name.starts_with('.') && !begin.starts_with('.');
        let is_plain = !name.chars().any(|c| c.is_whitespace() || c.is_control());
        if is_hidden || !is_plain || !name.starts_with(begin) {
            return None;
        }
        let above = &path[..path.len() - begin.len()];
        let end = if entry.path().is_dir() { "/" } else { "" };
        Some(format!("@{above}{name}{end}"))
    };
    entries.filter_map(Result::ok).filter_map(word).collect()
}

/// The text that all words begin with.
pub(super) fn common_beginning(words: &[String]) -> String {
    let Some(first) = words.first() else { return String::new() };
    let is_common = |(at, c): &(usize, char)| words.iter().all(|word| word[*at..].starts_with(*c));
    first
        .char_indices()
        .take_while(|at| words.iter().all(|word| word.is_char_boundary(at.0)) && is_common(at))
        .map(|(_, c)| c)
        .collect()
}

/// The images that a message names as `@FILE`.
pub(super) fn named_images(text: &str, directory: &Path) -> Vec<PathBuf> {
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    let paths = words.map(|word| directory.join(word.trim_end_matches([',', '.', ';', ':', ')', '?', '!'])));
    paths.filter(|path| image::is_image_name(path) && path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(names: &[&str]) -> Vec<SlashCommand> {
        let command =
            |name: &&str| SlashCommand { name: (*name).into(), description: "does".into(), hint: None };
        names.iter().map(command).collect()
    }

    #[test]
    fn the_agents_command_wins_and_two_slashes_name_agencys() {
        let command = |name, rest| Some(OwnCommand { name, rest });
        assert_eq!(own_command("/model opus", &[]), command("model", Some("opus")));
        assert_eq!(own_command("/model", &agents(&["model"])), None);
        assert_eq!(own_command("//model", &agents(&["model"])), command("model", None));
        assert_eq!(own_command("/compact", &[]), None);
        assert_eq!(own_command("// a comment", &[]), None);
        assert_eq!(own_command("model", &[]), None);
        let help = help_lines(&agents(&["model", "compact"])).join("\n");
        assert!(help.contains("//model") && help.contains(" /mode ") && help.contains("/compact"), "{help}");
    }

    #[test]
    fn commands_and_files_are_completed() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("src")).unwrap();
        for file in ["src/main.rs", "src/map.rs", "README.md", ".hidden"] {
            std::fs::write(home.path().join(file), "").unwrap();
        }
        let complete =
            |word: &str, begins: bool| completions(word, begins, &agents(&["compact", "mode"]), home.path());
        assert_eq!(complete("/mo", true), ["/mode", "/model"]);
        assert_eq!(complete("//mo", true), ["//mode", "//model"]);
        assert_eq!(complete("/co", true), ["/compact"]);
        assert!(complete("/co", false).is_empty() && complete("word", true).is_empty());
        assert_eq!(complete("@s", false), ["@src/"]);
        assert_eq!(complete("@src/ma", false), ["@src/main.rs", "@src/map.rs"]);
        assert_eq!(common_beginning(&complete("@src/m", false)), "@src/ma");
        assert_eq!(complete("@.h", false), ["@.hidden"]);
        assert_eq!(complete("@", false), ["@README.md", "@src/"]);
        assert_eq!(common_beginning(&[]), "");
        assert_eq!(common_beginning(&["ä".into(), "ö".into()]), "");
    }

    #[test]
    fn images_in_a_message_are_files_that_exist() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("shot.png"), "").unwrap();
        let named = named_images("see @shot.png, @none.png and @src", home.path());
        assert_eq!(named, [home.path().join("shot.png")]);
    }
}
