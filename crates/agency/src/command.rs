//! The subcommands. `approve`, `connections`, `flag`, `mark`, `merge`, `setting` and `start` hold two or three similar
//! commands; every other file holds one.
//!
//! Here is only the list. `cli` defines the arguments.

pub(crate) mod daemon;

pub(crate) mod agents;
mod approvals;
mod approve;
mod attach;
mod brief;
mod chat;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
mod conflicts;
mod connections;
pub(crate) mod cost;
mod diff;
pub(crate) mod doctor;
mod edit;
mod events;
mod exec;
mod explain;
mod export;
mod files;
mod flag;
pub(crate) mod gc;
pub(crate) mod help;
mod interrupt;
mod logs;
mod ls;
mod man;
mod mark;
mod mcp;
mod merge;
mod new;
mod next;
pub(crate) mod notify;
mod open;
mod option;
mod orphans;
mod path;
mod projects;
mod promote;
mod queue;
mod remark;
mod rename;
mod replay;
mod review;
mod rm;
mod run;
pub(crate) mod screen;
mod search;
pub(crate) mod send;
mod setting;
mod setup;
mod shell;
mod since;
mod start;
mod stop;
mod timeline;
mod trust;
mod turns;
mod undo;
pub(crate) mod uninstall;
mod visit;
pub(crate) mod wait;

use agency_api::method;

use crate::cli::Command;
use crate::context::Context;
use crate::outcome::CommandResult;

pub(crate) async fn dispatch(context: &Context, command: Option<Command>) -> CommandResult {
    let Some(command) = command else { return ls::overview(context).await };
    match command {
        Command::New(args) => new::new(context, args).await,
        Command::Ls(args) => ls::ls(context, args).await,
        Command::Attach(args) => attach::attach(context, args).await,
        Command::Send(args) => send::send(context, args).await,
        Command::Chat(args) => next::go_on(context, chat::chat(context, args).await?).await,
        Command::Search(args) => search::search(context, args).await,
        Command::Approvals(args) => approvals::approvals(context, args).await,
        Command::Approve(args) => approve::approve(context, args).await,
        Command::Deny(args) => approve::deny(context, args).await,
        Command::Interrupt(args) => interrupt::interrupt(context, args).await,
        Command::Model(args) => setting::setting(context, setting::Which::Model, args).await,
        Command::Option(args) => option::option(context, args).await,
        Command::Mode(args) => setting::setting(context, setting::Which::Mode, args).await,
        Command::Connections(args) => connections::connections(context, args).await,
        Command::Reconnect(args) => connections::reconnect(context, args).await,
        Command::Cost(args) => cost::cost(context, args).await,
        Command::Queue(args) => queue::queue(context, args).await,
        Command::Logs(args) => logs::logs(context, args).await,
        Command::Screen(args) => screen::screen(context, args).await,
        Command::Export(args) => export::export(context, args).await,
        Command::Replay(args) => replay::replay(args).await,
        Command::Start(args) => start::start(context, args).await,
        Command::Stop(args) => stop::stop(context, args).await,
        Command::Restart(args) => start::restart(context, args).await,
        Command::Idle(args) => mark::mark(context, method::TaskIdle, args).await,
        Command::Complete(args) => mark::mark(context, method::TaskComplete, args).await,
        Command::Fail(args) => mark::mark(context, method::TaskFail, args).await,
        Command::Diff(args) => diff::diff(context, args).await,
        Command::Remark(args) => remark::remark(context, args).await,
        Command::Remarks(args) => remark::list(context, args).await,
        Command::Review(args) => review::review(context, args).await,
        Command::Merge(args) => merge::merge(context, args).await,
        Command::Sync(args) => merge::sync(context, args).await,
        Command::Conflicts(args) => conflicts::conflicts(context, args).await,
        Command::Rm(args) => rm::rm(context, args).await,
        Command::Undo(args) => undo::undo(context, args).await,
        Command::Compare(args) => compare::compare(context, args).await,
        Command::Promote(args) => promote::promote(context, args).await,
        Command::Timeline(args) => timeline::timeline(context, args).await,
        Command::Turns(args) => turns::turns(context, args).await,
        Command::Gc(args) => gc::gc(context, args).await,
        Command::Setup(args) => setup::setup(context, args).await,
        Command::Open(args) => open::open(context, args).await,
        Command::Path(args) => path::path(context, args).await,
        Command::Shell(args) => shell::shell(context, args).await,
        Command::Shells(args) => shell::shells(context, args).await,
        Command::Exec(args) => exec::exec(context, args).await,
        Command::Files(args) => files::files(context, args).await,
        Command::Cat(args) => files::cat(context, args).await,
        Command::Write(args) => files::write(context, args).await,
        Command::Run(args) => run::run(context, args).await,
        Command::Events(args) => events::events(context, args).await,
        Command::Explain(args) => explain::explain(context, args).await,
        Command::Wait(args) => wait::wait(context, args).await,
        Command::Next => next::next(context).await,
        Command::Since(args) => since::since(context, args).await,
        Command::Edit(args) => edit::edit(context, args).await,
        Command::Rename(args) => rename::rename(context, args).await,
        Command::Pin(args) => flag::pin(context, args).await,
        Command::Snooze(args) => flag::snooze(context, args).await,
        Command::Notify { command } => notify::notify(context, command).await,
        Command::Orphans(args) => orphans::orphans(context, args).await,
        Command::Config(args) => config::config(context, args).await,
        Command::Trust(args) => trust::trust(context, args).await,
        Command::Agents(args) => agents::agents(context, args).await,
        Command::Projects(args) => projects::projects(context, args).await,
        Command::Doctor(args) => doctor::doctor(context, args).await,
        Command::Mcp(_) => mcp::mcp(context).await,
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => man::man(context, &args),
        Command::Help(args) => Ok(help::help(&args)),
        Command::Uninstall(args) => uninstall::uninstall(context, args).await,
        Command::Daemon { command } => daemon::daemon(context, command).await,
    }
}
