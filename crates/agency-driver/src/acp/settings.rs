//! The mode and the model of a session: what the agent offers, what it is set to, and what a user chose.
//!
//! Agents list both as config options, or in the two older ways of the protocol.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOptions,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conversation::{AgentOption, AgentSetting, Offer, Offers};

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

/// Facts about the mode of a session beyond the setting itself.
#[derive(Clone, Debug, Default)]
pub(super) struct ModeWatch {
    /// The mode in which the agent began, if Agency puts it into another one so that it asks.
    pub(super) began_in: Option<String>,
    /// The words of the options that the user allowed in this turn. One of them may switch the mode.
    pub(super) allowed: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SessionSettings {
    options: Vec<SessionConfigOption>,
    /// Modes and models that the agent lists outside its options.
    modes: Offers,
    models: Offers,
    /// The user's choices while the agent lived, if the agent accepted them.
    chosen: BTreeMap<AgentSetting, String>,
    /// The same for the other options, by their ids.
    chosen_options: BTreeMap<String, Value>,
    pub(super) mode_watch: ModeWatch,
}

impl SessionSettings {
    pub(super) fn with_choices(
        chosen: BTreeMap<AgentSetting, String>,
        chosen_options: BTreeMap<String, Value>,
    ) -> SessionSettings {
        SessionSettings { chosen, chosen_options, ..SessionSettings::default() }
    }

    pub(super) fn chosen(&self, setting: AgentSetting) -> Option<&String> {
        self.chosen.get(&setting)
    }

    pub(super) fn into_chosen(self) -> (BTreeMap<AgentSetting, String>, BTreeMap<String, Value>) {
        (self.chosen, self.chosen_options)
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
        let offer = find_offer(&offers, wanted)?;
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

    /// All options: the mode and the model first, unless the agent lists them among its options.
    pub(super) fn all_options(&self) -> Vec<AgentOption> {
        let listed = |option: &SessionConfigOption| AgentOption {
            id: option.id.to_string(),
            name: option.name.clone(),
            description: option.description.clone(),
            offers: option_offers(option),
        };
        let unlisted = [AgentSetting::Mode, AgentSetting::Model].into_iter();
        let unlisted = unlisted.filter(|setting| self.option(*setting).is_none());
        let unlisted = unlisted.filter_map(|setting| AgentOption::of_setting(setting, self.offers(setting)));
        unlisted.chain(self.options.iter().map(listed)).collect()
    }

    /// Whether the agent lists this option among its options.
    pub(super) fn is_listed(&self, id: &str) -> bool {
        self.options.iter().any(|option| *option.id.0 == *id)
    }

    /// The request that changes an option which is neither the mode nor the model. `None` if the agent does not offer
    /// the value.
    pub(super) fn change_option(&self, id: &str, wanted: &str) -> Option<SettingChange> {
        let option = self.options.iter().find(|option| *option.id.0 == *id)?;
        let offers = option_offers(option).offers;
        let offer = find_offer(&offers, wanted)?;
        let params = match &option.kind {
            SessionConfigKind::Boolean(_) => {
                json!({ "configId": id, "type": "boolean", "value": offer.id == ON })
            }
            _ => json!({ "configId": id, "value": offer.id }),
        };
        Some(SettingChange { method: "session/set_config_option", params })
    }

    /// The requests that set the options again which a user chose in an earlier session.
    pub(super) fn restored_options(&self) -> Vec<(String, SettingChange)> {
        let change = |(id, value): (&String, &Value)| {
            let wanted = option_word(value);
            let option = self.options.iter().find(|option| *option.id.0 == **id)?;
            let is_set = option_offers(option).current.as_ref() == Some(&wanted);
            let change = self.change_option(id, &wanted).filter(|_| !is_set)?;
            Some((id.clone(), change))
        };
        self.chosen_options.iter().filter_map(change).collect()
    }

    /// Records the value of an option that the agent accepted.
    pub(super) fn record_option(&mut self, id: &str, value: &Value) {
        let option = self.options.iter_mut().find(|option| *option.id.0 == *id);
        match option.map(|option| &mut option.kind) {
            Some(SessionConfigKind::Boolean(flag)) => flag.current_value = value.as_bool().unwrap_or(false),
            Some(SessionConfigKind::Select(select)) => select.current_value = option_word(value).into(),
            _ => {}
        }
    }

    pub(super) fn choose_option(&mut self, id: &str, value: Value) {
        self.chosen_options.insert(id.to_owned(), value);
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
        let description = offered["description"].as_str().unwrap_or_default().to_owned();
        Some(Offer { id, name, description })
    };
    Offers { current: current.as_str().map(str::to_owned), offers: list.iter().filter_map(offer).collect() }
}

/// The values of an option that is on or off.
const ON: &str = "on";
const OFF: &str = "off";

/// The value of an option as a user writes it.
pub(super) fn option_word(value: &Value) -> String {
    match value {
        Value::Bool(true) => ON.to_owned(),
        Value::Bool(false) => OFF.to_owned(),
        Value::String(word) => word.clone(),
        other => other.to_string(),
    }
}

/// The offer with this id or, if there is none, with this name.
fn find_offer<'a>(offers: &'a [Offer], wanted: &str) -> Option<&'a Offer> {
    let has_name = |offer: &&Offer| offer.name.eq_ignore_ascii_case(wanted);
    offers.iter().find(|offer| offer.id == wanted).or_else(|| offers.iter().find(has_name))
}

fn option_offers(option: &SessionConfigOption) -> Offers {
    if let SessionConfigKind::Boolean(flag) = &option.kind {
        let offer = |id: &str, name: &str| Offer {
            id: id.to_owned(),
            name: name.to_owned(),
            description: String::new(),
        };
        let current = Some(if flag.current_value { ON } else { OFF }.to_owned());
        return Offers { current, offers: vec![offer(ON, "true"), offer(OFF, "false")] };
    }
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
        description: option.description.clone().unwrap_or_default(),
    };
    Offers { current: Some(select.current_value.to_string()), offers: offered.iter().map(offer).collect() }
}
