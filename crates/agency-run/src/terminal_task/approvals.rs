//! Permission prompts and menus of a terminal as approvals: what the screen shows, and the keys that answer it.
//!
//! Decides nothing about keys: that is in `agency_driver::sending`.

use agency_api::{Failure, FailureCode, chat};
use agency_core::conversation::ChoiceKind;
use agency_core::evidence::Choice;
use agency_driver::conversation::ApprovalAnswer;
use agency_driver::sending::{Dialog, DialogAnswer, SendOrder, choice_kind};
use serde_json::json;

use super::TerminalTask;
use super::caller::{AnswerCaller, Caller};
use crate::chat_view::choice_kind_view;
use crate::command::AnswerRequest;
use crate::reply::send_reply;

/// The name of the tool in approvals that a terminal shows.
const TOOL: &str = "terminal";

impl TerminalTask {
    /// The dialog on the screen, if it asks something that `approve` can answer.
    pub(super) fn open_approvals(&mut self) -> Vec<chat::Approval> {
        Dialog::on_screen(&self.observe()).iter().map(approval_view).collect()
    }

    pub(super) fn answer_dialog(&mut self, request: AnswerRequest) {
        let AnswerRequest { id, verdict, by, why, answer } = request;
        let Some(dialog) = Dialog::on_screen(&self.observe()) else {
            let failure =
                Failure::new("no request is waiting for an answer").code(FailureCode::NoOpenRequest);
            return send_reply(
                answer,
                Err(failure
                    .because("the terminal shows no dialog that Agency knows")
                    .hint("agency attach shows its screen")),
            );
        };
        if id.as_ref().is_some_and(|id| *id != dialog.id) {
            let failure = Failure::new("the dialog has changed since it was shown; no key was pressed")
                .code(FailureCode::ChangedMeanwhile)
                .because(format!("it asks now: {}", dialog.question))
                .hint("agency approvals");
            return send_reply(answer, Err(failure));
        }
        match choice_for(&dialog, &verdict) {
            Err(failure) => send_reply(answer, Err(failure)),
            Ok(choice) => {
                let label = dialog.choices()[choice].label.clone();
                let outcome = chat::ApprovalOutcome {
                    allowed: is_allowed(&dialog, choice, &verdict),
                    cancelled: false,
                    message: why,
                    by: Some(by),
                    answer: matches!(verdict, ApprovalAnswer::Choose { .. }).then_some(label),
                };
                let caller = AnswerCaller { approval: approval_view(&dialog), outcome, reply: answer };
                let order = SendOrder::Answer(DialogAnswer::new(dialog.id, choice));
                self.messages.push(order, Caller::Answer(Box::new(caller)));
            }
        }
    }
}

fn approval_view(dialog: &Dialog) -> chat::Approval {
    let choice = |(at, choice): (usize, &Choice)| chat::Choice {
        id: (at + 1).to_string(),
        kind: choice_kind_view(choice_kind(choice)),
        label: choice.label.clone(),
    };
    chat::Approval {
        id: dialog.id.clone(),
        tool: TOOL.to_owned(),
        title: dialog.question.clone(),
        input: json!({ "screen": dialog.screen }),
        action: Box::new(chat::Action { summary: dialog.question.clone(), ..chat::Action::default() }),
        choices: dialog.choices().iter().enumerate().map(choice).collect(),
        outcome: None,
    }
}

/// The choice that gives this answer, as an index.
fn choice_for(dialog: &Dialog, verdict: &ApprovalAnswer) -> Result<usize, Failure> {
    let choices = dialog.choices();
    let of_kind = |kind| choices.iter().position(|choice| choice_kind(choice) == kind);
    let found = match verdict {
        ApprovalAnswer::Allow => of_kind(ChoiceKind::AllowOnce),
        ApprovalAnswer::AllowAlways => of_kind(ChoiceKind::AllowAlways),
        ApprovalAnswer::Deny { .. } => of_kind(ChoiceKind::RejectOnce),
        ApprovalAnswer::Choose { id } => choices
            .iter()
            .position(|choice| choice.label.eq_ignore_ascii_case(id))
            .or_else(|| choices.iter().enumerate().position(|(at, _)| (at + 1).to_string() == *id)),
        ApprovalAnswer::Answer { .. } => {
            return Err(Failure::new("a dialog on a terminal takes no --answer")
                .code(FailureCode::Unsupported)
                .hint("choose an option with --option, or use agency attach"));
        }
    };
    found.ok_or_else(|| {
        let problem = match choices {
            [] => "Agency does not know the choices of this dialog; no key was pressed",
            _ => "the dialog has no such choice that Agency knows; no key was pressed",
        };
        let labels: Vec<String> = choices.iter().map(|choice| format!("`{}`", choice.label)).collect();
        let failure = Failure::new(problem)
            .code(FailureCode::Unsupported)
            .because(format!("it asks: {}", dialog.question));
        match labels.as_slice() {
            [] => failure.hint("answer it with agency attach, or with agency send --keys"),
            _ => failure
                .because(format!("it offers {}", labels.join(", ")))
                .hint("choose one with agency approve --option LABEL"),
        }
    })
}

fn is_allowed(dialog: &Dialog, choice: usize, verdict: &ApprovalAnswer) -> bool {
    match verdict {
        ApprovalAnswer::Allow | ApprovalAnswer::AllowAlways | ApprovalAnswer::Answer { .. } => true,
        ApprovalAnswer::Deny { .. } => false,
        ApprovalAnswer::Choose { .. } => {
            let kind = dialog.choices().get(choice).map(choice_kind);
            !matches!(kind, Some(ChoiceKind::RejectOnce | ChoiceKind::RejectAlways))
        }
    }
}

#[cfg(test)]
mod tests {
    use agency_core::evidence::Why;
    use agency_driver::sending::Observation;

    use super::*;

    fn dialog(rows: &[&str]) -> Dialog {
        let rows = rows.iter().map(|row| (*row).to_owned()).collect();
        let seen = Observation { rows, why: Some(Why::Permission), ..Observation::default() };
        Dialog::on_screen(&seen).expect("a dialog")
    }

    #[test]
    fn an_answer_chooses_by_the_words_of_the_choices() {
        let asked = dialog(&["Run rm?", "❯ 1. Yes", "  2. Yes, and don't ask again", "  3. No"]);
        let choose = |id: &str| ApprovalAnswer::Choose { id: id.to_owned() };
        let deny = ApprovalAnswer::Deny { message: String::new() };
        for (verdict, expected) in [
            (ApprovalAnswer::Allow, Some(0)),
            (ApprovalAnswer::AllowAlways, Some(1)),
            (deny.clone(), Some(2)),
            (choose("no"), Some(2)),
            (choose("2"), Some(1)),
            (choose("maybe"), None),
        ] {
            assert_eq!(choice_for(&asked, &verdict).ok(), expected, "{verdict:?}");
        }
        let databases = dialog(&["Delete which database?", "❯ production", "  staging"]);
        assert!(choice_for(&databases, &ApprovalAnswer::Allow).is_err(), "neither is a yes");
        assert!(choice_for(&databases, &deny).is_err());
        assert_eq!(choice_for(&databases, &choose("staging")).ok(), Some(1));
        assert!(choice_for(&dialog(&["Press a key to go on"]), &ApprovalAnswer::Allow).is_err());
    }

    #[test]
    fn the_view_has_the_question_the_choices_and_the_screen() {
        let view = approval_view(&dialog(&["Run rm?", "❯ 1. Yes", "  2. No"]));
        assert_eq!((view.tool.as_str(), view.title.as_str()), (TOOL, "Run rm?"));
        let labels: Vec<_> = view.choices.iter().map(|choice| (choice.label.as_str(), choice.kind)).collect();
        assert_eq!(labels, [("Yes", chat::ChoiceKind::AllowOnce), ("No", chat::ChoiceKind::RejectOnce)]);
        assert!(view.input["screen"].as_str().is_some_and(|screen| screen.contains("Run rm?")));
    }
}
