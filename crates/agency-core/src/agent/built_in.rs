//! The agents that need no configuration.
//!
//! Flags are those of the current CLIs; `config.toml` can replace each command.

use super::{Action, Agent};

/// Tried in this order when no default agent is configured.
pub(super) const PREFERRED: [&str; 3] = ["claude-code", "codex", "opencode"];

/// Used if none of `PREFERRED` is installed. Every machine has a shell.
pub(super) const FALLBACK: &str = "shell";

/// Resolves an alias. Any other name stays as it is.
pub fn canonical_name(name: &str) -> &str {
    match name {
        // The name in files of earlier versions.
        "fake" => FALLBACK,
        other => other,
    }
}

/// The agents that need no configuration.
pub fn built_ins() -> Vec<Agent> {
    vec![shell(), opencode(), claude_code(), codex(), gemini(), qwen(), copilot(), vibe(), aider()]
}

fn action(words: &[&str]) -> Option<Action> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

fn named(name: &str, display_name: &str) -> Agent {
    Agent { display_name: display_name.to_owned(), ..Agent::named(name) }
}

fn shell() -> Agent {
    Agent {
        start: action(&["sh"]),
        run: action(&["sh", "-c", "$AGENCY_MESSAGE"]),
        ..named(FALLBACK, "Shell")
    }
}

fn opencode() -> Agent {
    Agent {
        // Joined with `=`, because its parser reads a text that begins with `-`, such as a list, as more options.
        // It treats an empty `--prompt=` as no prompt.
        // The plan agent: opencode's other agent edits files and runs commands without a question.
        start: action(&["opencode", "--agent", "plan", "--prompt=$AGENCY_PROMPT"]),
        resume: action(&["opencode", "--session", "$AGENCY_SESSION_ID"]),
        run: action(&["opencode", "run", "--", "$AGENCY_MESSAGE"]),
        acp: action(&["opencode", "acp"]),
        ..named("opencode", "OpenCode")
    }
}

/// Without this, Claude Code approves its own actions in a terminal.
const CLAUDE_ASKS: [&str; 2] = ["--permission-mode", "default"];

fn claude_code() -> Agent {
    let claude = |words: &[&str]| action(&[&["claude"], &CLAUDE_ASKS[..], words].concat());
    Agent {
        start: claude(&["--", "$AGENCY_PROMPT"]),
        resume: claude(&["--resume", "$AGENCY_SESSION_ID"]),
        run: claude(&["-p", "--", "$AGENCY_MESSAGE"]),
        stream: claude(&CLAUDE_STREAM),
        acp: action(&["claude-agent-acp"]),
        acp_before_rename: action(&["claude-code-acp"]),
        mode: Some("default".to_owned()),
        ..named("claude-code", "Claude Code")
    }
}

const CLAUDE_STREAM: [&str; 11] = [
    "-p",
    "--verbose",
    "--include-partial-messages",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--permission-prompt-tool",
    "stdio",
    "--resume",
    "$AGENCY_SESSION_ID",
];

fn codex() -> Agent {
    // Codex's shared server would work outside the run's process tree, and stopping one task would stop it for all.
    let alone_and_asking = ["--no-daemon", "--ask-for-approval", "on-request"];
    Agent {
        start: action(&[&["codex"], &alone_and_asking[..], &["--", "$AGENCY_PROMPT"]].concat()),
        resume: action(&[&["codex", "resume"], &alone_and_asking[..], &["$AGENCY_SESSION_ID"]].concat()),
        run: action(&["codex", "exec", "--", "$AGENCY_MESSAGE"]),
        acp: action(&["codex-acp"]),
        mode: Some("workspace-write".to_owned()),
        ..named("codex", "Codex")
    }
}

fn gemini() -> Agent {
    Agent {
        // In a terminal, a bare text begins a conversation. `--prompt-interactive` refuses a text that begins with `-`.
        start: action(&["gemini", "--", "$AGENCY_PROMPT"]),
        resume: action(&["gemini", "--resume", "$AGENCY_SESSION_ID"]),
        run: action(&["gemini", "--prompt=$AGENCY_MESSAGE"]),
        acp: action(&["gemini", "--acp"]),
        mode: Some("default".to_owned()),
        ..named("gemini", "Gemini CLI")
    }
}

fn qwen() -> Agent {
    let asks = ["qwen", "--approval-mode", "default"];
    Agent {
        // It treats an empty `--prompt-interactive=` as no prompt.
        start: action(&[&asks[..], &["--prompt-interactive=$AGENCY_PROMPT"]].concat()),
        resume: action(&[&asks[..], &["--resume", "$AGENCY_SESSION_ID"]].concat()),
        run: action(&["qwen", "--prompt=$AGENCY_MESSAGE"]),
        acp: action(&["qwen", "--acp"]),
        // Without this it approves its own actions over ACP.
        mode: Some("default".to_owned()),
        ..named("qwen", "Qwen Code")
    }
}

fn copilot() -> Agent {
    Agent {
        start: action(&["copilot", "--interactive", "$AGENCY_PROMPT"]),
        resume: action(&["copilot", "--resume=$AGENCY_SESSION_ID"]),
        run: action(&["copilot", "--prompt=$AGENCY_MESSAGE"]),
        acp: action(&["copilot", "--acp"]),
        mode: Some("agent".to_owned()),
        ..named("copilot", "GitHub Copilot")
    }
}

fn vibe() -> Agent {
    Agent {
        start: action(&["vibe", "--agent", "ask", "--", "$AGENCY_PROMPT"]),
        resume: action(&["vibe", "--agent", "ask", "--resume", "$AGENCY_SESSION_ID"]),
        run: action(&["vibe", "--prompt", "$AGENCY_MESSAGE"]),
        acp: action(&["vibe-acp"]),
        // Without this it edits files without a question.
        mode: Some("ask".to_owned()),
        ..named("vibe", "Mistral Vibe")
    }
}

fn aider() -> Agent {
    Agent {
        // `--message` exits after the answer, so only `run` can use it.
        start: action(&["aider"]),
        run: action(&["aider", "--message=$AGENCY_MESSAGE"]),
        types_first_message: true,
        ..named("aider", "aider")
    }
}
