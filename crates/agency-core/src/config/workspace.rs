//! How a fresh workspace is made ready to run: `[workspace]`.
//!
//! Not here: the copying, running and counting itself.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceConfig {
    /// Ignored files that a fresh workspace gets a copy of, as `.gitignore` writes them.
    pub copy: Vec<String>,
    /// One after another, each a program and its arguments.
    pub setup: Vec<Vec<String>>,
    pub teardown: Vec<Vec<String>>,
    /// For all commands of a setup or teardown together; zero is no limit.
    pub setup_timeout: Duration,
    /// How many each workspace gets; 0 is none.
    pub ports: u32,
    pub port_base: u32,
    pub opener: Option<Vec<String>>,
    /// The trash gets ignored files too.
    pub keep_ignored: bool,
}

impl Default for WorkspaceConfig {
    fn default() -> WorkspaceConfig {
        WorkspaceConfig {
            copy: Vec::new(),
            setup: Vec::new(),
            teardown: Vec::new(),
            setup_timeout: Duration::from_secs(30 * 60),
            ports: 10,
            port_base: 20_000,
            opener: None,
            keep_ignored: false,
        }
    }
}
