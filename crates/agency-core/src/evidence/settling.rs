//! What is seen for a moment only: a word that must stand for a while before it is believed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settling<T> {
    believed: Option<T>,
    /// What was seen last, if it is something else, and since when.
    coming: Option<(Option<T>, Time)>,
}

impl<T> Default for Settling<T> {
    fn default() -> Self {
        Settling { believed: None, coming: None }
    }
}

impl<T: PartialEq + Clone> Settling<T> {
    pub(super) fn see(&mut self, seen: Option<T>, at: Time) {
        match &self.coming {
            _ if seen == self.believed => self.coming = None,
            Some((coming, _)) if *coming == seen => {}
            _ => self.coming = Some((seen, at)),
        }
    }

    /// What is believed is still there, perhaps in other words.
    pub(super) fn stays(&mut self, believed: T) {
        *self = Settling { believed: Some(believed), coming: None };
    }

    pub(super) fn believe_at(&self, after: impl Fn(Option<&T>) -> Duration) -> Option<Time> {
        self.coming.as_ref().map(|(coming, since)| since.saturating_add(after(coming.as_ref())))
    }

    pub(super) fn tick(&mut self, now: Time, after: impl Fn(Option<&T>) -> Duration) {
        if self.believe_at(after).is_some_and(|due| due <= now)
            && let Some((coming, _)) = self.coming.take()
        {
            self.believed = coming;
        }
    }

    pub(super) fn believed(&self) -> Option<&T> {
        self.believed.as_ref()
    }

    pub(super) fn forget(&mut self) {
        *self = Settling::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A_MOMENT: Duration = Duration::from_millis(150);

    fn seen(steps: &[(u64, Option<&'static str>)], at: u64) -> Option<&'static str> {
        let mut settling = Settling::default();
        for (at, word) in steps {
            let at = Duration::from_millis(*at);
            settling.tick(at, |_| A_MOMENT);
            settling.see(*word, at);
        }
        settling.tick(Duration::from_millis(at), |_| A_MOMENT);
        settling.believed().copied()
    }

    #[test]
    fn what_stands_for_a_while_is_believed_and_a_flash_is_not() {
        assert_eq!(seen(&[(0, Some("a"))], 100), None);
        assert_eq!(seen(&[(0, Some("a"))], 150), Some("a"));
        assert_eq!(seen(&[(0, Some("a")), (200, None), (250, Some("a"))], 900), Some("a"));
        assert_eq!(seen(&[(0, Some("a")), (200, None)], 900), None);
        assert_eq!(seen(&[(0, Some("a")), (100, Some("b")), (200, Some("a"))], 300), None);
    }
}
