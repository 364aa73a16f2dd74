//! Which function handles which method of the API.
//!
//! Each file of `world` registers the methods of its subject with one line per method. The line compiles only if the
//! handler takes what can be made from the parameters of the method, and answers with its result.

use std::collections::HashMap;
use std::pin::Pin;

use agency_api::Failure;
use agency_api::method::{Method, Nothing};
use agency_api::rpc::{ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND, Request};
use serde_json::Value;

use super::World;
use super::argument::Argument;
use super::loop_event::Reporter;
use crate::reply::Reply;

type Answering = Pin<Box<dyn Future<Output = Result<Value, ErrorObject>> + Send>>;

type Route = Box<dyn Fn(Reporter, Value) -> Answering + Send + Sync>;

/// The handlers of all methods, by name.
#[derive(Default)]
pub struct Router {
    routes: HashMap<&'static str, Route>,
}

impl Router {
    /// Registers a handler that returns its answer, or a [`Later`].
    pub fn on<M, A, R, H>(&mut self, method: M, handler: H)
    where
        M: Method,
        A: Argument<M::Params>,
        R: Outcome<M::Result>,
        H: Fn(&mut World, A) -> R + Copy + Send + Sync + 'static,
    {
        self.on_reply(method, move |world: &mut World, argument: A, reply: Reply<M::Result>| {
            handler(world, argument).send_to(reply);
        });
    }

    /// Registers a handler that keeps the reply until the loop can answer.
    pub fn on_reply<M, A, H>(&mut self, _method: M, handler: H)
    where
        M: Method,
        A: Argument<M::Params>,
        H: Fn(&mut World, A, Reply<M::Result>) + Copy + Send + Sync + 'static,
    {
        let route = move |reporter: Reporter, params: Value| -> Answering {
            Box::pin(async move {
                let prepared = A::prepare(parse_params::<M>(params)?).await?;
                let in_loop =
                    move |world: &mut World, reply: Reply<M::Result>| match A::resolve(world, prepared) {
                        Ok(argument) => handler(world, argument, reply),
                        Err(failure) => reply.send(Err(failure)),
                    };
                let result = reporter.request(M::NAME, in_loop).await?;
                Ok(serde_json::to_value(result).map_err(unwritable)?)
            })
        };
        let before = self.routes.insert(M::NAME, Box::new(route));
        debug_assert!(before.is_none(), "{} has two handlers", M::NAME);
    }

    /// Has the request handled, and waits for the answer.
    pub async fn answer(&self, reporter: &Reporter, request: Request) -> Result<Value, ErrorObject> {
        let Request { method, params, .. } = request;
        match self.routes.get(method.as_str()) {
            Some(route) => route(reporter.clone(), params).await,
            None => Err(ErrorObject::new(METHOD_NOT_FOUND, format!("there is no method {method}"))),
        }
    }

    /// The names of the methods that have a handler.
    #[cfg(test)]
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.routes.keys().copied()
    }
}

/// Reads the parameters of a request. Absent parameters are read as `{}`.
pub fn parse_params<M: Method>(params: Value) -> Result<M::Params, ErrorObject> {
    let params = if params.is_null() { serde_json::json!(Nothing {}) } else { params };
    serde_json::from_value(params)
        .map_err(|err| ErrorObject::new(INVALID_PARAMS, format!("the parameters of {}: {err}", M::NAME)))
}

fn unwritable(cause: serde_json::Error) -> Failure {
    Failure::new("an answer cannot be written").caused_by(&cause)
}

/// An answer that takes time: the loop goes on, and a task of its own works it out.
pub struct Later<T>(Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>);

impl<T> Later<T> {
    /// The answer of `work`.
    pub fn new(work: impl Future<Output = Result<T, Failure>> + Send + 'static) -> Later<T> {
        Later(Box::pin(work))
    }
}

/// A value that a handler may return for a method whose result is `T`.
pub trait Outcome<T> {
    /// Answers, now or later.
    fn send_to(self, reply: Reply<T>);
}

impl<T> Outcome<T> for T {
    fn send_to(self, reply: Reply<T>) {
        reply.send(Ok(self));
    }
}

impl<T> Outcome<T> for Result<T, Failure> {
    fn send_to(self, reply: Reply<T>) {
        reply.send(self);
    }
}

impl<T: Send + 'static> Outcome<T> for Result<Later<T>, Failure> {
    fn send_to(self, reply: Reply<T>) {
        match self {
            Ok(Later(work)) => drop(tokio::spawn(async move { reply.send(work.await) })),
            Err(failure) => reply.send(Err(failure)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agency_api::method::{EventSubscribe, NAMES};

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
