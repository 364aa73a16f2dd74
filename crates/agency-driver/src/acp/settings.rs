//! What a session can be set to: modes and models, as config options or in the older ways.

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

/// A request that sets something, without its session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) method: &'static str,
    pub(super) params: Value,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    options: Vec<SessionConfigOption>,
    /// Named by the agent besides its options, or in their place.
    modes: Offers,
    models: Offers,
}

impl Settings {
    /// What an answer or an update says about it; the rest stays as it was.
    pub(super) fn read(&mut self, told: &Value) {
        if let Some(options) = told["configOptions"].as_array() {
            let known = |option: &Value| SessionConfigOption::deserialize(option).ok();
            self.options = options.iter().filter_map(known).collect();
        }
        if let Some(modes) = told["modes"]["availableModes"].as_array() {
            self.modes = offers(&told["modes"]["currentModeId"], modes, "id");
        }
        if let Some(models) = told["models"]["availableModels"].as_array() {
            self.models = offers(&told["models"]["currentModelId"], models, "modelId");
        }
    }

    pub(super) fn set_options(&mut self, options: Vec<SessionConfigOption>) {
        self.options = options;
    }

    /// What a config option sets, if it is one of those that matter here.
    pub(super) fn setting(&self, config: &str) -> Option<AgentSetting> {
        let sets =
            |setting: &AgentSetting| self.option(*setting).is_some_and(|option| *option.id.0 == *config);
        [AgentSetting::Mode, AgentSetting::Model].into_iter().find(sets)
    }

    /// The older way of telling the mode.
    pub(super) fn is_set(&mut self, setting: AgentSetting, id: &str) {
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
            Some(option) => of_option(option),
            None if setting == AgentSetting::Mode => self.modes.clone(),
            None => self.models.clone(),
        }
    }

    /// How to set it to what somebody calls by its id or its name. Absent: there is no such thing.
    pub(super) fn change(&self, setting: AgentSetting, wanted: &str) -> Option<Change> {
        let Offers { offers, .. } = self.offers(setting);
        let is_it = |offer: &&Offer| offer.id == wanted;
        let is_called_so = |offer: &&Offer| offer.name.eq_ignore_ascii_case(wanted);
        let offer = offers.iter().find(is_it).or_else(|| offers.iter().find(is_called_so))?;
        Some(match (self.option(setting), setting) {
            (Some(option), _) => Change {
                method: "session/set_config_option",
                params: json!({ "configId": option.id, "value": offer.id }),
            },
            (None, AgentSetting::Mode) => {
                Change { method: "session/set_mode", params: json!({ "modeId": offer.id }) }
            }
            (None, AgentSetting::Model) => {
                Change { method: "session/set_model", params: json!({ "modelId": offer.id }) }
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

fn offers(current: &Value, list: &[Value], id: &str) -> Offers {
    let offer = |offered: &Value| {
        let id = offered[id].as_str()?.to_owned();
        let name = offered["name"].as_str().unwrap_or(&id).to_owned();
        Some(Offer { id, name })
    };
    Offers { current: current.as_str().map(str::to_owned), offers: list.iter().filter_map(offer).collect() }
}

fn of_option(option: &SessionConfigOption) -> Offers {
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
