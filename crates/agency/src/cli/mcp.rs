//! The command that lets agents use Agency.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
An MCP server on standard input and output, for an agent to start, watch, wait
for, read and message other tasks of its project. A task that an agent starts is
shown under that agent's in `agency ls`. Limits are yours, in config.toml; the
daemon holds them:

  [mcp]
  allow     = [\"list_tasks\", \"read_task\"]   # the tools there are; docs/configuration.md
  depth     = 1                             # agents that agents start may start none
  max_tasks = 5                             # live tasks of one agent

Agents interrupt and stop only what they started themselves. Answering for you
(`answer_approval`) is not allowed unless you name it.

An agent that Agency runs is known by AGENCY_RUN_ID in its environment. Codex
passes on only the variables that it is told to, in ~/.codex/config.toml:

  [mcp_servers.agency]
  command  = \"agency\"
  args     = [\"mcp\"]
  env_vars = [\"AGENCY_SOCKET\", \"AGENCY_RUN_ID\", \"AGENCY_PROJECT_ROOT\"]

Over ACP (`--driver acp`), where tasks share a process, `offer = true` in [mcp]
gives each session this server with the variables of its own task.

Examples:
  claude mcp add --scope user agency -- agency mcp     # Claude Code has the tools from now on
  claude mcp add agency -- agency mcp                  # in this project alone")]
pub(crate) struct Mcp {}
