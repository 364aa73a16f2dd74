//! Whether a menu on the screen is a question of the program, or a list that opened because the user typed.

use serde::{Deserialize, Serialize};

use super::menu::Menu;
use super::rules::Matched;
use crate::activity::{Activity, Why};

/// A menu on the screen at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuSample {
    /// The reason to wait that its words give.
    pub why: Why,
    /// Its question.
    pub question: Option<String>,
    /// Its choices.
    pub labels: Vec<String>,
}

impl From<Menu> for MenuSample {
    fn from(menu: Menu) -> MenuSample {
        let (why, question) = (menu.why(), menu.question);
        MenuSample { why, question, labels: menu.choices.into_iter().map(|choice| choice.label).collect() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MenuWatch {
    /// The choices that the screen shows.
    labels: Vec<String>,
    /// It opened while the user typed: a list of commands or files.
    is_users: bool,
    /// The user chose, and the program left its menu on the screen.
    #[serde(default)]
    is_answered: bool,
}

impl MenuWatch {
    /// The program took an Enter. If the same menu is still there, it is answered.
    pub(super) fn on_answer(&mut self) {
        self.is_answered = !self.labels.is_empty();
    }

    /// Returns the menu if the program opened it. `is_echo` if the screen may have changed because the user typed.
    pub(super) fn on_screen(&mut self, menu: Option<MenuSample>, is_echo: bool) -> Option<Matched> {
        let Some(menu) = menu else {
            *self = MenuWatch::default();
            return None;
        };
        if self.labels != menu.labels {
            // Typing filters a list that is open, and opens a list of commands.
            let was_open = !self.labels.is_empty();
            self.is_users = is_echo && (self.is_users || !was_open);
            self.is_answered = false;
            self.labels = menu.labels;
        }
        (!self.is_users && !self.is_answered).then(|| Matched {
            rule: "a menu by its shape".to_owned(),
            activity: Activity::Waiting(menu.why),
            detail: menu.question,
            is_general: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(labels: &[&str]) -> Option<MenuSample> {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        Some(MenuSample { why: Why::Question, question: None, labels })
    }

    #[test]
    fn a_menu_that_opens_by_itself_is_a_question_and_a_list_that_typing_opens_is_not() {
        let mut watch = MenuWatch::default();
        assert!(watch.on_screen(menu(&["Yes", "No"]), false).is_some());
        assert!(watch.on_screen(menu(&["Yes", "No"]), true).is_some(), "the user moves the mark");
        assert!(watch.on_screen(menu(&["Yes"]), true).is_some(), "the user filters it");
        assert!(watch.on_screen(None, true).is_none());
        assert!(watch.on_screen(menu(&["model", "mode"]), true).is_none());
        assert!(watch.on_screen(menu(&["model"]), true).is_none());
        assert!(watch.on_screen(menu(&["small", "large"]), false).is_some(), "Enter opened the next menu");
        watch.on_answer();
        assert!(watch.on_screen(menu(&["small", "large"]), false).is_none(), "its menu stays on the screen");
        assert!(watch.on_screen(menu(&["Yes", "No"]), false).is_some(), "the next one");
    }
}
