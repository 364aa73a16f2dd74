//! The rules that the detector may use in a measurement. Fewer rules show how well it detects programs that it does not know.

use std::fs;
use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Files of rules that are not for one agent.
const GENERAL: [&str; 2] = ["titles.toml", "zz-generic.toml"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// All shipped rules
    Everything,
    /// Only rules that are not for one agent
    GeneralRules,
    /// No rules, titles or status reports
    Nothing,
}

impl Knowledge {
    pub const ALL: [Knowledge; 3] = [Knowledge::Everything, Knowledge::GeneralRules, Knowledge::Nothing];

    pub fn title(self) -> &'static str {
        match self {
            Knowledge::Everything => "As shipped",
            Knowledge::GeneralRules => "Without rules for single agents",
            Knowledge::Nothing => "Without rules, titles and status reports",
        }
    }

    /// A user's file of rules that turns all other rules off.
    pub fn overrides(self, rules: &Path) -> Result<String, String> {
        let off = |file: &str| match self {
            Knowledge::Everything => false,
            Knowledge::GeneralRules => !GENERAL.contains(&file),
            Knowledge::Nothing => true,
        };
        let mut text = String::new();
        for entry in fs::read_dir(rules).map_err(|err| format!("{}: {err}", rules.display()))? {
            let path = entry.map_err(|err| format!("{}: {err}", rules.display()))?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if file.ends_with(".toml") && off(&file) {
                for name in names(&path)? {
                    text += &format!("[[rule]]\nname = {name:?}\nenabled = false\n\n");
                }
            }
        }
        Ok(text)
    }
}

#[derive(Deserialize)]
struct File {
    rule: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

fn names(path: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
    let file: File = toml_edit::de::from_str(&text).map_err(|err| format!("{}: {err}", path.display()))?;
    Ok(file.rule.into_iter().map(|rule| rule.name).collect())
}
