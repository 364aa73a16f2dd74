//! Ignores observations that last only a moment: an observation must stay for a while before it counts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settling<T> {
    believed: Option<T>,
    /// The newest observation, if it differs, and since when.
    coming: Option<(Option<T>, Time)>,
}

impl<T> Default for Settling<T> {
    fn default() -> Self {
        Settling { believed: None, coming: None }
    }
}

impl<T: PartialEq + Clone> Settling<T> {
    pub(super) fn observe(&mut self, observed: Option<T>, at: Time) {
        match &self.coming {
            _ if observed == self.believed => self.coming = None,
            Some((coming, _)) if *coming == observed => {}
            _ => self.coming = Some((observed, at)),
        }
    }

    /// The believed observation is still there, perhaps with another text.
    pub(super) fn confirm(&mut self, believed: T) {
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

    fn believed_after(steps: &[(u64, Option<&'static str>)], at: u64) -> Option<&'static str> {
        let mut settling = Settling::default();
        for (at, word) in steps {
            let at = Duration::from_millis(*at);
            settling.tick(at, |_| A_MOMENT);
            settling.observe(*word, at);
        }
        settling.tick(Duration::from_millis(at), |_| A_MOMENT);
        settling.believed().copied()
    }

    #[test]
    fn an_observation_that_stays_is_believed_and_a_flash_is_not() {
        assert_eq!(believed_after(&[(0, Some("a"))], 100), None);
        assert_eq!(believed_after(&[(0, Some("a"))], 150), Some("a"));
        assert_eq!(believed_after(&[(0, Some("a")), (200, None), (250, Some("a"))], 900), Some("a"));
        assert_eq!(believed_after(&[(0, Some("a")), (200, None)], 900), None);
        assert_eq!(believed_after(&[(0, Some("a")), (100, Some("b")), (200, Some("a"))], 300), None);
    }
}
