//! Notifies the user through their own terminal, without drawing on the screen.

/// A value of `notify.terminal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalNotification {
    Osc9,
    Osc777,
    Bell,
    Nothing,
}

impl TerminalNotification {
    /// `auto` chooses what this terminal is known to understand. An unknown word means `auto`.
    pub(crate) fn from_setting(
        word: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> TerminalNotification {
        match word {
            "osc9" => TerminalNotification::Osc9,
            "osc777" => TerminalNotification::Osc777,
            "bell" => TerminalNotification::Bell,
            "none" => TerminalNotification::Nothing,
            _ => detect(variable),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            TerminalNotification::Osc9 => "OSC 9",
            TerminalNotification::Osc777 => "OSC 777",
            TerminalNotification::Bell => "the bell",
            TerminalNotification::Nothing => "nothing",
        }
    }

    /// The bytes that make the terminal show the text. Control characters are removed, so the text cannot end the sequence.
    pub(crate) fn bytes(self, text: &str) -> Vec<u8> {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        match self {
            // `Agency: ` comes first, because some terminals give a digit and a semicolon another meaning.
            TerminalNotification::Osc9 => format!("\x1b]9;Agency: {text}\x1b\\").into_bytes(),
            TerminalNotification::Osc777 => {
                format!("\x1b]777;notify;Agency;{}\x1b\\", text.replace(';', ",")).into_bytes()
            }
            TerminalNotification::Bell => b"\x07".to_vec(),
            TerminalNotification::Nothing => Vec::new(),
        }
    }
}

/// A variable of this process; `None` if it is empty.
pub(crate) fn environment_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// tmux, screen and many terminals drop sequences that they do not know. The bell works everywhere.
fn detect(variable: impl Fn(&str) -> Option<String>) -> TerminalNotification {
    let term = variable("TERM").unwrap_or_default();
    let between = ["TMUX", "STY", "ZELLIJ"].into_iter().any(|name| variable(name).is_some());
    if between || term.starts_with("tmux") || term.starts_with("screen") {
        return TerminalNotification::Bell;
    }
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    let by_program = matches!(program.as_str(), "iTerm.app" | "WezTerm" | "ghostty");
    let by_term =
        ["xterm-kitty", "xterm-ghostty", "foot", "wezterm"].iter().any(|name| term.starts_with(name));
    match by_program || by_term {
        true => TerminalNotification::Osc9,
        false if term.starts_with("rxvt") => TerminalNotification::Osc777,
        false => TerminalNotification::Bell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, variables: &[(&str, &str)], wanted: TerminalNotification) {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(TerminalNotification::from_setting(word, variable), wanted, "{word} {variables:?}");
    }

    #[test]
    fn an_unknown_terminal_gets_the_bell() {
        check("auto", &[("TERM", "xterm-256color")], TerminalNotification::Bell);
        check("auto", &[], TerminalNotification::Bell);
        check("auto", &[("TERM", "xterm-kitty")], TerminalNotification::Osc9);
        check("auto", &[("TERM", "foot")], TerminalNotification::Osc9);
        check("auto", &[("TERM", "rxvt-unicode-256color")], TerminalNotification::Osc777);
        check("auto", &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")], TerminalNotification::Osc9);
        check("auto", &[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], TerminalNotification::Bell);
        check(
            "auto",
            &[("TERM", "screen.xterm-256color"), ("TERM_PROGRAM", "iTerm.app")],
            TerminalNotification::Bell,
        );
        check("osc777", &[("TMUX", "/tmp/x")], TerminalNotification::Osc777);
        check("none", &[("TERM", "foot")], TerminalNotification::Nothing);
    }

    #[test]
    fn the_text_cannot_end_the_sequence() {
        let evil = "a\x1b\\b\x07c\u{9c}d\r\n;e";
        assert_eq!(TerminalNotification::Osc9.bytes(evil), b"\x1b]9;Agency: a\\bcd;e\x1b\\");
        assert_eq!(TerminalNotification::Osc777.bytes(evil), b"\x1b]777;notify;Agency;a\\bcd,e\x1b\\");
        assert_eq!(
            (TerminalNotification::Bell.bytes(evil), TerminalNotification::Nothing.bytes(evil)),
            (b"\x07".to_vec(), Vec::new())
        );
    }
}
