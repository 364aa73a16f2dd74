//! OSC 7501, the program status protocol: reports of an agent about itself.
//!
//! `state=blocked:app=claude-code:kind=permission:msg=BASE64`, fields in any order. Unknown fields are ignored.

use crate::activity::{Activity, Why};
use crate::plain;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// `None`: the program withdraws its last report.
    pub(super) activity: Option<Activity>,
    pub(super) rule: String,
    pub(super) detail: Option<String>,
}

/// Longer texts are cut, because a person reads this at a glance.
const DETAIL_MAX: usize = 300;

/// Reads a report. `None` if it has no state that we know.
pub(super) fn parse(text: &str) -> Option<Report> {
    let (mut state, mut kind, mut detail) = (None, None, None);
    for (position, field) in text.split(':').enumerate() {
        match field.split_once('=') {
            Some(("state", value)) => state = Some(value),
            Some(("kind", value)) => kind = Some(value),
            Some(("msg", value)) => detail = decode_message(value),
            None if position == 0 => state = Some(field),
            _ => {}
        }
    }
    let activity = match (state?, kind) {
        ("working", _) => Some(Activity::Working),
        ("idle", _) => Some(Activity::Waiting(Why::Prompt)),
        ("done", _) => Some(Activity::Waiting(Why::Finished)),
        ("error", _) => Some(Activity::Waiting(Why::Error)),
        ("blocked", Some("permission")) => Some(Activity::Waiting(Why::Permission)),
        ("blocked", Some("question" | "auth")) => Some(Activity::Waiting(Why::Question)),
        ("blocked", _) => Some(Activity::Waiting(Why::Unknown)),
        ("none" | "clear" | "", _) => None,
        _ => return None,
    };
    let rule = match (state?, kind) {
        (state, Some(kind)) => format!("{state} {kind}"),
        (state, None) => state.to_owned(),
    };
    // While the program works, its text is about the work.
    let detail = detail.filter(|_| activity.is_some_and(Activity::is_waiting));
    Some(Report { activity, rule: one_line(&rule), detail })
}

fn decode_message(base64: &str) -> Option<String> {
    let bytes = data_encoding::BASE64_NOPAD.decode(base64.trim_end_matches('=').as_bytes()).ok()?;
    Some(one_line(&String::from_utf8_lossy(&bytes))).filter(|text| !text.is_empty())
}

/// Text of an agent as one line that is safe to show.
pub(super) fn one_line(text: &str) -> String {
    plain::one_line(text, DETAIL_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_real_agents_are_understood() {
        for (text, activity, rule, detail) in [
            ("state=idle:app=claude-code", Some(Activity::Waiting(Why::Prompt)), "idle", None),
            (
                "state=working:app=claude-code:msg=UnVubmluZyBhIHNjcmlwdGVkIGNvbW1hbmQ=",
                Some(Activity::Working),
                "working",
                None,
            ),
            (
                "state=blocked:app=codex:kind=permission",
                Some(Activity::Waiting(Why::Permission)),
                "blocked permission",
                None,
            ),
            (
                "state=error:app=claude-code:msg=QVBJIEVycm9yOiA0MDAgc2NyaXB0ZWQgZXJyb3I=",
                Some(Activity::Waiting(Why::Error)),
                "error",
                Some("API Error: 400 scripted error"),
            ),
            ("done", Some(Activity::Waiting(Why::Finished)), "done", None),
            ("blocked:kind=auth", Some(Activity::Waiting(Why::Question)), "blocked auth", None),
            ("none", None, "none", None),
        ] {
            let report = parse(text).expect(text);
            assert_eq!(
                (report.activity, report.rule.as_str(), report.detail.as_deref()),
                (activity, rule, detail)
            );
        }
    }

    #[test]
    fn an_unknown_state_is_not_a_report() {
        for text in ["", "dancing", "app=x", "state=dreaming:app=x", "?"] {
            let activity = parse(text).and_then(|report| report.activity);
            assert_eq!(activity, None, "{text}");
        }
    }

    #[test]
    fn a_message_that_cannot_be_decoded_is_none() {
        assert_eq!(decode_message("%%%"), None);
        assert_eq!(decode_message("YQpi").as_deref(), Some("a b"));
    }
}
