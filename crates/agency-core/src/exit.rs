//! How a run ended: the code that people see, the wait status of the kernel, and whether the end was requested.
//!
//! Not here: what follows from it (see `restart` and `supervisor`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const SIGKILL: i32 = 9;
pub(crate) const SIGTERM: i32 = 15;

/// The exit code, the signal, or `Unknown` if the exit status was lost.
///
/// Written as `0`, `-15`, `unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExitCode {
    /// The process exited with this code.
    Code(i32),
    /// This signal ended the process.
    Signal(i32),
    /// The exit status is lost.
    Unknown,
}

impl ExitCode {
    /// Whether the process exited with 0.
    pub fn is_success(self) -> bool {
        self == ExitCode::Code(0)
    }
}

impl fmt::Display for ExitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitCode::Code(code) => write!(f, "{code}"),
            ExitCode::Signal(signal) => write!(f, "-{signal}"),
            ExitCode::Unknown => f.write_str("unknown"),
        }
    }
}

/// The text is not an exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an exit code; expected a number, minus a signal, or `unknown`")]
pub struct NotAnExitCode(String);

impl FromStr for ExitCode {
    type Err = NotAnExitCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "unknown" {
            return Ok(ExitCode::Unknown);
        }
        let number: i32 = text.parse().map_err(|_| NotAnExitCode(text.to_owned()))?;
        if number >= 0 {
            return Ok(ExitCode::Code(number));
        }
        number.checked_neg().map(ExitCode::Signal).ok_or_else(|| NotAnExitCode(text.to_owned()))
    }
}

/// The end of a task's last run, as people need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LastRunExit {
    /// The code that people see.
    pub code: ExitCode,
    /// Whether a caller requested this end.
    pub asked: bool,
}

impl LastRunExit {
    /// Whether the run ended badly without a request. An exit status that is lost counts as bad.
    pub fn is_failure(self) -> bool {
        !self.asked && !self.code.is_success()
    }
}

/// The signal that ended a run that Agency stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoppedBy {
    /// SIGTERM
    Term,
    /// SIGKILL
    Kill,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunExit {
    /// The code that people see. For a run that Agency stopped it is −15 or −9, whatever the wait status was.
    pub code: ExitCode,
    /// The wait status of the kernel.
    pub raw: ExitCode,
    /// Whether a caller requested this end.
    pub requested: bool,
}

impl RunExit {
    /// The end of a run that ended by itself.
    pub fn by_itself(raw: ExitCode) -> Self {
        RunExit { code: raw, raw, requested: false }
    }

    /// The end of a run that Agency stopped.
    pub fn stopped(by: StoppedBy, raw: ExitCode) -> Self {
        let signal = match by {
            StoppedBy::Term => SIGTERM,
            StoppedBy::Kill => SIGKILL,
        };
        RunExit { code: ExitCode::Signal(signal), raw, requested: true }
    }

    /// The same end for a caller that had requested it: a run may end by itself while a stop is on its way.
    pub fn as_requested(self) -> Self {
        if self.requested { self } else { RunExit::stopped(StoppedBy::Term, self.raw) }
    }

    /// Whether the run ended without a request, with a code other than 0 or by a signal.
    ///
    /// An unknown end is not a crash: a restart of a run that may have finished would do its work twice.
    pub fn is_crash(&self) -> bool {
        match self.raw {
            ExitCode::Code(code) => !self.requested && code != 0,
            ExitCode::Signal(_) => !self.requested,
            ExitCode::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_as_people_read_them_and_read_back() {
        for (code, text) in
            [(ExitCode::Code(0), "0"), (ExitCode::Signal(15), "-15"), (ExitCode::Unknown, "unknown")]
        {
            assert_eq!(code.to_string(), text);
            assert_eq!(text.parse(), Ok(code));
        }
        assert!("soon".parse::<ExitCode>().is_err());
        assert!("-2147483648".parse::<ExitCode>().is_err());
    }

    #[test]
    fn a_stopped_run_reports_the_signal_and_keeps_its_own_code() {
        let exit = RunExit::stopped(StoppedBy::Term, ExitCode::Code(0));
        assert_eq!((exit.code, exit.raw), (ExitCode::Signal(15), ExitCode::Code(0)));
        let exit = RunExit::stopped(StoppedBy::Kill, ExitCode::Signal(9));
        assert_eq!(exit.code, ExitCode::Signal(9));
        assert!(!exit.is_crash());
    }

    #[test]
    fn only_an_end_without_request_that_failed_is_a_crash() {
        assert!(RunExit::by_itself(ExitCode::Code(1)).is_crash());
        assert!(RunExit::by_itself(ExitCode::Signal(11)).is_crash());
        assert!(!RunExit::by_itself(ExitCode::Code(0)).is_crash());
        assert!(!RunExit::by_itself(ExitCode::Unknown).is_crash());
        assert!(!RunExit::by_itself(ExitCode::Code(1)).as_requested().is_crash());
    }
}
