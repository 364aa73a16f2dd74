//! The mode and the model of an agent: what the user chose, what the agent reports, and what it offers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::conversation::{AgentSetting, ModeMeaning, Offer, Offers};

#[derive(Clone, Debug, Default)]
pub(super) struct StreamSettings {
    /// Our requests that the agent has not answered.
    pending: BTreeMap<String, SettingRequest>,
    current: BTreeMap<AgentSetting, String>,
    /// The user's choices while the agent lived.
    chosen: BTreeMap<AgentSetting, String>,
    /// Settings that a user chose in an earlier run and that this run must set again.
    to_restore: Vec<AgentSetting>,
    /// Absent until the agent lists them.
    models: Option<Vec<Offer>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SettingRequest {
    Set(AgentSetting, String),
    /// The answer lists what the agent offers.
    Initialize,
}

/// The result of one of our requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SettingResult {
    pub(super) request: String,
    pub(super) outcome: Result<(), String>,
    /// A line for the conversation.
    pub(super) notice: Option<String>,
    /// The mode that the agent accepted.
    pub(super) mode: Option<String>,
}

/// The modes that Claude Code has had for long. It does not list its modes, and it accepts others too.
const MODES: [&str; 4] = ["default", "acceptEdits", "plan", "bypassPermissions"];

impl StreamSettings {
    /// The settings of a run that must first restore what a user chose in an earlier run.
    pub(super) fn restoring(chosen: BTreeMap<AgentSetting, String>) -> StreamSettings {
        StreamSettings { to_restore: chosen.keys().copied().collect(), chosen, ..StreamSettings::default() }
    }

    pub(super) fn into_chosen(self) -> BTreeMap<AgentSetting, String> {
        self.chosen
    }

    /// The requests that restore earlier choices, with their ids.
    pub(super) fn owed_requests(&self) -> impl Iterator<Item = (String, Value)> {
        let request = |setting: &AgentSetting| {
            let wanted = self.chosen.get(setting)?;
            Some((restore_id(*setting), StreamSettings::request(*setting, wanted)))
        };
        self.to_restore.iter().filter_map(request)
    }

    pub(super) fn request(setting: AgentSetting, wanted: &str) -> Value {
        match setting {
            AgentSetting::Mode => json!({ "subtype": "set_permission_mode", "mode": wanted }),
            AgentSetting::Model => json!({ "subtype": "set_model", "model": wanted }),
        }
    }

    /// Whether we have not asked yet what the agent offers.
    pub(super) fn needs_offers(&self) -> bool {
        let is_initialize = |request: &SettingRequest| *request == SettingRequest::Initialize;
        self.models.is_none() && !self.pending.values().any(is_initialize)
    }

    pub(super) fn offers(&self, setting: AgentSetting) -> Offers {
        let plain = |id: &str| Offer { id: id.to_owned(), name: id.to_owned(), description: String::new() };
        let offers = match setting {
            AgentSetting::Mode => MODES.iter().map(|mode| plain(mode)).collect(),
            AgentSetting::Model => self.models.clone().unwrap_or_default(),
        };
        Offers { current: self.current.get(&setting).cloned(), offers }
    }

    /// Records a request that we wrote.
    pub(super) fn record_request(&mut self, id: &str, request: &Value) {
        let word = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        let pending = match request["subtype"].as_str() {
            Some("set_permission_mode") => SettingRequest::Set(AgentSetting::Mode, word("mode")),
            Some("set_model") => SettingRequest::Set(AgentSetting::Model, word("model")),
            Some("initialize") => SettingRequest::Initialize,
            _ => return,
        };
        self.to_restore.retain(|setting| restore_id(*setting) != id);
        self.pending.insert(id.to_owned(), pending);
    }

    /// Records the agent's answer to one of our requests. `None` if the request is not one of these.
    pub(super) fn record_answer(&mut self, response: &Value) -> Option<SettingResult> {
        let request = response["request_id"].as_str()?.to_owned();
        let pending = self.pending.remove(&request)?;
        if response["subtype"].as_str() == Some("error") {
            let why = response["error"].as_str().unwrap_or("the agent gives no reason").to_owned();
            let notice = self.drop_restored(&request, &pending, &why);
            return Some(SettingResult { request, outcome: Err(why), notice, mode: None });
        }
        let mut mode = None;
        let notice = match pending {
            SettingRequest::Set(setting, wanted) => {
                // The agent may have chosen another one than we requested.
                let current = response["response"][setting.word()].as_str().unwrap_or(&wanted).to_owned();
                let was_known = self.current.contains_key(&setting);
                let first = (!was_known).then(|| format!("{}: {current}", setting.word()));
                let notice = self.record_current(setting, Some(&current)).or(first);
                mode = (setting == AgentSetting::Mode).then_some(current);
                self.chosen.insert(setting, wanted);
                notice
            }
            SettingRequest::Initialize => {
                self.models = Some(models(&response["response"]["models"]));
                let mode = response["response"]["current_permission_mode"].as_str();
                self.record_current(AgentSetting::Mode, mode);
                None
            }
        };
        Some(SettingResult { request, outcome: Ok(()), notice, mode })
    }

    /// Whether the agent has not answered our request to change this setting.
    pub(super) fn is_being_set(&self, setting: AgentSetting) -> bool {
        let sets_it =
            |request: &SettingRequest| matches!(request, SettingRequest::Set(of, _) if *of == setting);
        self.pending.values().any(sets_it)
    }

    /// Records the setting that the agent reports. Returns a notice if it changed.
    pub(super) fn record_current(&mut self, setting: AgentSetting, reported: Option<&str>) -> Option<String> {
        let reported = reported.filter(|reported| !reported.is_empty())?;
        self.follow_agent(setting, reported);
        let before = self.current.insert(setting, reported.to_owned());
        before.filter(|before| before != reported).map(|_| format!("{}: {reported}", setting.word()))
    }
}

impl StreamSettings {
    /// The agent refused to restore an earlier choice. No caller waits for the answer, so a notice shows it.
    fn drop_restored(&mut self, request: &str, refused: &SettingRequest, why: &str) -> Option<String> {
        let SettingRequest::Set(setting, wanted) = refused else { return None };
        if request != restore_id(*setting) {
            return None;
        }
        self.chosen.remove(setting);
        Some(format!("the agent refuses to return to the {} {wanted}: {why}", setting.word()))
    }

    /// An agent that leaves a mode by itself, such as the planning mode, is not put back into it.
    fn follow_agent(&mut self, setting: AgentSetting, reported: &str) {
        let is_waiting = self.to_restore.contains(&setting) || self.is_being_set(setting);
        let approves_itself = ModeMeaning::of_id(reported) == ModeMeaning::ApprovesItself;
        if setting == AgentSetting::Mode
            && !is_waiting
            && !approves_itself
            && self.chosen.contains_key(&setting)
        {
            self.chosen.insert(setting, reported.to_owned());
        }
    }
}

fn restore_id(setting: AgentSetting) -> String {
    format!("agency-again-{}", setting.word())
}

fn models(list: &Value) -> Vec<Offer> {
    let offer = |model: &Value| {
        let id = model["value"].as_str()?.to_owned();
        let name = model["displayName"].as_str().unwrap_or(&id).to_owned();
        let description = model["description"].as_str().unwrap_or_default().to_owned();
        Some(Offer { id, name, description })
    };
    list.as_array().map(|list| list.iter().filter_map(offer).collect()).unwrap_or_default()
}
