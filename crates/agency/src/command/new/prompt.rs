//! The text of a new task, from the command line, the user's editor or standard input.
//!
//! Invariant: a text from an editor or from standard input is not lost. Until the task exists, it is in a draft.

use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use agency_api::paths::StateDir;
use agency_api::{Bytes, Failure, FailureCode};

use crate::cli::New;
use crate::draft::Draft;
use crate::outcome::with_hint;
use crate::output;
use crate::text_input::{LONGEST_TEXT, read_stdin};

const HEADER: &str = "\
<!-- agency: what should the agent do? Write it below in Markdown, save, and quit.
     Agency removes this comment. Leave without a text to start nothing. -->

";
const HEADER_START: &[u8] = b"<!-- agency:";
const HEADER_END: &[u8] = b"-->";

#[derive(Debug)]
pub(super) struct Prompt {
    text: Vec<u8>,
    slug: String,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// The command line, which the history of the shell has; or no text at all.
    CommandLine,
    StandardInput,
    Editor(Draft),
}

impl Prompt {
    pub(super) async fn obtain(state: &StateDir, args: &New) -> Result<Prompt, Failure> {
        let name = args.slug.clone().unwrap_or_default();
        let (stdin, stdout) = (io::stdin().is_terminal(), io::stdout().is_terminal());
        let (text, source) = match (&args.message, args.command.is_empty()) {
            (Some(message), _) => (message.as_bytes().to_vec(), Source::CommandLine),
            // A command or an earlier session needs no text, and a terminal as standard input holds none.
            (None, has_no_command) if stdin && (!has_no_command || args.resume.is_some()) => {
                (Vec::new(), Source::CommandLine)
            }
            (None, true) if stdin && stdout => text_from_editor(state, &name).await?,
            (None, _) => (text_from_stdin(stdin)?, Source::StandardInput),
        };
        Ok(Prompt { text, slug: name, source })
    }

    pub(super) fn text(&self) -> Bytes {
        Bytes(self.text.clone())
    }

    /// Deletes the draft: the task exists and holds the text.
    pub(super) fn delete_draft(self) {
        if let Source::Editor(draft) = self.source {
            draft.delete();
        }
    }

    /// Saves the text, because the task was not created. Adds to the hint where the text is.
    pub(super) fn save(self, state: &StateDir, failure: Failure) -> Failure {
        if self.text.is_empty() {
            self.delete_draft();
            return failure;
        }
        let saved = match self.source {
            Source::CommandLine => return failure,
            Source::Editor(draft) => {
                draft.overwrite(&self.text).map(|()| draft).map_err(|err| err.to_string())
            }
            Source::StandardInput => Draft::create(state, &self.slug, "md", &self.text)
                .map_err(|failure| failure.causes.into_iter().next().unwrap_or(failure.message)),
        };
        match saved {
            Ok(draft) => with_hint(failure, &saved_hint(&self.slug, draft.path())),
            Err(cause) => failure.because(format!("and the text could not be saved: {cause}")),
        }
    }
}

fn saved_hint(slug: &str, file: &Path) -> String {
    let file = file.display().to_string();
    let slug = if slug.is_empty() { String::new() } else { format!("{} ", shell_word(slug)) };
    format!("your text is saved: agency new {slug}< {}", shell_word(&file))
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn text_from_stdin(is_terminal: bool) -> Result<Vec<u8>, Failure> {
    if is_terminal {
        output::note("What should the agent do? Ctrl-d ends the text.");
    }
    Ok(without_line_ends(read_stdin(LONGEST_TEXT)?))
}

/// Removes the line ends at the end of the text, as a shell does with the output of a command.
fn without_line_ends(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    let keep = text[end..].iter().position(|byte| *byte == b'\n' || *byte == b'\r');
    text.truncate(if end == 0 { 0 } else { keep.map_or(text.len(), |at| end + at) });
    text
}

async fn text_from_editor(state: &StateDir, slug: &str) -> Result<(Vec<u8>, Source), Failure> {
    let draft = Draft::create(state, slug, "md", HEADER.as_bytes())?;
    let outcome = draft.edit().await;
    let text = without_header(&draft.read()?);
    let failed = |failure: Failure| Failure {
        message: "the editor failed, so no task was created".to_owned(),
        hint: Some("set $VISUAL or $EDITOR, or give the text with -m".to_owned()),
        ..failure
    };
    match outcome.map_err(failed) {
        Ok(()) if text.is_empty() => {
            draft.delete();
            Err(no_text(slug))
        }
        Ok(()) => Ok((text, Source::Editor(draft))),
        Err(failure) if text.is_empty() => {
            draft.delete();
            Err(failure)
        }
        Err(failure) => Err(match draft.overwrite(&text) {
            Ok(()) => with_hint(failure, &saved_hint(slug, draft.path())),
            Err(err) => {
                failure.because(format!("and {} could not be written: {err}", draft.path().display()))
            }
        }),
    }
}

fn no_text(slug: &str) -> Failure {
    Failure::new("no task was created")
        .code(FailureCode::Cancelled)
        .because("you left the editor without a text")
        .hint(format!(
            "an agent without a first message: agency new {} -m ''",
            if slug.is_empty() { "NAME".to_owned() } else { shell_word(slug) }
        ))
}

fn without_header(written: &[u8]) -> Vec<u8> {
    let end = match written.starts_with(HEADER_START) {
        true => written.windows(HEADER_END.len()).position(|window| window == HEADER_END),
        false => None,
    };
    let text = match end {
        Some(at) => &written[at + HEADER_END.len()..],
        None => written,
    };
    text.trim_ascii().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_comment_is_removed() {
        let typed = format!("{HEADER}fix it\n<!-- keep -->\n\n");
        assert_eq!(without_header(typed.as_bytes()), b"fix it\n<!-- keep -->");
        assert_eq!(without_header(HEADER.as_bytes()), b"");
        assert_eq!(without_header(b"<!-- mine --> x"), b"<!-- mine --> x");
        assert_eq!(without_header(b"<!-- agency: torn"), b"<!-- agency: torn");
    }

    #[test]
    fn line_ends_after_a_piped_text_are_not_part_of_it() {
        let stripped = |text: &str| String::from_utf8(without_line_ends(text.into())).unwrap();
        assert_eq!(stripped("fix it\n"), "fix it");
        assert_eq!(stripped("a\n\nb  \r\n\n"), "a\n\nb  ");
        assert_eq!(stripped(" \n\n"), "");
        assert_eq!(stripped(""), "");
    }

    #[test]
    fn a_path_with_spaces_can_be_pasted() {
        assert_eq!(shell_word("/a/b-1.md"), "/a/b-1.md");
        assert_eq!(shell_word("/a b/it's"), "'/a b/it'\\''s'");
    }
}
