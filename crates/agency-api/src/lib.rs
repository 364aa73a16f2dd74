//! The types that Agency's processes exchange: methods and views of the API, events, failures, the keeper's frames.
//!
//! Encodes and decodes, and finds sockets and directories. The daemon decides who may call what, and when.

#![warn(missing_docs)]

pub mod bytes;
pub mod caller;
pub mod chat;
pub mod config;
pub mod connection;
pub mod daemon_socket;
pub mod desk;
pub mod environment;
pub mod event;
pub mod failure;
pub mod failure_code;
pub mod file;
pub mod keeper;
pub mod mcp;
pub mod method;
pub mod notify;
pub mod paths;
pub mod process;
pub mod project;
pub mod pty;
pub mod queue;
pub mod recent;
pub mod recent_events;
pub mod remark;
pub mod rpc;
pub mod search;
pub mod shell;
pub mod socket;
pub mod timeline;
pub mod trash;
pub mod view;
pub mod work;

pub use bytes::Bytes;
pub use failure::Failure;
pub use failure_code::FailureCode;
pub use process::ProcessIdentity;
