//! The failure of a launch: which step failed, and the error from the kernel.

use std::io;

use agency_api::keeper::LaunchAnswer;

#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    cause: io::Error,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, cause: io::Error) -> Failure {
        Failure { what: what.into(), cause }
    }

    /// Names the step whose error it is, for `map_err`.
    pub(crate) fn at(what: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
        move |cause| Failure { what: what.into(), cause }
    }

    pub(crate) fn answer(&self) -> LaunchAnswer {
        let errno = self.cause.raw_os_error();
        // Without an error number, the text is all we have.
        let what = match errno {
            Some(_) => self.what.clone(),
            None => format!("{}: {}", self.what, self.cause),
        };
        LaunchAnswer::Failed { what, errno: errno.unwrap_or(libc::EINVAL) }
    }
}
