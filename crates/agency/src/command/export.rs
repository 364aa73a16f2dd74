//! `agency export`: what a task's terminal showed, as a recording.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agency_api::method::{LogForm, LogRead, LogReadParams};
use agency_api::{Failure, FailureCode};

use crate::cli::Export;
use crate::context::Context;
use crate::log_stream::copy_log;
use crate::output;
use crate::progress;
use crate::stop::{Done, Stop};

pub(super) async fn export(context: &Context, args: Export) -> Done {
    let output = args.output.filter(|path| path.as_os_str() != "-").map(|path| place(path, args.force));
    let output = output.transpose()?;
    let task = context.task(&args.name.task)?;
    let form = if args.input { LogForm::CastWithInput } else { LogForm::Cast };
    let mut daemon = context.daemon().await?;
    let answer = daemon.call(LogRead, LogReadParams { task, form, follow: false }).await?;
    let stream = daemon.stream(&answer.stream).await?;
    match output {
        None => copy_log(stream, &mut std::io::stdout().lock()).await?,
        Some(path) => {
            let mut file = Unfinished::beside(&path)?;
            progress::during("writing the recording", copy_log(stream, &mut file.writer)).await?;
            file.finish(&path)?;
            output::note(&format!("{} written", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the recording goes: a new file, or the one that a name leads to.
fn place(path: PathBuf, force: bool) -> Result<PathBuf, Failure> {
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
        // A device or a directory would be replaced by a file.
        false => Err(cannot(FailureCode::InvalidArgument)
            .because("it is not a regular file")
            .hint("`-o -` writes to standard output")),
    }
}

/// Half a recording must not look like a whole one: the name is given at the end.
struct Unfinished {
    writer: BufWriter<File>,
    path: PathBuf,
}

impl Unfinished {
    fn beside(path: &Path) -> Result<Unfinished, Stop> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let file = File::create(&part).map_err(|err| cannot_write(path, &err))?;
        Ok(Unfinished { writer: BufWriter::new(file), path: part })
    }

    fn finish(mut self, path: &Path) -> Result<(), Stop> {
        let finished = self.writer.flush().and_then(|()| fs::rename(&self.path, path));
        finished.map_err(|err| cannot_write(path, &err))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Renamed by now, unless something went wrong.
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Stop {
    Failure::new(format!("cannot write {}", path.display()))
        .code(FailureCode::IoError)
        .caused_by(error)
        .into()
}
