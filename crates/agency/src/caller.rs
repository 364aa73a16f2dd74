//! What a launch takes from the process that asks for it: environment, terminal size, limits.

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

/// The same, of one who listens to what setup commands print.
pub(crate) fn listening(options: &[String], watch: &str) -> Caller {
    Caller { watch: Some(watch.to_owned()), ..caller(options) }
}

/// The terminal's size, from whichever of our ends is one.
pub(crate) fn terminal_size() -> Option<Size> {
    size_of(std::io::stdout()).or_else(|| size_of(std::io::stdin()))
}

fn size_of(end: impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(end).ok()?;
    // A terminal that nobody has sized yet says zero.
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size {
        cols: size.ws_col,
        rows: size.ws_row,
        x_pixels: size.ws_xpixel,
        y_pixels: size.ws_ypixel,
    })
}

/// (soft, hard); no limit is the largest number.
fn open_files() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// The run we are part of, when an agent calls us.
pub(crate) fn inside_run() -> Option<String> {
    std::env::var("AGENCY_RUN_ID").ok().filter(|run| !run.is_empty())
}

pub(crate) fn ssh_auth_sock() -> Option<Bytes> {
    std::env::var_os("SSH_AUTH_SOCK").filter(|path| !path.is_empty()).map(Bytes::from)
}
