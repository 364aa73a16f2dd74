//! The requests of an agent that wait for an answer, and who is about to answer them.

use std::collections::BTreeMap;

/// A request of the agent that has an id.
pub(crate) trait Identified {
    fn id(&self) -> &str;
}

/// The open requests, oldest first.
pub(crate) struct OpenRequests<R> {
    open: Vec<R>,
    /// By the id of the request.
    deciders: BTreeMap<String, Decider>,
}

/// The user or the rule that answers a request, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decider {
    pub(crate) by: String,
    pub(crate) why: Option<String>,
}

impl<R> Default for OpenRequests<R> {
    fn default() -> OpenRequests<R> {
        OpenRequests { open: Vec::new(), deciders: BTreeMap::new() }
    }
}

impl<R: Identified> OpenRequests<R> {
    pub(crate) fn first(&self) -> Option<&R> {
        self.open.first()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&R> {
        self.open.iter().find(|request| request.id() == id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.open.iter().map(Identified::id)
    }

    /// An id that no open request has: an agent that uses an id twice asks two questions.
    pub(crate) fn free_id(&self, id: String) -> String {
        let others = (2_u32..).map(|number| format!("{id}#{number}"));
        let mut ids = std::iter::once(id.clone()).chain(others);
        ids.find(|id| self.get(id).is_none()).unwrap_or(id)
    }

    /// Adds a request whose id is free.
    pub(crate) fn insert(&mut self, request: R) {
        self.open.push(request);
    }

    /// Removes the first request that fits.
    pub(crate) fn take_first(&mut self, fits: impl Fn(&R) -> bool) -> Option<R> {
        let index = self.open.iter().position(fits)?;
        Some(self.open.remove(index))
    }

    /// Removes the first request that fits, but rather one that a user or a rule is about to answer.
    pub(crate) fn take_decided(&mut self, fits: impl Fn(&R) -> bool) -> Option<R> {
        let deciders = &self.deciders;
        let decided =
            self.open.iter().position(|request| fits(request) && deciders.contains_key(request.id()));
        match decided {
            Some(index) => Some(self.open.remove(index)),
            None => self.take_first(fits),
        }
    }

    /// Removes every request that fits, and forgets who was about to answer it.
    pub(crate) fn take_all(&mut self, fits: impl Fn(&R) -> bool) -> Vec<R> {
        let (taken, kept) = std::mem::take(&mut self.open).into_iter().partition(fits);
        self.open = kept;
        let taken: Vec<R> = taken;
        taken.iter().for_each(|request| drop(self.deciders.remove(request.id())));
        taken
    }

    /// Notes who is about to answer a request. Ignored if the request is not open.
    pub(crate) fn note_decider(&mut self, id: &str, by: &str, why: Option<&str>) {
        if self.get(id).is_some() {
            let decider = Decider { by: by.to_owned(), why: why.map(str::to_owned) };
            self.deciders.insert(id.to_owned(), decider);
        }
    }

    pub(crate) fn take_decider(&mut self, id: &str) -> Option<Decider> {
        self.deciders.remove(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Identified for String {
        fn id(&self) -> &str {
            self
        }
    }

    #[test]
    fn a_decider_is_kept_only_while_its_request_is_open() {
        let mut requests = OpenRequests::default();
        requests.note_decider("a", "ann", None);
        assert_eq!(requests.take_decider("a"), None);
        requests.insert("a".to_owned());
        requests.insert("b".to_owned());
        requests.note_decider("a", "ann", Some("why"));
        assert_eq!(requests.take_all(|id| id == "a"), ["a"]);
        assert_eq!((requests.take_decider("a"), requests.ids().collect::<Vec<_>>()), (None, vec!["b"]));
    }

    #[test]
    fn two_requests_under_one_id_are_two_and_the_decided_one_is_taken() {
        let mut requests = OpenRequests::default();
        for id in ["a", "b", "a", "a"] {
            let id = requests.free_id(id.to_owned());
            requests.insert(id);
        }
        assert_eq!(requests.ids().collect::<Vec<_>>(), ["a", "b", "a#2", "a#3"]);
        requests.note_decider("a#2", "ann", None);
        assert_eq!(requests.take_decided(|id| id.starts_with('a')).as_deref(), Some("a#2"));
        assert_eq!(requests.first().map(String::as_str), Some("a"));
    }
}
