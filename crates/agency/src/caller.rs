//! The parts of this process that a launch needs: environment, terminal size, limits.

use std::os::fd::AsFd;

use agency_api::Bytes;
use agency_api::config::Overrides;
use agency_api::keeper::Size;
use agency_api::method::Caller;
use rustix::process::{Resource, getrlimit};

pub(crate) fn caller(options: &[String]) -> Caller {
    Caller {
        env: std::env::vars_os().map(|(name, value)| (name.into(), value.into())).collect(),
        size: terminal_size(),
        open_files: Some(open_files()),
        overrides: Overrides::from_process(options),
        watch: None,
    }
}

/// The same for a caller that watches the output of setup commands.
pub(crate) fn caller_with_watch(options: &[String], watch: &str) -> Caller {
    Caller { watch: Some(watch.to_owned()), ..caller(options) }
}

/// The size of the terminal on standard output, or else on standard input.
pub(crate) fn terminal_size() -> Option<Size> {
    size_of(std::io::stdout()).or_else(|| size_of(std::io::stdin()))
}

/// A number that names the terminal on standard output: its device, and the session that it serves, because a later terminal
/// may get the same device.
pub(crate) fn terminal() -> Option<u64> {
    let terminal = std::io::stdout();
    let session = rustix::termios::tcgetsid(&terminal).ok()?;
    let device = rustix::fs::fstat(&terminal).ok()?.st_rdev;
    // Readers of JSON keep whole numbers exact below 2^53.
    Some(
        ((device & 0x7fff_ffff) << 22)
            | (u64::from(session.as_raw_nonzero().get().unsigned_abs()) & 0x3f_ffff),
    )
}

fn size_of(terminal: impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    // A terminal without a size reports zero.
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size {
        cols: size.ws_col,
        rows: size.ws_row,
        x_pixels: size.ws_xpixel,
        y_pixels: size.ws_ypixel,
    })
}

/// Soft and hard limit. The largest number stands for no limit.
fn open_files() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// The run of the agent that called us, if an agent did.
pub(crate) fn inside_run() -> Option<String> {
    std::env::var("AGENCY_RUN_ID").ok().filter(|run| !run.is_empty())
}

pub(crate) fn ssh_auth_sock() -> Option<Bytes> {
    std::env::var_os("SSH_AUTH_SOCK").filter(|path| !path.is_empty()).map(Bytes::from)
}
