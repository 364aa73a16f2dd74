//! The router of the daemon's methods.
//!
//! Each file of this directory registers the methods of its subject with one line per method.

use super::loop_event::Reporter;

pub use agency_server::Later;

/// The handlers of all methods.
pub type Router = agency_server::Router<Reporter>;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agency_api::method::{EventSubscribe, Method, NAMES};
    use agency_api::rpc::{ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND, Request};
    use serde_json::Value;

    use super::*;
    use crate::world::loop_event;

    #[test]
    fn every_method_has_one_handler() {
        // Registering a second handler for a method panics in tests.
        let mut handled: BTreeSet<&str> = crate::world::build_router().names().collect();
        // The connection itself answers this one.
        assert!(handled.insert(EventSubscribe::NAME));
        assert_eq!(handled, NAMES.iter().copied().collect());
    }

    #[tokio::test]
    async fn a_method_that_does_not_exist_is_refused() {
        let (reporter, _inbox) = loop_event::channel();
        let request = Request::new(Some(1), "task.juggle", Value::Null);
        let error = Router::default().answer(&reporter, request).await.unwrap_err();
        assert_eq!(error, ErrorObject::new(METHOD_NOT_FOUND, "there is no method task.juggle"));
    }

    #[tokio::test]
    async fn parameters_that_do_not_fit_are_refused_before_the_loop_sees_them() {
        let (reporter, mut inbox) = loop_event::channel();
        let request = Request::new(Some(1), "task.get", serde_json::json!({ "cwd": 1 }));
        let error = crate::world::build_router().answer(&reporter, request).await.unwrap_err();
        assert_eq!(error.code, INVALID_PARAMS);
        assert!(error.message.starts_with("the parameters of task.get: "), "{}", error.message);
        assert!(inbox.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_caller_hears_that_the_daemon_leaves() {
        let (reporter, inbox) = loop_event::channel();
        drop(inbox);
        let request = Request::new(Some(1), "daemon.status", Value::Null);
        let error = crate::world::build_router().answer(&reporter, request).await.unwrap_err();
        assert_eq!(error.message, "the daemon is leaving");
    }
}
