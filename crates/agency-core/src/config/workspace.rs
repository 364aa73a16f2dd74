//! How Agency prepares a fresh workspace: `[workspace]`.
//!
//! Not here: copying files, running commands and choosing ports.

use std::time::Duration;

/// The table `[workspace]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceConfig {
    /// Patterns, as in `.gitignore`, of ignored files that Agency copies into a fresh workspace.
    pub copy: Vec<String>,
    /// Commands that prepare a workspace, run one after another.
    pub setup: Vec<Vec<String>>,
    /// Commands that run before a workspace is removed.
    pub teardown: Vec<Vec<String>>,
    /// Limit for all commands of a setup or teardown together; zero means no limit.
    pub setup_timeout: Duration,
    /// Number of ports of each workspace.
    pub ports: u32,
    /// The first port that Agency gives out.
    pub port_base: u32,
    /// The command of `agency open`; unset: the user's editor.
    pub opener: Option<Vec<String>>,
    /// Whether the trash keeps ignored files too.
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
