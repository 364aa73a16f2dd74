//! Where a new task's text comes from: the command line, an editor, or standard input.
//!
//! Invariant: a text that was written for us is not lost. Until the task exists it is in a file.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agency_api::paths::{StateDir, create_private};
use agency_api::{Bytes, Failure, FailureCode};
use tokio::signal::unix::{SignalKind, signal};

use super::send::read_stdin;
use crate::cli::New;
use crate::stop::with_hint;
use crate::{editor, output};

/// Whoever has more to say should say it in a file of the repository.
const LONGEST_TEXT: u64 = 16 << 20;

const HEADER: &str = "\
<!-- agency: what should the agent do? Write it below in Markdown, save, and quit.
     Agency removes this comment. Without a text, the agent starts without one. -->

";
const HEADER_BEGINS: &[u8] = b"<!-- agency:";
const HEADER_ENDS: &[u8] = b"-->";

#[derive(Debug)]
pub(super) struct Prompt {
    text: Vec<u8>,
    slug: String,
    drafts: PathBuf,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// Typed in the command itself, where the shell's history has it; or nothing at all.
    CommandLine,
    StandardInput,
    /// The file that was edited.
    Editor(PathBuf),
}

impl Prompt {
    pub(super) async fn obtain(state: &StateDir, args: &New) -> Result<Prompt, Failure> {
        let drafts = state.root().join("drafts");
        let (stdin, stdout) = (io::stdin().is_terminal(), io::stdout().is_terminal());
        let (text, source) = match (&args.message, args.command.is_empty()) {
            (Some(message), _) => (message.as_bytes().to_vec(), Source::CommandLine),
            // A command needs no words, and nobody is there to be asked for them.
            (None, false) if stdin => (Vec::new(), Source::CommandLine),
            (None, true) if stdin && stdout => edited(&drafts, &args.slug).await?,
            (None, _) => (piped(stdin)?, Source::StandardInput),
        };
        Ok(Prompt { text, slug: args.slug.clone(), drafts, source })
    }

    pub(super) fn text(&self) -> Bytes {
        Bytes(self.text.clone())
    }

    /// The task exists and holds the text.
    pub(super) fn forget(self) {
        if let Source::Editor(file) = self.source {
            forget(&file);
        }
    }

    /// The task was not made: says where the text is now.
    pub(super) fn keep(self, failure: Failure) -> Failure {
        if self.text.is_empty() {
            self.forget();
            return failure;
        }
        let kept = match &self.source {
            Source::CommandLine => return failure,
            Source::Editor(file) => write_private(file, &self.text).map(|()| file.clone()),
            Source::StandardInput => new_draft(&self.drafts, &self.slug, "md", &self.text),
        };
        match kept {
            Ok(file) => with_hint(failure, &kept_hint(&self.slug, &file)),
            Err(err) => failure.because(format!("and the text could not be saved: {err}")),
        }
    }
}

fn kept_hint(slug: &str, file: &Path) -> String {
    let file = file.display().to_string();
    format!("your text is saved: agency new {} < {}", shell_word(slug), shell_word(&file))
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn piped(from_terminal: bool) -> Result<Vec<u8>, Failure> {
    if from_terminal {
        output::note("What should the agent do? Ctrl-d ends the text.");
    }
    Ok(without_line_ends(read_stdin(LONGEST_TEXT)?))
}

/// As the shell does with what a command prints.
fn without_line_ends(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    let keep = text[end..].iter().position(|byte| *byte == b'\n' || *byte == b'\r');
    text.truncate(if end == 0 { 0 } else { keep.map_or(text.len(), |at| end + at) });
    text
}

async fn edited(drafts: &Path, slug: &str) -> Result<(Vec<u8>, Source), Failure> {
    let cannot = |err: io::Error| {
        Failure::new("cannot create a file for the editor").code(FailureCode::IoError).caused_by(&err)
    };
    let file = new_draft(drafts, slug, "md", HEADER.as_bytes()).map_err(cannot)?;
    let outcome = edit(&file).await;
    let written = std::fs::read(&file).map_err(|err| {
        Failure::new(format!("cannot read {}", file.display())).code(FailureCode::IoError).caused_by(&err)
    })?;
    let text = without_header(&written);
    match outcome {
        Ok(()) => Ok((text, Source::Editor(file))),
        Err(failure) if text.is_empty() => {
            forget(&file);
            Err(failure)
        }
        Err(failure) => Err(match write_private(&file, &text) {
            Ok(()) => with_hint(failure, &kept_hint(slug, &file)),
            Err(err) => failure.because(format!("and {} could not be written: {err}", file.display())),
        }),
    }
}

pub(super) async fn edit(file: &Path) -> Result<(), Failure> {
    let words = editor::words()?;
    let (program, words) = words
        .split_first()
        .ok_or_else(|| Failure::new("there is no editor").code(FailureCode::CommandNotFound))?;
    let failed = |code: FailureCode, cause: String| {
        Failure::new("the editor failed, so no task was created")
            .code(code)
            .because(format!("{program}: {cause}"))
            .hint("set $VISUAL or $EDITOR, or give the text with -m")
    };
    // A ctrl-c meant for the editor reaches us too, and must not end us under it.
    let _interrupts =
        signal(SignalKind::interrupt()).map_err(|err| failed(FailureCode::Internal, err.to_string()))?;
    let status = tokio::process::Command::new(program).args(words).arg(file).status().await;
    match status {
        Ok(status) if status.success() => Ok(()),
        // Editors exit with another code than 0 when the user gives up, as by `:cq`.
        Ok(status) => Err(failed(FailureCode::Cancelled, status.to_string())),
        Err(err) => Err(failed(FailureCode::CommandNotFound, err.to_string())),
    }
}

fn without_header(written: &[u8]) -> Vec<u8> {
    let end = match written.starts_with(HEADER_BEGINS) {
        true => written.windows(HEADER_ENDS.len()).position(|window| window == HEADER_ENDS),
        false => None,
    };
    let text = match end {
        Some(at) => &written[at + HEADER_ENDS.len()..],
        None => written,
    };
    text.trim_ascii().to_vec()
}

/// A new file of its own: two drafts of one name are two files.
pub(super) fn new_draft(drafts: &Path, slug: &str, kind: &str, text: &[u8]) -> io::Result<PathBuf> {
    create_private(drafts)?;
    let safe: String = slug.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    for number in 1.. {
        let file = drafts.join(format!("{safe}.{number}.{kind}"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file) {
            Ok(mut open) => return open.write_all(text).map(|()| file),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {}
            Err(err) => return Err(err),
        }
    }
    unreachable!("numbers do not end")
}

fn write_private(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    open.write_all(text)
}

fn forget(file: &Path) {
    if let Err(err) = std::fs::remove_file(file) {
        output::warning(&format!("cannot delete {}: {err}", file.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_comment_is_taken_out() {
        let typed = format!("{HEADER}fix it\n<!-- keep -->\n\n");
        assert_eq!(without_header(typed.as_bytes()), b"fix it\n<!-- keep -->");
        assert_eq!(without_header(HEADER.as_bytes()), b"");
        assert_eq!(without_header(b"<!-- mine --> x"), b"<!-- mine --> x");
        assert_eq!(without_header(b"<!-- agency: torn"), b"<!-- agency: torn");
    }

    #[test]
    fn line_ends_behind_a_piped_text_are_not_part_of_it() {
        let stripped = |text: &str| String::from_utf8(without_line_ends(text.into())).unwrap();
        assert_eq!(stripped("fix it\n"), "fix it");
        assert_eq!(stripped("a\n\nb  \r\n\n"), "a\n\nb  ");
        assert_eq!(stripped(" \n\n"), "");
        assert_eq!(stripped(""), "");
    }

    #[test]
    fn drafts_never_overwrite_each_other_and_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let drafts = home.path().join("drafts");
        let first = new_draft(&drafts, "../fix", "md", b"one").unwrap();
        let second = new_draft(&drafts, "../fix", "md", b"two").unwrap();
        assert_eq!(first.parent(), Some(drafts.as_path()));
        assert_eq!(
            (std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap()),
            (b"one".into(), b"two".into())
        );
        assert_eq!(std::fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_path_with_spaces_can_be_pasted() {
        assert_eq!(shell_word("/a/b-1.md"), "/a/b-1.md");
        assert_eq!(shell_word("/a b/it's"), "'/a b/it'\\''s'");
    }
}
