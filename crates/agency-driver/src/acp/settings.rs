//! The mode and the model of a session: what the agent offers, what it is set to, and what a user chose.
//!
//! Agents list both as config options, or in the two older ways of the protocol.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOptions,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conversation::{AgentSetting, Offer, Offers};

fn category(setting: AgentSetting) -> SessionConfigOptionCategory {
    match setting {
        AgentSetting::Mode => SessionConfigOptionCategory::Mode,
        AgentSetting::Model => SessionConfigOptionCategory::Model,
    }
}

/// A request that changes a setting, without its session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SettingChange {
    pub(super) method: &'static str,
    pub(super) params: Value,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SessionSettings {
    options: Vec<SessionConfigOption>,
    /// Modes and models that the agent lists outside its options.
    modes: Offers,
    models: Offers,
    /// The user's choices while the agent lived, if the agent accepted them.
    chosen: BTreeMap<AgentSetting, String>,
}

impl SessionSettings {
    pub(super) fn with_choices(chosen: BTreeMap<AgentSetting, String>) -> SessionSettings {
        SessionSettings { chosen, ..SessionSettings::default() }
    }

    pub(super) fn chosen(&self, setting: AgentSetting) -> Option<&String> {
        self.chosen.get(&setting)
    }

    pub(super) fn into_chosen(self) -> BTreeMap<AgentSetting, String> {
        self.chosen
    }

    pub(super) fn choose(&mut self, setting: AgentSetting, value: String) {
        self.chosen.insert(setting, value);
    }

    /// An agent that leaves a mode by itself is not put back into it.
    pub(super) fn follow_agent(&mut self, setting: AgentSetting, current: &str) {
        if let Some(chosen) = self.chosen.get_mut(&setting) {
            current.clone_into(chosen);
        }
    }

    /// Reads what an answer says about settings. It changes nothing that the answer does not name.
    pub(super) fn read(&mut self, answer: &Value) {
        if let Some(options) = answer["configOptions"].as_array() {
            let known = |option: &Value| SessionConfigOption::deserialize(option).ok();
            self.options = options.iter().filter_map(known).collect();
        }
        if let Some(modes) = answer["modes"]["availableModes"].as_array() {
            self.modes = listed_offers(&answer["modes"]["currentModeId"], modes, "id");
        }
        if let Some(models) = answer["models"]["availableModels"].as_array() {
            self.models = listed_offers(&answer["models"]["currentModelId"], models, "modelId");
        }
    }

    pub(super) fn set_options(&mut self, options: Vec<SessionConfigOption>) {
        self.options = options;
    }

    /// The setting that a config option changes, if it is the mode or the model.
    pub(super) fn setting_of_option(&self, config: &str) -> Option<AgentSetting> {
        let sets =
            |setting: &AgentSetting| self.option(*setting).is_some_and(|option| *option.id.0 == *config);
        [AgentSetting::Mode, AgentSetting::Model].into_iter().find(sets)
    }

    /// Records what a setting is set to now.
    pub(super) fn record_current(&mut self, setting: AgentSetting, id: &str) {
        let offers = match setting {
            AgentSetting::Mode => &mut self.modes,
            AgentSetting::Model => &mut self.models,
        };
        offers.current = Some(id.to_owned());
        let category = Some(category(setting));
        for option in self.options.iter_mut().filter(|option| option.category == category) {
            if let SessionConfigKind::Select(select) = &mut option.kind {
                select.current_value = id.to_owned().into();
            }
        }
    }

    pub(super) fn offers(&self, setting: AgentSetting) -> Offers {
        match self.option(setting) {
            Some(option) => option_offers(option),
            None if setting == AgentSetting::Mode => self.modes.clone(),
            None => self.models.clone(),
        }
    }

    /// The request that changes a setting to an id or a name. `None` if the agent does not offer it.
    pub(super) fn change(&self, setting: AgentSetting, wanted: &str) -> Option<SettingChange> {
        let Offers { offers, .. } = self.offers(setting);
        let has_id = |offer: &&Offer| offer.id == wanted;
        let has_name = |offer: &&Offer| offer.name.eq_ignore_ascii_case(wanted);
        let offer = offers.iter().find(has_id).or_else(|| offers.iter().find(has_name))?;
        Some(match (self.option(setting), setting) {
            (Some(option), _) => SettingChange {
                method: "session/set_config_option",
                params: json!({ "configId": option.id, "value": offer.id }),
            },
            (None, AgentSetting::Mode) => {
                SettingChange { method: "session/set_mode", params: json!({ "modeId": offer.id }) }
            }
            (None, AgentSetting::Model) => {
                SettingChange { method: "session/set_model", params: json!({ "modelId": offer.id }) }
            }
        })
    }

    fn option(&self, setting: AgentSetting) -> Option<&SessionConfigOption> {
        let category = Some(category(setting));
        self.options
            .iter()
            .find(|option| option.category == category && matches!(option.kind, SessionConfigKind::Select(_)))
    }
}

fn listed_offers(current: &Value, list: &[Value], id: &str) -> Offers {
    let offer = |offered: &Value| {
        let id = offered[id].as_str()?.to_owned();
        let name = offered["name"].as_str().unwrap_or(&id).to_owned();
        Some(Offer { id, name })
    };
    Offers { current: current.as_str().map(str::to_owned), offers: list.iter().filter_map(offer).collect() }
}

fn option_offers(option: &SessionConfigOption) -> Offers {
    let SessionConfigKind::Select(select) = &option.kind else { return Offers::default() };
    let offered = match &select.options {
        SessionConfigSelectOptions::Ungrouped(options) => options.iter().collect(),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let offer = |option: &&agent_client_protocol_schema::v1::SessionConfigSelectOption| Offer {
        id: option.value.to_string(),
        name: option.name.clone(),
    };
    Offers { current: Some(select.current_value.to_string()), offers: offered.iter().map(offer).collect() }
}
