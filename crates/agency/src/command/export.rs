//! `agency export`: writes the terminal session of a task as a recording.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agency_api::method::{LogForm, LogRead, LogReadParams};
use agency_api::{Failure, FailureCode};

use crate::cli::Export;
use crate::context::Context;
use crate::log_stream::copy_log;
use crate::outcome::{CommandError, CommandResult};
use crate::output;
use crate::progress;

pub(super) async fn export(context: &Context, args: Export) -> CommandResult {
    let output = args.output.filter(|path| path.as_os_str() != "-").map(|path| target_file(path, args.force));
    let output = output.transpose()?;
    let task = context.task(&args.name.task)?;
    let form = if args.input { LogForm::CastWithInput } else { LogForm::Cast };
    let mut daemon = context.daemon().await?;
    let answer = daemon.call(LogRead, LogReadParams { task, shell: None, form, follow: false }).await?;
    let stream = daemon.stream(&answer.stream).await?;
    match output {
        None => copy_log(stream, &mut std::io::stdout().lock()).await?,
        Some(path) => {
            let mut file = PartialFile::beside(&path)?;
            progress::during("writing the recording", copy_log(stream, &mut file.writer)).await?;
            file.finish(&path)?;
            output::note(&format!("{} written", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file to write: a new one, or with --force the target of the path.
fn target_file(path: PathBuf, force: bool) -> Result<PathBuf, Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(path);
    }
    if !force {
        return Err(Failure::new(format!("{} already exists", path.display()))
            .code(FailureCode::AlreadyExists)
            .hint("name another file, or pass --force"));
    }
    let cannot = |code| Failure::new(format!("cannot write {}", path.display())).code(code);
    let real = path.canonicalize().map_err(|err| cannot(FailureCode::IoError).caused_by(&err))?;
    match real.is_file() {
        true => Ok(real),
        // The rename at the end would replace a device or a directory.
        false => Err(cannot(FailureCode::InvalidArgument)
            .because("it is not a regular file")
            .hint("`-o -` writes to standard output")),
    }
}

/// A file that gets its name at the end, so that an incomplete recording does not look complete.
struct PartialFile {
    writer: BufWriter<File>,
    path: PathBuf,
}

impl PartialFile {
    fn beside(path: &Path) -> Result<PartialFile, CommandError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let file = File::create(&part).map_err(|err| cannot_write(path, &err))?;
        Ok(PartialFile { writer: BufWriter::new(file), path: part })
    }

    fn finish(mut self, path: &Path) -> Result<(), CommandError> {
        let finished = self.writer.flush().and_then(|()| fs::rename(&self.path, path));
        finished.map_err(|err| cannot_write(path, &err))
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // If all went well, the file has been renamed, and there is nothing to remove.
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CommandError {
    Failure::new(format!("cannot write {}", path.display()))
        .code(FailureCode::IoError)
        .caused_by(error)
        .into()
}
