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

    /// Adds a request. It replaces one with the same id.
    pub(crate) fn insert(&mut self, request: R) {
        self.open.retain(|known| known.id() != request.id());
        self.open.push(request);
    }

    /// Removes the first request that fits.
    pub(crate) fn take_first(&mut self, fits: impl Fn(&R) -> bool) -> Option<R> {
        let index = self.open.iter().position(fits)?;
        Some(self.open.remove(index))
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
    fn a_request_under_a_known_id_replaces_the_old_one_and_is_the_newest() {
        let mut requests = OpenRequests::default();
        ["a", "b", "a"].iter().for_each(|id| requests.insert((*id).to_owned()));
        assert_eq!(requests.ids().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(requests.take_first(|id| id == "b").as_deref(), Some("b"));
        assert_eq!(requests.first().map(String::as_str), Some("a"));
    }
}
