//! Whether an agent asks before it acts in one of its modes, as far as the mode's own words say it.
//!
//! A guess from words, so it never grants anything: Agency uses it to choose a mode that asks, and to warn the user.

use agency_core::plain::one_line;

use super::{Offer, Offers};

/// The longest name of a mode in messages.
const MODE_CHARS: usize = 80;

/// The meaning of a mode for the user's permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModeMeaning {
    /// The agent asks before it acts.
    Asks,
    /// The agent only reads, or makes a plan.
    ReadsOnly,
    /// The agent approves its own actions, or some of them.
    ApprovesItself,
    /// The words do not say it.
    Unknown,
}

/// Parts of words for modes in which agents approve their own actions: Qwen `auto`, `auto-edit` and `yolo`, Vibe
/// `accept-edits` and `smart-approve`, Claude `acceptEdits`, `dontAsk` and `bypassPermissions`, Codex `full-access`, Copilot `autopilot`.
const APPROVING: [&str; 9] =
    ["auto", "yolo", "accept", "bypass", "dontask", "fullaccess", "unrestricted", "smartapprove", "trustall"];

/// Words for modes in which agents only read or plan.
const READING: [&str; 5] = ["plan", "readonly", "architect", "chat", "research"];

/// Words for modes in which agents ask, best first.
const ASKING: [&str; 6] = ["default", "ask", "manual", "normal", "confirm", "approval"];

/// Phrases in a mode's description that say that the agent does not ask.
const DESCRIBED_AS_APPROVING: [&str; 6] = [
    "auto-approve",
    "automatically",
    "without asking",
    "without approval",
    "without confirmation",
    "no approval",
];

/// Phrases in a mode's description that say that the agent asks.
const DESCRIBED_AS_ASKING: [&str; 6] = [
    "ask for permission",
    "request permission",
    "requires approval",
    "prompts for",
    "asks before",
    "ask before",
];

impl ModeMeaning {
    /// The meaning of a mode that the agent names but does not list.
    pub(crate) fn of_id(id: &str) -> ModeMeaning {
        let word = plain_word(id);
        match () {
            () if APPROVING.iter().any(|part| word.contains(part)) => ModeMeaning::ApprovesItself,
            () if READING.iter().any(|part| word.contains(part)) => ModeMeaning::ReadsOnly,
            () if ASKING.iter().any(|part| word.contains(part)) => ModeMeaning::Asks,
            () => ModeMeaning::Unknown,
        }
    }

    fn of(mode: &Offer) -> ModeMeaning {
        let by_words = [&mode.id, &mode.name].map(|words| ModeMeaning::of_id(words));
        if by_words.contains(&ModeMeaning::ApprovesItself) {
            return ModeMeaning::ApprovesItself;
        }
        if let Some(known) = by_words.into_iter().find(|meaning| *meaning != ModeMeaning::Unknown) {
            return known;
        }
        let description = mode.description.to_lowercase();
        match () {
            () if DESCRIBED_AS_APPROVING.iter().any(|part| description.contains(part)) => {
                ModeMeaning::ApprovesItself
            }
            () if DESCRIBED_AS_ASKING.iter().any(|part| description.contains(part)) => ModeMeaning::Asks,
            () => ModeMeaning::Unknown,
        }
    }

    /// The meaning of one of the modes that the agent offers.
    pub(crate) fn among(offers: &Offers, id: &str) -> ModeMeaning {
        offers
            .offers
            .iter()
            .find(|mode| mode.id == id)
            .map_or_else(|| ModeMeaning::of_id(id), ModeMeaning::of)
    }
}

impl ModeMeaning {
    /// A sentence about an agent that changed its mode although no user asked for it.
    pub(crate) fn describe_own_change(self, old: &str, new: &str) -> String {
        let and = match self {
            ModeMeaning::ApprovesItself => "; it may approve its own actions now",
            ModeMeaning::Asks | ModeMeaning::ReadsOnly | ModeMeaning::Unknown => "",
        };
        format!(
            "the agent changed its mode from `{}` to `{}` by itself{and}",
            shown_mode(old),
            shown_mode(new)
        )
    }
}

/// A mode's name in messages.
pub(crate) fn shown_mode(mode: &str) -> String {
    one_line(mode, MODE_CHARS)
}

/// The mode in which the agent asks before it acts, if it offers one.
pub(crate) fn asking_mode(offers: &Offers) -> Option<&Offer> {
    let asks = |mode: &&Offer| ModeMeaning::of(mode) == ModeMeaning::Asks;
    let has_word =
        |mode: &Offer, word: &str| [&mode.id, &mode.name].iter().any(|words| plain_word(words) == word);
    let best =
        ASKING.iter().find_map(|word| offers.offers.iter().filter(asks).find(|mode| has_word(mode, word)));
    best.or_else(|| offers.offers.iter().find(asks))
}

/// The last word of an id, in small letters: some agents use addresses as ids, such as `https://…#plan`.
fn plain_word(id: &str) -> String {
    let last = id.rsplit(['#', '/']).next().unwrap_or(id);
    last.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(modes: &[(&str, &str, &str)]) -> Offers {
        let offer = |(id, name, description): &(&str, &str, &str)| Offer {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            description: (*description).to_owned(),
        };
        Offers { current: None, offers: modes.iter().map(offer).collect() }
    }

    #[test]
    fn modes_of_known_agents_mean_what_their_words_say() {
        for (mode, meaning) in [
            ("auto", ModeMeaning::ApprovesItself),
            ("auto-edit", ModeMeaning::ApprovesItself),
            ("yolo", ModeMeaning::ApprovesItself),
            ("accept-edits", ModeMeaning::ApprovesItself),
            ("smart-approve", ModeMeaning::ApprovesItself),
            ("acceptEdits", ModeMeaning::ApprovesItself),
            ("bypassPermissions", ModeMeaning::ApprovesItself),
            ("dontAsk", ModeMeaning::ApprovesItself),
            ("full-access", ModeMeaning::ApprovesItself),
            ("https://agentclientprotocol.com/protocol/session-modes#autopilot", ModeMeaning::ApprovesItself),
            ("https://agentclientprotocol.com/protocol/session-modes#plan", ModeMeaning::ReadsOnly),
            ("https://agentclientprotocol.com/protocol/session-modes#agent", ModeMeaning::Unknown),
            ("read-only", ModeMeaning::ReadsOnly),
            ("default", ModeMeaning::Asks),
            ("ask", ModeMeaning::Asks),
            ("build", ModeMeaning::Unknown),
        ] {
            assert_eq!(ModeMeaning::of_id(mode), meaning, "{mode}");
        }
    }

    #[test]
    fn the_description_decides_if_the_name_says_nothing() {
        let modes = offers(&[
            ("code", "Code", "Writes files without asking"),
            ("pair", "Pair", "Requires approval for each tool"),
            ("jazz", "Jazz", ""),
        ]);
        let meanings = ["code", "pair", "jazz", "unlisted"].map(|id| ModeMeaning::among(&modes, id));
        let (approves, unknown) = (ModeMeaning::ApprovesItself, ModeMeaning::Unknown);
        assert_eq!(meanings, [approves, ModeMeaning::Asks, unknown, unknown]);
        assert_eq!(asking_mode(&modes).map(|mode| mode.id.as_str()), Some("pair"));
    }

    #[test]
    fn the_mode_that_asks_is_neither_one_that_plans_nor_one_that_approves() {
        let qwen =
            offers(&[("plan", "Plan", ""), ("default", "Default", ""), ("auto-edit", "Auto Edit", "")]);
        assert_eq!(asking_mode(&qwen).map(|mode| mode.id.as_str()), Some("default"));
        let none = offers(&[("plan", "Plan", ""), ("yolo", "YOLO", "ask before")]);
        assert_eq!(asking_mode(&none), None);
    }
}
