//! Works in workspaces beside the daemon's loop, and answers in the words of the API.
//!
//! Everything here takes long: it runs git or jj through `agency-workspace`, the user's own commands, or reads many
//! files. The loop gives it all that it needs and gets the outcome back. Nothing here knows the loop, and nothing here
//! decides whether an operation may begin: the supervisor in `agency-core` does.
//!
//! * [`workspace`] makes and removes a workspace; [`setup`] prepares a new one with the commands of [`setup_commands`];
//!   [`directory_watch`] reports that one may have disappeared.
//! * [`diff`] shows the work in it, [`turns`] the work of one turn of its agent, [`finished`] whether all of it is merged.
//! * [`files`] lists, reads and writes single files; [`beneath`] opens them so that no path leaves the workspace.
//! * [`remark_lines`] finds the lines that remarks are about.
//! * [`trash`] keeps removed tasks and restores them; [`traces`] finds and removes everything that Agency made.
//! * [`failure`] turns errors of `agency-workspace` into failures, each with its code.

pub mod beneath;
pub mod diff;
pub mod directory_watch;
pub mod failure;
pub mod files;
pub mod finished;
pub mod remark_lines;
pub mod setup;
pub mod setup_commands;
pub mod traces;
pub mod trash;
pub mod turns;
pub mod workspace;
