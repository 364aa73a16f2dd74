//! What the agent is set to, as both sides of the conversation tell it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::talk::{Offer, Offers, Setting};

#[derive(Clone, Debug, Default)]
pub(super) struct Dials {
    /// Requests of ours that are not answered yet.
    sent: BTreeMap<String, Sent>,
    current: BTreeMap<Setting, String>,
    /// Once it has told.
    models: Option<Vec<Offer>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    Set(Setting, String),
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
    pub(super) fn request(setting: Setting, wanted: &str) -> Value {
        match setting {
            Setting::Mode => json!({ "subtype": "set_permission_mode", "mode": wanted }),
            Setting::Model => json!({ "subtype": "set_model", "model": wanted }),
        }
    }

    /// Nobody has asked it yet what there is to choose.
    pub(super) fn is_in_the_dark(&self) -> bool {
        self.models.is_none() && !self.sent.values().any(|sent| *sent == Sent::Initialize)
    }

    pub(super) fn offers(&self, setting: Setting) -> Offers {
        let plain = |id: &str| Offer { id: id.to_owned(), name: id.to_owned() };
        let offers = match setting {
            Setting::Mode => MODES.iter().map(|mode| plain(mode)).collect(),
            Setting::Model => self.models.clone().unwrap_or_default(),
        };
        Offers { current: self.current.get(&setting).cloned(), offers }
    }

    /// A request that we wrote.
    pub(super) fn on_sent(&mut self, id: &str, request: &Value) {
        let word = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        let sent = match request["subtype"].as_str() {
            Some("set_permission_mode") => Sent::Set(Setting::Mode, word("mode")),
            Some("set_model") => Sent::Set(Setting::Model, word("model")),
            Some("initialize") => Sent::Initialize,
            _ => return,
        };
        self.sent.insert(id.to_owned(), sent);
    }

    /// The answer to one of them.
    pub(super) fn on_answer(&mut self, response: &Value) -> Option<Settled> {
        let request = response["request_id"].as_str()?.to_owned();
        let sent = self.sent.remove(&request)?;
        if response["subtype"].as_str() == Some("error") {
            let why = response["error"].as_str().unwrap_or("it does not say why").to_owned();
            return Some(Settled { request, outcome: Err(why), notice: None });
        }
        let notice = match sent {
            Sent::Set(setting, wanted) => {
                // It may have chosen another one than was asked for.
                let told = response["response"][setting.word()].as_str().unwrap_or(&wanted).to_owned();
                let was_known = self.current.contains_key(&setting);
                let first = (!was_known).then(|| format!("{}: {told}", setting.word()));
                self.on_told(setting, Some(&told)).or(first)
            }
            Sent::Initialize => {
                self.models = Some(models(&response["response"]["models"]));
                self.on_told(Setting::Mode, response["response"]["current_permission_mode"].as_str());
                None
            }
        };
        Some(Settled { request, outcome: Ok(()), notice })
    }

    /// What it says of itself; a notice if that is news.
    pub(super) fn on_told(&mut self, setting: Setting, told: Option<&str>) -> Option<String> {
        let told = told.filter(|told| !told.is_empty())?;
        let before = self.current.insert(setting, told.to_owned());
        before.filter(|before| before != told).map(|_| format!("{}: {told}", setting.word()))
    }
}

fn models(list: &Value) -> Vec<Offer> {
    let offer = |model: &Value| {
        let id = model["value"].as_str()?.to_owned();
        let name = model["displayName"].as_str().unwrap_or(&id).to_owned();
        Some(Offer { id, name })
    };
    list.as_array().map(|list| list.iter().filter_map(offer).collect()).unwrap_or_default()
}
