//! The terminal's own way to tell its user something, without drawing on the screen.

/// In the words of `notify.terminal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Osc9,
    Osc777,
    Bell,
    Nothing,
}

impl How {
    /// `auto` is what this terminal is known to understand. A word of a later version is taken for `auto`.
    pub(crate) fn of(word: &str, variable: impl Fn(&str) -> Option<String>) -> How {
        match word {
            "osc9" => How::Osc9,
            "osc777" => How::Osc777,
            "bell" => How::Bell,
            "none" => How::Nothing,
            _ => known(variable),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            How::Osc9 => "OSC 9",
            How::Osc777 => "OSC 777",
            How::Bell => "the bell",
            How::Nothing => "nothing",
        }
    }

    /// What makes the terminal tell it. Nothing in the text can end or begin a sequence.
    pub(crate) fn bytes(self, text: &str) -> Vec<u8> {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        match self {
            // A digit and a semicolon after the number would be something else to some terminals.
            How::Osc9 => format!("\x1b]9;Agency: {text}\x1b\\").into_bytes(),
            How::Osc777 => format!("\x1b]777;notify;Agency;{}\x1b\\", text.replace(';', ",")).into_bytes(),
            How::Bell => b"\x07".to_vec(),
            How::Nothing => Vec::new(),
        }
    }
}

/// Of the process's own environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Programs in between swallow what they do not know, and so do many terminals; a bell comes through everywhere.
fn known(variable: impl Fn(&str) -> Option<String>) -> How {
    let term = variable("TERM").unwrap_or_default();
    let between = ["TMUX", "STY", "ZELLIJ"].into_iter().any(|name| variable(name).is_some());
    if between || term.starts_with("tmux") || term.starts_with("screen") {
        return How::Bell;
    }
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    let by_program = matches!(program.as_str(), "iTerm.app" | "WezTerm" | "ghostty");
    let by_term =
        ["xterm-kitty", "xterm-ghostty", "foot", "wezterm"].iter().any(|name| term.starts_with(name));
    match by_program || by_term {
        true => How::Osc9,
        false if term.starts_with("rxvt") => How::Osc777,
        false => How::Bell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, variables: &[(&str, &str)], how: How) {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(How::of(word, variable), how, "{word} {variables:?}");
    }

    #[test]
    fn a_terminal_that_is_not_known_to_understand_more_rings() {
        check("auto", &[("TERM", "xterm-256color")], How::Bell);
        check("auto", &[], How::Bell);
        check("auto", &[("TERM", "xterm-kitty")], How::Osc9);
        check("auto", &[("TERM", "foot")], How::Osc9);
        check("auto", &[("TERM", "rxvt-unicode-256color")], How::Osc777);
        check("auto", &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")], How::Osc9);
        check("auto", &[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], How::Bell);
        check("auto", &[("TERM", "screen.xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], How::Bell);
        check("osc777", &[("TMUX", "/tmp/x")], How::Osc777);
        check("none", &[("TERM", "foot")], How::Nothing);
    }

    #[test]
    fn no_text_leaves_its_sequence() {
        let evil = "a\x1b\\b\x07c\u{9c}d\r\n;e";
        assert_eq!(How::Osc9.bytes(evil), b"\x1b]9;Agency: a\\bcd;e\x1b\\");
        assert_eq!(How::Osc777.bytes(evil), b"\x1b]777;notify;Agency;a\\bcd,e\x1b\\");
        assert_eq!((How::Bell.bytes(evil), How::Nothing.bytes(evil)), (b"\x07".to_vec(), Vec::new()));
    }
}
