//! `$AGENCY_*` in an agent's command and environment.
//!
//! No shell is involved and nothing is quoted: each argument stays one argument.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::ids::TaskId;
use crate::slug::Slug;

/// The number of the task.
pub const TASK_ID: &str = "AGENCY_TASK_ID";
/// The short name of the task.
pub const SLUG: &str = "AGENCY_SLUG";
/// The body of the task file.
pub const BODY: &str = "AGENCY_BODY";
/// The first message: the body without its final newlines.
pub const PROMPT: &str = "AGENCY_PROMPT";
/// The directory of the project.
pub const PROJECT_ROOT: &str = "AGENCY_PROJECT_ROOT";
/// The directory of the workspace.
pub const WORKTREE: &str = "AGENCY_WORKTREE";
/// The agent's own id of the session to resume.
pub const SESSION_ID: &str = "AGENCY_SESSION_ID";
/// The message of `agency run`.
pub const MESSAGE: &str = "AGENCY_MESSAGE";
/// The first port of the workspace; `AGENCY_PORT_1` is the second, and so on.
pub const PORT: &str = "AGENCY_PORT";

/// Every name. The daemon removes these from a child's environment first, so that an agent that another agent started does
/// not inherit the other task's session.
pub const NAMES: [&str; 9] = [TASK_ID, SLUG, BODY, PROMPT, PROJECT_ROOT, WORKTREE, SESSION_ID, MESSAGE, PORT];

/// Consecutive ports that belong to one workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The first port.
    pub first: u16,
    /// At least one.
    pub count: u16,
}

impl Ports {
    /// The port with this number, counted from 0.
    pub fn get(self, number: u16) -> Option<u16> {
        (number < self.count).then(|| self.first.checked_add(number)).flatten()
    }

    /// Every port by the name of its variable.
    pub fn named(self) -> impl Iterator<Item = (String, u16)> {
        let name = |number: u16| if number == 0 { PORT.to_owned() } else { format!("{PORT}_{number}") };
        (0..self.count).filter_map(move |number| Some((name(number), self.get(number)?)))
    }
}

/// The values of the names in one launch.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    /// [`TASK_ID`]
    pub task_id: TaskId,
    /// [`SLUG`]
    pub slug: Slug,
    /// The body of the task file.
    pub body: Vec<u8>,
    /// [`PROJECT_ROOT`]
    pub project_root: PathBuf,
    /// [`WORKTREE`]
    pub worktree: PathBuf,
    /// [`SESSION_ID`]
    pub session_id: Option<String>,
    /// [`MESSAGE`]
    pub message: Option<OsString>,
    /// [`PORT`]
    pub ports: Option<Ports>,
}

/// Logs must not contain prompts.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message = self.message.as_ref().map(|message| message.len());
        f.debug_struct("Tokens")
            .field("task_id", &self.task_id)
            .field("slug", &self.slug)
            .field("body_len", &self.body.len())
            .field("message_len", &message)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// The variables for the child. Names without a value are left out.
    pub fn exported(&self) -> Vec<(String, OsString)> {
        let named = NAMES.into_iter().filter(|name| *name != PORT);
        let named = named.filter_map(|name| Some((name.to_owned(), self.value(name)?)));
        let ports = self.ports.into_iter().flat_map(Ports::named);
        named.chain(ports.map(|(name, port)| (name, port.to_string().into()))).collect()
    }

    /// The command with every token replaced.
    pub fn expand(&self, action: &[String]) -> Vec<OsString> {
        let mut argv: Vec<OsString> = Vec::new();
        let mut dropped = false;
        for (at, argument) in action.iter().enumerate() {
            let expanded = self.expand_argument(argument);
            if at > 0 && expanded.is_empty() && is_only_a_token(argument) {
                if at > 1 && is_option(&action[at - 1]) {
                    argv.pop();
                }
                dropped = true;
            } else {
                argv.push(expanded);
            }
        }
        // `tool -- $AGENCY_PROMPT` without a prompt is `tool`.
        if dropped && argv.len() > 1 && argv.last().is_some_and(|last| last == "--") {
            argv.pop();
        }
        argv
    }

    /// One pass from left to right. Does not expand tokens inside inserted values.
    fn expand_argument(&self, argument: &str) -> OsString {
        let mut expanded = Vec::new();
        let mut rest = argument;
        while let Some(dollar) = rest.find('$') {
            expanded.extend_from_slice(&rest.as_bytes()[..dollar]);
            rest = &rest[dollar + 1..];
            match leading_name(rest) {
                Some(name) => {
                    expanded.extend_from_slice(self.value(name).unwrap_or_default().as_bytes());
                    rest = &rest[name.len()..];
                }
                None => expanded.push(b'$'),
            }
        }
        expanded.extend_from_slice(rest.as_bytes());
        OsString::from_vec(expanded)
    }

    fn value(&self, name: &str) -> Option<OsString> {
        let value = match name {
            TASK_ID => self.task_id.to_string().into(),
            SLUG => self.slug.as_str().into(),
            BODY => OsString::from_vec(self.body.clone()),
            PROMPT => OsString::from_vec(first_message(&self.body).to_vec()),
            PROJECT_ROOT => self.project_root.clone().into(),
            WORKTREE => self.worktree.clone().into(),
            SESSION_ID => self.session_id.clone()?.into(),
            MESSAGE => self.message.clone()?,
            PORT => self.ports?.get(0)?.to_string().into(),
            name => self.ports?.get(port_number(name)?)?.to_string().into(),
        };
        Some(without_nul(value))
    }
}

/// The first message to an agent: the body without its final newlines. A body of only white space is no message.
pub fn first_message(body: &[u8]) -> &[u8] {
    if body.iter().all(u8::is_ascii_whitespace) {
        return &[];
    }
    let end = body.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &body[..end]
}

/// Whether this argument contains the task's text.
pub(crate) fn mentions_prompt(argument: &str) -> bool {
    argument.split('$').skip(1).any(|rest| matches!(leading_name(rest), Some(PROMPT | BODY)))
}

/// Whether this argument contains the task's session.
pub(crate) fn mentions_session(argument: &str) -> bool {
    argument.split('$').skip(1).any(|rest| leading_name(rest) == Some(SESSION_ID))
}

/// The longest name at the beginning of `text`.
fn leading_name(text: &str) -> Option<&str> {
    let name = NAMES.into_iter().filter(|name| text.starts_with(name)).max_by_key(|name| name.len())?;
    let numbered = text[name.len()..].strip_prefix('_').filter(|_| name == PORT).map(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        &text[..name.len() + 1 + digits]
    });
    numbered.filter(|numbered| port_number(numbered).is_some()).or(Some(&text[..name.len()]))
}

/// The number in a name such as `AGENCY_PORT_1`.
fn port_number(name: &str) -> Option<u16> {
    let digits = name.strip_prefix(PORT)?.strip_prefix('_')?;
    digits.parse().ok().filter(|_| !digits.starts_with(['0', '+']))
}

fn is_only_a_token(argument: &str) -> bool {
    argument.strip_prefix('$').is_some_and(|name| leading_name(name) == Some(name))
}

/// `--` ends the options and is not one itself.
fn is_option(argument: &str) -> bool {
    argument.starts_with('-') && argument != "--"
}

/// A NUL ends a string in exec and in the environment, so neither can contain one.
fn without_nul(value: OsString) -> OsString {
    if !value.as_bytes().contains(&0) {
        return value;
    }
    OsString::from_vec(value.into_vec().into_iter().filter(|byte| *byte != 0).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(body: &str) -> Tokens {
        Tokens {
            task_id: TaskId(7),
            slug: Slug::new("fix-login").expect("a slug"),
            body: body.as_bytes().to_vec(),
            project_root: "/p".into(),
            worktree: "/p/.agency/worktrees/7-fix-login".into(),
            session_id: None,
            message: None,
            ports: None,
        }
    }

    /// Words between spaces; `~` stands for a space inside a word.
    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(|word| word.replace('~', " ")).collect()
    }

    fn expanded(tokens: &Tokens, line: &str) -> Vec<String> {
        let argv = tokens.expand(&words(line));
        argv.into_iter().map(|argument| argument.into_string().expect("UTF-8")).collect()
    }

    #[test]
    fn tokens_are_replaced_in_their_place() {
        let tokens = Tokens { session_id: Some("s1".to_owned()), ..tokens("make it work\n") };
        for (line, expected) in [
            ("tool $AGENCY_PROMPT", "tool make~it~work"),
            ("tool --id=$AGENCY_TASK_ID/$AGENCY_SLUG", "tool --id=7/fix-login"),
            ("cd $AGENCY_PROJECT_ROOT $AGENCY_WORKTREE", "cd /p /p/.agency/worktrees/7-fix-login"),
            ("tool --resume $AGENCY_SESSION_ID", "tool --resume s1"),
            ("$AGENCY_SLUG-tool x", "fix-login-tool x"),
            // Other variables, or no token at all.
            ("tool $HOME $ $$ $AGENCY_ $AGENCY AGENCY_SLUG", "tool $HOME $ $$ $AGENCY_ $AGENCY AGENCY_SLUG"),
            ("tool $$AGENCY_SLUG ${AGENCY_SLUG}", "tool $fix-login ${AGENCY_SLUG}"),
            // A name is replaced everywhere, also at the beginning of a longer word.
            ("tool $AGENCY_TASK_IDX $AGENCY_SLUG$AGENCY_SLUG", "tool 7X fix-loginfix-login"),
        ] {
            assert_eq!(expanded(&tokens, line), words(expected), "{line}");
        }
        assert_eq!(expanded(&tokens, "tool $AGENCY_BODY"), ["tool", "make it work\n"]);
    }

    #[test]
    fn values_are_never_expanded_again() {
        let tokens = Tokens {
            message: Some("$AGENCY_SLUG $AGENCY_MESSAGE".into()),
            ..tokens("say $AGENCY_TASK_ID and $(rm -rf /) `x` \"y\"")
        };
        assert_eq!(
            expanded(&tokens, "tool $AGENCY_PROMPT $AGENCY_MESSAGE"),
            ["tool", "say $AGENCY_TASK_ID and $(rm -rf /) `x` \"y\"", "$AGENCY_SLUG $AGENCY_MESSAGE"]
        );
        // A value that ends in `$` does not make a token with what follows it.
        let tokens = Tokens { body: b"$".to_vec(), ..tokens };
        assert_eq!(expanded(&tokens, "tool $AGENCY_PROMPTAGENCY_SLUG"), ["tool", "$AGENCY_SLUG"]);
    }

    #[test]
    fn an_empty_token_goes_with_its_option() {
        for (line, expected) in [
            ("tool -p $AGENCY_PROMPT", "tool"),
            ("tool --agent plan -p $AGENCY_PROMPT --end", "tool --agent plan --end"),
            ("tool --agent plan $AGENCY_PROMPT", "tool --agent plan"),
            ("tool -p $AGENCY_PROMPT $AGENCY_BODY", "tool"),
            ("tool -a -p $AGENCY_PROMPT", "tool -a"),
            ("tool --resume $AGENCY_SESSION_ID -m $AGENCY_MESSAGE", "tool"),
            // Only an argument that is exactly the token goes.
            ("tool --prompt=$AGENCY_PROMPT", "tool --prompt="),
            ("tool -p $AGENCY_PROMPT$AGENCY_BODY", "tool -p <empty>"),
            // `--` is not an option, and goes only if nothing follows.
            ("tool -v -- $AGENCY_PROMPT", "tool -v"),
            ("tool -- $AGENCY_PROMPT $AGENCY_SLUG", "tool -- fix-login"),
            ("tool --", "tool --"),
            // The program stays, whatever it is.
            ("$AGENCY_PROMPT x", "<empty> x"),
            ("-tool $AGENCY_PROMPT", "-tool"),
        ] {
            let expected: Vec<String> =
                words(expected).into_iter().map(|word| word.replace("<empty>", "")).collect();
            assert_eq!(expanded(&tokens(""), line), expected, "{line}");
        }
    }

    #[test]
    fn only_the_command_decides_what_an_option_is() {
        let tokens = Tokens { message: Some("-x".into()), ..tokens("") };
        assert_eq!(expanded(&tokens, "tool $AGENCY_MESSAGE $AGENCY_PROMPT"), ["tool", "-x"]);
    }

    #[test]
    fn the_first_message_is_the_body_without_its_last_newlines() {
        for (body, expected) in [
            ("", ""),
            ("\n", ""),
            (" \r\n\t\n", ""),
            ("fix\n", "fix"),
            ("fix\r\n", "fix"),
            ("\n  fix \n\n", "\n  fix "),
            ("a\n\nb", "a\n\nb"),
        ] {
            assert_eq!(first_message(body.as_bytes()), expected.as_bytes(), "{body:?}");
        }
    }

    #[test]
    fn the_child_gets_the_same_names() {
        let bare = tokens("fix\n");
        let names: Vec<String> = bare.exported().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [TASK_ID, SLUG, BODY, PROMPT, PROJECT_ROOT, WORKTREE]);
        let ports = Some(Ports { first: 20_000, count: 12 });
        let all = Tokens { session_id: Some("s1".to_owned()), message: Some("go".into()), ports, ..bare };
        let exported = all.exported();
        assert_eq!(exported.len(), NAMES.len() + 11);
        for (name, value) in exported {
            assert_eq!(all.expand(&["x".to_owned(), format!("${name}")])[1], value, "{name}");
        }
    }

    #[test]
    fn ports_are_counted_from_the_first() {
        let ports = Some(Ports { first: 20_000, count: 11 });
        for (line, expected) in [
            ("serve --port $AGENCY_PORT", "serve --port 20000"),
            ("serve $AGENCY_PORT_1 $AGENCY_PORT_10", "serve 20001 20010"),
            ("serve :$AGENCY_PORT/x :$AGENCY_PORT_2x", "serve :20000/x :20002x"),
            ("serve $AGENCY_PORT_ $AGENCY_PORT_0 $AGENCY_PORTS", "serve 20000_ 20000_0 20000S"),
            // A port beyond the last one is empty, and goes with its option.
            ("serve -p $AGENCY_PORT_11 x", "serve x"),
            ("serve -p $AGENCY_PORT_99999999 x", "serve -p 20000_99999999 x"),
        ] {
            assert_eq!(expanded(&Tokens { ports, ..tokens("") }, line), words(expected), "{line}");
        }
        assert_eq!(expanded(&tokens(""), "serve --port $AGENCY_PORT"), ["serve"]);
        let last = Ports { first: u16::MAX, count: 2 };
        assert_eq!((last.get(0), last.get(1), last.named().count()), (Some(u16::MAX), None, 1));
    }

    #[test]
    fn bytes_that_are_not_text_pass_and_nul_does_not() {
        let tokens = Tokens {
            body: b"caf\xe9\0 au lait\n".to_vec(),
            worktree: OsString::from_vec(b"/w/\xff".to_vec()).into(),
            ..tokens("")
        };
        let argv = tokens.expand(&words("tool $AGENCY_PROMPT $AGENCY_WORKTREE/x"));
        assert_eq!(argv[1].as_bytes(), b"caf\xe9 au lait");
        assert_eq!(argv[2].as_bytes(), b"/w/\xff/x");
    }

    #[test]
    fn prompts_do_not_reach_logs() {
        let tokens = Tokens { message: Some("secret".into()), ..tokens("secret") };
        assert!(!format!("{tokens:?}").contains("secret"));
    }

    proptest! {
        #[test]
        fn any_prompt_arrives_as_one_argument(body in "[^\0]*[^\0\\s]") {
            let argv = tokens(&body).expand(&words("tool --quiet $AGENCY_PROMPT --end"));
            prop_assert_eq!(argv, ["tool", "--quiet", body.as_str(), "--end"]);
        }

        #[test]
        fn a_command_without_our_names_stays_as_it_is(action in prop::collection::vec("[^A]*", 0..5)) {
            let argv = tokens("").expand(&action);
            prop_assert_eq!(argv, action.iter().map(OsString::from).collect::<Vec<_>>());
        }
    }
}
