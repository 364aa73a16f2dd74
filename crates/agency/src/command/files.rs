//! `agency files`, `agency cat` and `agency write`: files in a task's workspace, through the daemon.

use std::io::{Read, Write};
use std::process::ExitCode;

use agency_api::file::{
    FileContent, FileEntry, FileKind, FileListParams, FileReadParams, FileWriteParams, LONGEST_PART,
};
use agency_api::method::{FileList, FileRead, FileWrite};
use agency_api::{Bytes, Failure, FailureCode};

use crate::cli::{Cat, Files, WriteFile};
use crate::context::Context;
use crate::outcome::{CommandResult, failed};
use crate::output::{self, count, printable};

pub(super) async fn files(context: &Context, args: Files) -> CommandResult {
    let params =
        FileListParams { task: context.task(&args.name.task)?, path: args.directory.map(Bytes::from) };
    let listing = context.daemon().await?.call(FileList, params).await?;
    if args.json {
        output::json(&listing)?;
        return Ok(ExitCode::SUCCESS);
    }
    for entry in &listing.entries {
        output::line(&entry_line(entry))?;
    }
    if listing.left_out > 0 {
        output::warning(&format!("{} more", count(listing.left_out as usize, "entry")));
    }
    Ok(ExitCode::SUCCESS)
}

fn entry_line(entry: &FileEntry) -> String {
    let name = printable(&entry.name.as_path().display().to_string());
    match (entry.kind, &entry.target) {
        (FileKind::Directory, _) => format!("{name}/"),
        (FileKind::Link, Some(target)) => {
            format!("{name} -> {}", printable(&target.as_path().display().to_string()))
        }
        (FileKind::File | FileKind::Link | FileKind::Other, _) => name,
    }
}

pub(super) async fn cat(context: &Context, args: Cat) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let mut params = FileReadParams {
        task: context.task(&args.name.task)?,
        path: args.path.into(),
        offset: 0,
        max_bytes: Some(LONGEST_PART),
    };
    let mut part = daemon.call(FileRead, params.clone()).await?;
    if args.json {
        output::json(&part)?;
        return Ok(ExitCode::SUCCESS);
    }
    let digest = part.digest.clone();
    let mut stdout = std::io::stdout().lock();
    loop {
        stdout.write_all(&part.content.0)?;
        if !part.more {
            break;
        }
        params.offset = part.offset + part.content.0.len() as u64;
        part = daemon.call(FileRead, params.clone()).await?;
        refuse_changed(&part, &digest)?;
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Parts of two versions of a file are no file.
fn refuse_changed(part: &FileContent, digest: &str) -> Result<(), Failure> {
    match part.digest == digest {
        true => Ok(()),
        false => {
            Err(Failure::new(format!("{} has changed while it was read", part.path.as_path().display()))
                .code(FailureCode::ChangedMeanwhile)
                .hint("try again"))
        }
    }
}

pub(super) async fn write(context: &Context, args: WriteFile) -> CommandResult {
    let mut content = Vec::new();
    // One byte more than the daemon takes is enough for its refusal.
    let input = std::io::stdin().lock().take(LONGEST_PART + 1).read_to_end(&mut content);
    input.map_err(|err| failed("cannot read standard input", &err))?;
    let params = FileWriteParams {
        task: context.task(&args.name.task)?,
        path: args.path.into(),
        content: Bytes(content),
        expect: args.expect,
    };
    let written = context.daemon().await?.call(FileWrite, params).await?;
    match args.json {
        true => output::json(&written)?,
        false => output::line(&written.digest)?,
    }
    Ok(ExitCode::SUCCESS)
}
