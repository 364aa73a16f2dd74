//! The mode of a session: Agency puts the agent into one in which it asks, and says so loudly if the agent leaves it.

use super::super::opening::Stage;
use super::{AcpRun, PendingRequest};
use crate::conversation::{
    AgentSetting, ConversationEvent, ModeChange, ModeChanger, ModeMeaning, asking_mode, shown_mode,
};

impl AcpRun {
    /// Why the user should look at the agent's mode, if so.
    pub fn mode_warning(&self) -> Option<&str> {
        self.core.mode_warning()
    }

    /// The mode to set when no user has chosen one: one in which the agent asks, if it begins in one in which it does not.
    pub(super) fn safer_mode(&mut self) -> Option<String> {
        let offers = self.settings.offers(AgentSetting::Mode);
        let current = offers.current.clone()?;
        let shown = shown_mode(&current);
        match (ModeMeaning::among(&offers, &current), asking_mode(&offers)) {
            (ModeMeaning::Asks | ModeMeaning::ReadsOnly, _) => None,
            (ModeMeaning::ApprovesItself, Some(asking)) => {
                self.settings.mode_watch.began_in = Some(current);
                Some(asking.id.clone())
            }
            (ModeMeaning::ApprovesItself, None) => {
                let words = format!(
                    "the agent is in its mode `{shown}` and may approve its own actions; it offers no mode in which it asks"
                );
                self.core.warn_about_mode(None, Some(current), words);
                None
            }
            (ModeMeaning::Unknown, _) => {
                let words = format!(
                    "the agent is in its mode `{shown}`; Agency does not know whether it asks before it acts"
                );
                self.core.warn_about_mode(None, Some(current), words);
                None
            }
        }
    }

    /// The agent has no modes, so Agency cannot put it into the usual one.
    pub(super) fn warn_about_missing_modes(&mut self, usual: &str) {
        let words = format!(
            "the agent offers no modes, so Agency cannot choose `{}`; it may approve its own actions",
            shown_mode(usual)
        );
        self.core.warn_about_mode(None, None, words);
    }

    /// The agent accepted a mode that Agency or the user set.
    pub(super) fn record_mode_set(&mut self, new: &str, is_users: bool) {
        self.core.clear_mode_warning();
        let began_in = self.settings.mode_watch.began_in.take();
        let by = match (is_users, &began_in) {
            (true, _) => ModeChanger::User,
            (false, Some(began_in)) => {
                let began_in = shown_mode(began_in);
                self.core.add_notice(format!(
                    "mode: {}; the agent began in `{began_in}`, in which it approves its own actions",
                    shown_mode(new)
                ));
                ModeChanger::Agency
            }
            (false, None) => return,
        };
        let (old, new) = (began_in, Some(new.to_owned()));
        self.core.announce_news(ConversationEvent::ModeChanged(ModeChange { old, new, by, warning: None }));
    }

    /// The user allowed an option of the agent. Its words may name a mode.
    pub(super) fn record_allowed_option(&mut self, words: String) {
        self.settings.mode_watch.allowed.push(words.to_lowercase());
    }

    pub(super) fn forget_allowed_options(&mut self) {
        self.settings.mode_watch.allowed.clear();
    }

    /// The agent reports its mode.
    pub(super) fn read_mode_change(&mut self, before: Option<String>) {
        let offers = self.settings.offers(AgentSetting::Mode);
        let Some(now) = offers.current.clone() else { return };
        let meaning = ModeMeaning::among(&offers, &now);
        // The next session begins in the mode that the agent chose, unless it would approve its own actions there.
        if self.stage == Stage::Ready && meaning != ModeMeaning::ApprovesItself {
            self.settings.follow_agent(AgentSetting::Mode, &now);
        }
        let Some(before) = before.filter(|before| *before != now) else { return };
        if self.is_mode_requested(&now) {
            return;
        }
        if matches!(self.stage, Stage::Down | Stage::Greeting | Stage::Opening { .. }) {
            // Agency sets the mode once the session is open.
            return self.core.add_notice(format!("mode: {}", shown_mode(&now)));
        }
        if self.is_mode_allowed(&now) {
            self.core.add_notice(format!("mode: {}", shown_mode(&now)));
            let (old, new, by) = (Some(before), Some(now), ModeChanger::User);
            let change = ModeChange { old, new, by, warning: None };
            return self.core.announce_news(ConversationEvent::ModeChanged(change));
        }
        self.core.warn_about_own_change(before, now, meaning);
    }

    /// Whether Agency has asked for this mode and the agent has not answered.
    fn is_mode_requested(&self, mode: &str) -> bool {
        let asks_for_it = |request: &PendingRequest| matches!(request, PendingRequest::Set(AgentSetting::Mode, wanted) if wanted == mode);
        self.pending.values().any(asks_for_it)
    }

    /// Whether an option that the user allowed in this turn names this mode.
    fn is_mode_allowed(&self, mode: &str) -> bool {
        let offers = self.settings.offers(AgentSetting::Mode);
        let offered = offers.offers.iter().find(|offer| offer.id == mode);
        let names = [Some(mode), offered.map(|offer| offer.name.as_str())];
        let names: Vec<String> = names.into_iter().flatten().map(str::to_lowercase).collect();
        let names_it = |words: &String| names.iter().any(|name| words.contains(name.as_str()));
        self.settings.mode_watch.allowed.iter().any(|words| names_it(words) || words.contains("switch_mode"))
    }
}
