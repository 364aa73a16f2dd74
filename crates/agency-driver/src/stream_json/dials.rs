//! What the agent is set to, as both sides of the conversation tell it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::conversation::{AgentSetting, Offer, Offers};

#[derive(Clone, Debug, Default)]
pub(super) struct Dials {
    /// Requests of ours that are not answered yet.
    sent: BTreeMap<String, Sent>,
    current: BTreeMap<AgentSetting, String>,
    /// What somebody chose while it lived.
    chosen: BTreeMap<AgentSetting, String>,
    /// What was chosen in the run before, and this one has not been told.
    owed: Vec<AgentSetting>,
    /// Once it has told.
    models: Option<Vec<Offer>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    Set(AgentSetting, String),
    /// It tells what there is to choose.
    Initialize,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) request: String,
    pub(super) outcome: Result<(), String>,
    /// For those who read along.
    pub(super) notice: Option<String>,
}

/// The modes that it has had for long. It does not tell of them itself, and takes others too.
const MODES: [&str; 4] = ["default", "acceptEdits", "plan", "bypassPermissions"];

impl Dials {
    /// What was chosen before is to be chosen again.
    pub(super) fn again(chosen: BTreeMap<AgentSetting, String>) -> Dials {
        Dials { owed: chosen.keys().copied().collect(), chosen, ..Dials::default() }
    }

    pub(super) fn chosen(self) -> BTreeMap<AgentSetting, String> {
        self.chosen
    }

    /// Requests that choose again, by their ids.
    pub(super) fn owed(&self) -> impl Iterator<Item = (String, Value)> {
        let request = |setting: &AgentSetting| {
            let wanted = self.chosen.get(setting)?;
            Some((again_id(*setting), Dials::request(*setting, wanted)))
        };
        self.owed.iter().filter_map(request)
    }

    pub(super) fn request(setting: AgentSetting, wanted: &str) -> Value {
        match setting {
            AgentSetting::Mode => json!({ "subtype": "set_permission_mode", "mode": wanted }),
            AgentSetting::Model => json!({ "subtype": "set_model", "model": wanted }),
        }
    }

    /// Nobody has asked it yet what there is to choose.
    pub(super) fn is_in_the_dark(&self) -> bool {
        self.models.is_none() && !self.sent.values().any(|sent| *sent == Sent::Initialize)
    }

    pub(super) fn offers(&self, setting: AgentSetting) -> Offers {
        let plain = |id: &str| Offer { id: id.to_owned(), name: id.to_owned() };
        let offers = match setting {
            AgentSetting::Mode => MODES.iter().map(|mode| plain(mode)).collect(),
            AgentSetting::Model => self.models.clone().unwrap_or_default(),
        };
        Offers { current: self.current.get(&setting).cloned(), offers }
    }

    /// A request that we wrote.
    pub(super) fn on_sent(&mut self, id: &str, request: &Value) {
        let word = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        let sent = match request["subtype"].as_str() {
            Some("set_permission_mode") => Sent::Set(AgentSetting::Mode, word("mode")),
            Some("set_model") => Sent::Set(AgentSetting::Model, word("model")),
            Some("initialize") => Sent::Initialize,
            _ => return,
        };
        self.owed.retain(|setting| again_id(*setting) != id);
        self.sent.insert(id.to_owned(), sent);
    }

    /// The answer to one of them.
    pub(super) fn on_answer(&mut self, response: &Value) -> Option<Settled> {
        let request = response["request_id"].as_str()?.to_owned();
        let sent = self.sent.remove(&request)?;
        if response["subtype"].as_str() == Some("error") {
            let why = response["error"].as_str().unwrap_or("it does not say why").to_owned();
            let notice = self.not_again(&request, &sent, &why);
            return Some(Settled { request, outcome: Err(why), notice });
        }
        let notice = match sent {
            Sent::Set(setting, wanted) => {
                // It may have chosen another one than was asked for.
                let told = response["response"][setting.word()].as_str().unwrap_or(&wanted).to_owned();
                let was_known = self.current.contains_key(&setting);
                let first = (!was_known).then(|| format!("{}: {told}", setting.word()));
                let notice = self.on_told(setting, Some(&told)).or(first);
                self.chosen.insert(setting, wanted);
                notice
            }
            Sent::Initialize => {
                self.models = Some(models(&response["response"]["models"]));
                self.on_told(AgentSetting::Mode, response["response"]["current_permission_mode"].as_str());
                None
            }
        };
        Some(Settled { request, outcome: Ok(()), notice })
    }

    /// What it says of itself; a notice if that is news.
    pub(super) fn on_told(&mut self, setting: AgentSetting, told: Option<&str>) -> Option<String> {
        let told = told.filter(|told| !told.is_empty())?;
        self.follow(setting, told);
        let before = self.current.insert(setting, told.to_owned());
        before.filter(|before| before != told).map(|_| format!("{}: {told}", setting.word()))
    }
}

impl Dials {
    /// What was chosen before is not to be had any more; nobody waits for the answer.
    fn not_again(&mut self, request: &str, sent: &Sent, why: &str) -> Option<String> {
        let Sent::Set(setting, wanted) = sent else { return None };
        if request != again_id(*setting) {
            return None;
        }
        self.chosen.remove(setting);
        Some(format!("the agent does not take the {} {wanted} again: {why}", setting.word()))
    }

    /// An agent that leaves a mode by itself, such as one for planning, is not put back into it.
    fn follow(&mut self, setting: AgentSetting, told: &str) {
        let is_set = |sent: &Sent| matches!(sent, Sent::Set(of, _) if *of == setting);
        let is_waiting = self.owed.contains(&setting) || self.sent.values().any(is_set);
        if setting == AgentSetting::Mode && !is_waiting && self.chosen.contains_key(&setting) {
            self.chosen.insert(setting, told.to_owned());
        }
    }
}

fn again_id(setting: AgentSetting) -> String {
    format!("agency-again-{}", setting.word())
}

fn models(list: &Value) -> Vec<Offer> {
    let offer = |model: &Value| {
        let id = model["value"].as_str()?.to_owned();
        let name = model["displayName"].as_str().unwrap_or(&id).to_owned();
        Some(Offer { id, name })
    };
    list.as_array().map(|list| list.iter().filter_map(offer).collect()).unwrap_or_default()
}
