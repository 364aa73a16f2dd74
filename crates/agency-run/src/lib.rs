//! Follows runs: connects to keepers, folds their journals, serves viewers, delivers messages and carries shared connections.
//!
//! Decides nothing about tasks. A run reports what happens to it through a [`report::ReportSink`] and obeys the commands that
//! the daemon sends through its [`handle::RunHandle`].
//!
//! # Modules
//!
//! - **Starting a run.** [`plan`] decides command, environment and terms; [`environment`], [`limits`], [`capacity`] and
//!   `hooks` hold the details; [`start`] brings them together; [`launch`] starts the keeper from [`keeper_copy`]; [`run_meta`] is the run's file on disk.
//!   [`shell`] starts a terminal beside the agent.
//! - **Following a run.** [`follow`] begins; `follower` is the loop that all runs share; `terminal_task` and
//!   `conversation_task` are the two kinds of runs. [`command`], [`handle`] and [`report`] are how the daemon and a run talk.
//! - **The keeper.** `keeper_socket` does the handshake and frames; [`keeper_link`] regains a lost keeper; `keeper_process`
//!   finds its process; [`process_tree`] ends the processes of a run without a keeper.
//! - **Finding runs.** [`run_search`] finds the runs of earlier daemons by locks, keepers and processes.
//! - **Folding journals.** [`fold`] makes a terminal of a journal, [`conversation`] a conversation; `probe` converts what
//!   keepers probe; `compression` compresses closed segments.
//! - **States.** `state_reporter` reports each change once, `state_log` keeps the changes, [`explain`] says why.
//! - **Viewers.** [`viewers`] decides what each viewer sees, [`viewer_queue`] holds what waits for it, `frame_clock` paces frames.
//! - **Sending.** The driver's send machine decides when a terminal gets text and Enter; `line_queue` writes lines to
//!   protocols; `rule_decisions` knows which approvals rules may still answer.
//! - **Connections.** [`connection`] runs the shared process of an ACP agent and a session for each task.
//! - **Logs and recordings.** [`timeline`] puts what happened in order; [`logs`] reads output, [`text_log`] makes text of it, [`screen_dump`] shows a screen of now or of the past, `cast` writes recordings, [`recording`] reads them.
//!
//! [`view`] converts to the types of the API; [`blocking`], [`reply`] and [`timer`] are small helpers for tasks.

#![warn(missing_docs)]

pub mod blocking;
pub mod capacity;
mod cast;
mod chat_view;
pub mod command;
mod compression;
pub mod connection;
pub mod conversation;
mod conversation_task;
pub mod dialog_log;
pub mod environment;
pub mod explain;
pub mod fold;
pub mod follow;
mod follower;
mod frame_clock;
pub mod handle;
mod hooks;
pub mod keeper_copy;
pub mod keeper_link;
mod keeper_process;
mod keeper_socket;
pub mod launch;
pub mod limits;
mod line_queue;
pub mod logs;
pub mod plan;
mod probe;
pub mod process_tree;
pub mod recording;
pub mod reply;
pub mod report;
mod rule_decisions;
pub mod run_context;
pub mod run_meta;
pub mod run_search;
pub mod screen_dump;
pub mod shell;
pub mod start;
mod state_log;
mod state_reporter;
mod terminal_task;
pub mod text_log;
pub mod timeline;
pub mod timer;
pub mod view;
pub mod viewer_queue;
pub mod viewers;
mod wall_clock;
pub mod wrong_state_report;

pub use state_log::last_known_state;
