//! Which function handles which method of the API.
//!
//! The daemon registers each method with one line. The line compiles only if the handler takes what can be made from the
//! parameters of the method, and answers with its result.

use std::collections::HashMap;
use std::pin::Pin;

use agency_api::method::{Method, Nothing};
use agency_api::rpc::{ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND, Request};
use agency_api::{Failure, FailureCode};
use serde_json::Value;

use crate::argument::Argument;
use crate::reply::Reply;

/// The way to the loop that owns everything, and in which all handlers run.
pub trait RequestLoop: Clone + Send + Sync + 'static {
    /// Everything that the loop owns.
    type World: 'static;

    /// Has `handle` run in the loop, and waits for its reply.
    fn request<T: Send + 'static>(
        &self,
        method: &'static str,
        handle: impl FnOnce(&mut Self::World, Reply<T>) + Send + 'static,
    ) -> impl Future<Output = Result<T, Failure>> + Send;
}

/// Its output is the result of the method as JSON.
type Answering = Pin<Box<dyn Future<Output = Result<String, ErrorObject>> + Send>>;

type Route<L> = Box<dyn Fn(L, Value) -> Answering + Send + Sync>;

/// The handlers of all methods, by name.
pub struct Router<L> {
    routes: HashMap<&'static str, Route<L>>,
}

impl<L> Default for Router<L> {
    fn default() -> Router<L> {
        Router { routes: HashMap::new() }
    }
}

impl<L: RequestLoop> Router<L> {
    /// Registers a handler that returns its answer, or a [`Later`].
    pub fn on<M, A, R, H>(&mut self, method: M, handler: H)
    where
        M: Method,
        A: Argument<L::World, M::Params>,
        R: Outcome<M::Result>,
        H: Fn(&mut L::World, A) -> R + Copy + Send + Sync + 'static,
    {
        self.on_reply(method, move |world: &mut L::World, argument: A, reply: Reply<M::Result>| {
            handler(world, argument).send_to(reply);
        });
    }

    /// Registers a handler that keeps the reply until the loop can answer.
    pub fn on_reply<M, A, H>(&mut self, _method: M, handler: H)
    where
        M: Method,
        A: Argument<L::World, M::Params>,
        H: Fn(&mut L::World, A, Reply<M::Result>) + Copy + Send + Sync + 'static,
    {
        let route = move |requests: L, params: Value| -> Answering {
            Box::pin(async move {
                let prepared = A::prepare(parse_params::<M>(params)?).await?;
                let in_loop =
                    move |world: &mut L::World, reply: Reply<M::Result>| match A::resolve(world, prepared) {
                        Ok(argument) => handler(world, argument, reply),
                        Err(failure) => reply.send(Err(failure)),
                    };
                let result = requests.request(M::NAME, in_loop).await?;
                Ok(serde_json::to_string(&result).map_err(unwritable)?)
            })
        };
        let before = self.routes.insert(M::NAME, Box::new(route));
        debug_assert!(before.is_none(), "{} has two handlers", M::NAME);
    }

    /// Has the request handled, and waits for the answer. Returns the result as JSON.
    pub async fn answer(&self, requests: &L, request: Request) -> Result<String, ErrorObject> {
        let Request { method, params, .. } = request;
        match self.routes.get(method.as_str()) {
            Some(route) => route(requests.clone(), params).await,
            None => Err(ErrorObject::new(METHOD_NOT_FOUND, format!("there is no method {method}"))),
        }
    }

    /// The names of the methods that have a handler.
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
    Failure::new("an answer cannot be written").code(FailureCode::Internal).caused_by(&cause)
}

/// An answer that takes time: the loop goes on, and a task of its own works it out.
pub struct Later<T>(Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>);

impl<T> Later<T> {
    /// The answer of `work`.
    pub fn new(work: impl Future<Output = Result<T, Failure>> + Send + 'static) -> Later<T> {
        Later(Box::pin(work))
    }

    /// Waits for the answer.
    pub async fn finish(self) -> Result<T, Failure> {
        self.0.await
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
