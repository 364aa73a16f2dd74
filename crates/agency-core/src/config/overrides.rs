//! Settings of a single call: environment variables and `--config` options.
//!
//! A variable sets a general key: `AGENCY_MAX_AGENTS` sets `max_agents`. Only files and options can set agents.

use std::collections::BTreeMap;

use super::key::Key;
use super::layer::{Layer, Origin, Setting};
use super::problem::ConfigProblem;
use super::schema::{ConfigKey, GENERAL};
use super::value::Value;
use crate::spelling::{did_you_mean, nearest};

const PREFIX: &str = "AGENCY_";

/// A variable or an option that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct OverrideError {
    /// The variable or option.
    pub origin: Origin,
    /// The problem.
    pub problem: ConfigProblem,
}

/// The variable that sets a general key.
pub fn variable_of(name: &str) -> String {
    format!("{PREFIX}{}", name.to_uppercase())
}

/// Returns the layer of a call's variables, and warnings about names that look like typing errors. An empty variable is
/// ignored.
pub fn from_variables<'a>(
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(Layer, Vec<String>), OverrideError> {
    let mut settings = BTreeMap::new();
    let mut warnings = Vec::new();
    for (variable, value) in variables.into_iter().filter(|(_, value)| !value.is_empty()) {
        let Some(key) = GENERAL.keys.iter().find(|key| variable_of(key.info.name) == variable) else {
            warnings.extend(warn_about(variable));
            continue;
        };
        let (key, origin) =
            (Key::Config(ConfigKey { table: GENERAL.name, key }), Origin::Variable(variable.to_owned()));
        let value = Value::from_words(&key, &[value.to_owned()])
            .map_err(|problem| OverrideError { origin: origin.clone(), problem })?;
        settings.insert(key, Setting { value, origin });
    }
    Ok((Layer { settings, unknown_keys: Vec::new() }, warnings))
}

/// The layer of `--config KEY=VALUE` options; the last one of a key wins.
pub fn from_options<'a>(options: impl IntoIterator<Item = &'a str>) -> Result<Layer, OverrideError> {
    let mut settings = BTreeMap::new();
    for option in options {
        let (key, value) =
            read_option(option).map_err(|problem| OverrideError { origin: Origin::Option, problem })?;
        settings.insert(key, Setting { value, origin: Origin::Option });
    }
    Ok(Layer { settings, unknown_keys: Vec::new() })
}

fn read_option(option: &str) -> Result<(Key, Value), ConfigProblem> {
    let (key, value) = option.split_once('=').ok_or_else(|| ConfigProblem::NoValue(option.to_owned()))?;
    let key = Key::parse(key.trim())?;
    let value = Value::from_words(&key, &[value.trim().to_owned()])?;
    Ok((key, value))
}

fn warn_about(variable: &str) -> Option<String> {
    let name = variable.strip_prefix(PREFIX)?.to_lowercase();
    let near = nearest(&name, GENERAL.keys.iter().map(|key| key.info.name));
    let near: Vec<String> = near.into_iter().map(variable_of).collect();
    did_you_mean(&near).map(|question| format!("${variable} is not a variable of Agency ({question})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn variables_set_general_keys_and_options_win_over_them() {
        let (variables, warnings) = from_variables([
            ("AGENCY_MAX_AGENTS", "3"),
            ("AGENCY_STALE_TIMEOUT", "2m"),
            ("AGENCY_DETACH_KEYS", ""),
            ("AGENCY_MAX_AGENT", "4"),
            ("AGENCY_WHATEVER_ELSE", "x"),
        ])
        .unwrap();
        assert_eq!(
            warnings,
            ["$AGENCY_MAX_AGENT is not a variable of Agency (did you mean `AGENCY_MAX_AGENTS`?)"]
        );
        let options = from_options(["max_agents=5", "agents.mine.start=[\"a\"]", "max_agents = 7"]).unwrap();
        let config = Config::merged([&variables, &options]);
        assert_eq!((config.max_agents, config.stale_timeout.as_secs()), (7, 120));
        assert_eq!(config.detach_keys, "ctrl-q");
        assert_eq!(config.origin(&Key::MAX_AGENTS).to_string(), "--config");
        assert_eq!(config.origin(&Key::STALE_TIMEOUT).to_string(), "$AGENCY_STALE_TIMEOUT");
        assert!(config.agents.find("mine").is_ok());
    }

    #[test]
    fn an_unusable_value_names_its_origin() {
        let refused = from_variables([("AGENCY_MAX_AGENTS", "ten")]).expect_err("no number");
        assert_eq!(
            refused.to_string(),
            "$AGENCY_MAX_AGENTS: `max_agents` must be a whole number, 0 or more, not the string \"ten\""
        );
        for (option, expected) in [
            ("max_agents", "--config: `max_agents` is not KEY=VALUE"),
            ("max_agent=1", "--config: there is no key `max_agent`"),
            ("stale_timeout=1", "--config: `stale_timeout`: `1` has no unit"),
        ] {
            let refused = from_options([option]).expect_err(option);
            assert_eq!(refused.to_string(), expected);
            assert!(refused.problem.hint().is_some());
        }
    }
}
