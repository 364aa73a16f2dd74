//! What Agency's processes say to each other: the wire types of every door.
//!
//! Holds no behaviour beyond encoding: who may say what, and when, is decided elsewhere.

pub mod bytes;
pub mod chat;
pub mod config;
pub mod connection;
pub mod environment;
pub mod event;
pub mod failure;
pub mod failure_code;
pub mod keeper;
pub mod mcp;
pub mod method;
pub mod notify;
pub mod paths;
pub mod process;
pub mod pty;
pub mod rpc;
pub mod search;
pub mod socket;
pub mod trash;
pub mod view;
pub mod work;

pub use bytes::Bytes;
pub use failure::Failure;
pub use failure_code::FailureCode;
pub use process::ProcessIdentity;
