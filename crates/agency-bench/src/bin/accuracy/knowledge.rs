//! What the detector may know while it is measured: the fewer rules, the more it shows how it does with programs
//! that nobody has recorded.

use std::fs;
use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Rules that name no agent.
const GENERAL: [&str; 2] = ["titles.toml", "zz-generic.toml"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// As it is shipped
    Everything,
    /// No rules made for one agent
    GeneralRules,
    /// No rules at all, and no agent reports its status
    Nothing,
}

impl Knowledge {
    pub const ALL: [Knowledge; 3] = [Knowledge::Everything, Knowledge::GeneralRules, Knowledge::Nothing];

    pub fn title(self) -> &'static str {
        match self {
            Knowledge::Everything => "As shipped",
            Knowledge::GeneralRules => "Without rules of its own for any agent",
            Knowledge::Nothing => "Without any rule, any title and any status report",
        }
    }

    /// A user's file of rules that leaves only what may be known.
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
