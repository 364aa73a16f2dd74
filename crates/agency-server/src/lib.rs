//! The server of the API: WebSockets on a Unix socket, requests with typed answers, events and streams.
//!
//! It knows neither tasks nor projects. The daemon registers one function per method at the [`Router`], and each of them
//! runs in the daemon's loop, which the server reaches through [`RequestLoop`].
//!
//! A request travels through these modules: `server` accepts the connection and reads the request; `router` finds the
//! handler, and `argument` makes its argument from the parameters; the loop runs the handler; `reply` carries the answer
//! back, with the type that the method declares. `streams` holds the terminals and logs that the loop has promised to
//! callers.

#![warn(missing_docs)]

mod argument;
mod reply;
mod router;
mod server;
mod streams;

pub use argument::Argument;
pub use reply::Reply;
pub use router::{Later, Outcome, RequestLoop, Router};
pub use server::{ServerContext, UNSENT_ANSWERS, serve};
pub use streams::{Promised, Streams};
