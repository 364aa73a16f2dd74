//! `agency new -n`, `--foreach` and `--best-of`: several tasks with one command.
//!
//! All tasks are made as drafts first, one after another, so that their ids are in order. If one cannot be made, the others are
//! removed again. Then all agents start at the same time.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;

use agency_api::method::{
    Started, TaskNew, TaskNewParams, TaskRemove, TaskRemoveParams, TaskStart, TaskStartParams,
};
use agency_api::view::Task;
use agency_api::{Failure, FailureCode};
use agency_client::Client;
use agency_core::slug::Slug;
use futures_util::future::join_all;

use crate::caller;
use crate::candidates;
use crate::cli::New;
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::output::{self, count, printable};

use super::prompt::Prompt;

/// More tasks than a person reviews in a day.
const MOST_TASKS: usize = 100;

const NUMBER: &str = "{{num}}";
const LINE: &str = "{{line}}";

/// The differences between one task and the others.
#[derive(Debug, PartialEq, Eq)]
struct Variant {
    slug: String,
    message: Vec<u8>,
    command: Vec<OsString>,
    agent: Option<String>,
    /// For a candidate.
    label: Option<String>,
}

pub(super) async fn new_several(context: &Context, args: &New) -> CommandResult {
    let lines = lines(args)?;
    // Without a template, each line is a message.
    let prompt = match (&lines, &args.message) {
        (Some(_), None) => None,
        _ => Some(Prompt::obtain(&context.state, args).await?),
    };
    let text = prompt.as_ref().map(|prompt| prompt.text().0);
    let name = common_name(args, text.as_deref());
    if args.best_of.is_some() {
        refuse_second_group(context, &name).await?;
    }
    let drafts = match variants(args, &name, text, lines) {
        Ok(variants) => make_drafts(context, args, &variants).await,
        Err(failure) => Err(failure),
    };
    let drafts = match (drafts, prompt) {
        (Ok(drafts), prompt) => {
            prompt.into_iter().for_each(Prompt::delete_draft);
            drafts
        }
        (Err(failure), Some(prompt)) => return Err(prompt.save(&context.state, failure).into()),
        (Err(failure), None) => return Err(failure.into()),
    };
    if args.draft {
        drafts.iter().try_for_each(|task| output::line(&output::task_line(task)))?;
        output::note(&format!("next: agency start {}", drafts.first().map_or(0, |task| task.id)));
        return Ok(ExitCode::SUCCESS);
    }
    let starting = drafts.iter().map(|task| start(context, task));
    let started = join_all(starting).await;
    let next = match args.best_of {
        Some(_) => format!("agency compare {name}"),
        None => "agency next".to_owned(),
    };
    report(&drafts, started, &next)
}

/// The lines of the file of `--foreach`. `None` without that option.
fn lines(args: &New) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let Some(file) = &args.foreach else { return Ok(None) };
    let unreadable = |err: std::io::Error| {
        Failure::new(format!("cannot read {}", file.display())).code(FailureCode::IoError).caused_by(&err)
    };
    let mut text = Vec::new();
    match file == Path::new("-") {
        true => std::io::stdin().lock().read_to_end(&mut text).map_err(unreadable)?,
        false => {
            text = std::fs::read(file).map_err(unreadable)?;
            text.len()
        }
    };
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.trim_ascii().to_vec());
    let lines: Vec<Vec<u8>> = lines.filter(|line| !line.is_empty()).collect();
    match lines.is_empty() {
        true => Err(Failure::new(format!("{} has no line with text", file.display()))
            .code(FailureCode::InvalidArgument)
            .hint("each line becomes a task")),
        false => Ok(Some(lines)),
    }
}

/// The tasks to make. With `--foreach`, a line without `-m` is the message itself.
/// The common part of the names: the one that the user gave, or one that is made from the text or the command.
fn common_name(args: &New, text: Option<&[u8]>) -> String {
    if let Some(name) = &args.slug {
        return name.clone();
    }
    let text = String::from_utf8_lossy(text.unwrap_or_default()).replace(NUMBER, " ").replace(LINE, " ");
    let program = args.command.first().map(|word| Path::new(word).file_name().unwrap_or(word));
    let program = program.unwrap_or_default().to_string_lossy();
    let text = if text.trim().is_empty() { program.as_ref() } else { text.as_str() };
    Slug::from_text(text, |_| false).as_str().to_owned()
}

fn variants(
    args: &New,
    name: &str,
    template: Option<Vec<u8>>,
    lines: Option<Vec<Vec<u8>>>,
) -> Result<Vec<Variant>, Failure> {
    let agents = args.best_of.as_deref().map(|best_of| candidate_agents(args, best_of)).transpose()?;
    let total = match (&agents, &lines) {
        (Some(agents), _) => agents.len(),
        (None, Some(lines)) => lines.len(),
        (None, None) => args.number.unwrap_or(1) as usize,
    };
    if !(1..=MOST_TASKS).contains(&total) {
        return Err(Failure::new(format!("cannot make {total} tasks at once"))
            .code(FailureCode::InvalidArgument)
            .hint(format!("one command makes 1 to {MOST_TASKS} tasks")));
    }
    let variant = |at: usize| {
        let line = lines.as_ref().map(|lines| lines[at].as_slice());
        let fill = |text: &[u8]| fill(text, at + 1, line.unwrap_or_default());
        let message = match (&template, line) {
            (Some(template), _) => fill(template),
            (None, line) => line.unwrap_or_default().to_vec(),
        };
        let command = args.command.iter().map(|word| OsString::from_vec(fill(word.as_bytes()))).collect();
        let agent = agents.as_ref().map_or(&args.agent, |agents| &agents[at]).clone();
        let label = agents.as_ref().map(|_| candidates::label(name, at + 1));
        Variant { slug: format!("{name}-{}", at + 1), message, command, agent, label }
    };
    Ok((0..total).map(variant).collect())
}

/// The agents of the candidates: the same one several times, or those that are named.
fn candidate_agents(args: &New, best_of: &str) -> Result<Vec<Option<String>>, Failure> {
    let agents: Vec<Option<String>> = match best_of.parse::<usize>() {
        Ok(number) => vec![args.agent.clone(); number.min(MOST_TASKS + 1)],
        Err(_) if args.agent.is_some() => {
            return Err(Failure::new("--agent and the agents of --best-of contradict each other")
                .code(FailureCode::InvalidArgument)
                .hint("name every agent in --best-of, or pass a number there"));
        }
        Err(_) => best_of.split(',').map(|agent| Some(agent.trim().to_owned())).collect(),
    };
    match agents.len() {
        0 | 1 => Err(Failure::new("there is nothing to compare with fewer than two candidates")
            .code(FailureCode::InvalidArgument)
            .hint("--best-of 3, or --best-of claude-code,codex")),
        _ => Ok(agents),
    }
}

/// Two groups of one name would be one group.
async fn refuse_second_group(context: &Context, group: &str) -> Result<(), Failure> {
    let mut daemon = context.daemon().await?;
    // Outside a project there are no candidates, and the first task says what is wrong.
    match candidates::find(&mut daemon, group).await.is_ok_and(|found| !found.is_empty()) {
        true => Err(Failure::new(format!("there are candidates called {group} already"))
            .code(FailureCode::InvalidArgument)
            .hint(format!("choose another name, or look at them first: agency compare {group}"))),
        false => Ok(()),
    }
}

fn fill(template: &[u8], number: usize, line: &[u8]) -> Vec<u8> {
    let with_number = replace(template, NUMBER.as_bytes(), number.to_string().as_bytes());
    replace(&with_number, LINE.as_bytes(), line)
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|part| part == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// Makes all drafts or none.
async fn make_drafts(context: &Context, args: &New, variants: &[Variant]) -> Result<Vec<Task>, Failure> {
    let mut daemon = context.daemon().await?;
    let mut made: Vec<Task> = Vec::new();
    for variant in variants {
        let agents = (!args.draft).then_some((variants.len() - made.len()) as u32);
        let params = params(context, args, variant, agents)?;
        match daemon.call(TaskNew, params).await {
            Ok(Started { task, notes }) => {
                // The notes of all tasks are the same, except about names.
                let is_first = made.is_empty();
                notes.iter().filter(|_| is_first).for_each(|note| output::note(&printable(note)));
                made.push(task);
            }
            Err(failure) => {
                remove(context, &mut daemon, &made).await;
                return Err(failure);
            }
        }
    }
    Ok(made)
}

fn params(
    context: &Context,
    args: &New,
    variant: &Variant,
    agents: Option<u32>,
) -> Result<TaskNewParams, Failure> {
    let command: Vec<_> = variant.command.iter().map(|word| word.as_os_str().into()).collect();
    Ok(TaskNewParams {
        cwd: context::here()?,
        slug: Some(variant.slug.clone()),
        body: agency_api::Bytes(variant.message.clone()),
        agent: variant.agent.clone(),
        driver: args.driver.clone(),
        base_branch: args.base_branch.clone(),
        labels: args.labels.iter().chain(&variant.label).cloned().collect(),
        draft: true,
        agents_to_start: agents,
        command: (!command.is_empty()).then_some(command),
        vcs: args.vcs.map(|vcs| vcs.name().to_owned()),
        on_behalf_of: None,
        resume: None,
        caller: caller::caller(&context.options),
    })
}

/// Nothing has run in these drafts, so nothing can be lost.
async fn remove(context: &Context, daemon: &mut Client, drafts: &[Task]) {
    for task in drafts {
        let reason = Some("another task of the same command could not be made".to_owned());
        let (task, caller) = (context::reference(task), caller::caller(&context.options));
        let params = TaskRemoveParams { task, discard: false, force: false, reason, batch: None, caller };
        if let Err(failure) = daemon.call(TaskRemove, params).await {
            output::note(&printable(&format!("a draft stays: {}", failure.message)));
        }
    }
}

async fn start(context: &Context, task: &Task) -> Result<Started, Failure> {
    let caller = caller::caller(&context.options);
    let params = TaskStartParams {
        task: context::reference(task),
        driver: None,
        fresh: false,
        skip_setup: false,
        caller,
    };
    context.daemon().await?.call(TaskStart, params).await
}

/// Prints every result. Fails if an agent did not start; its task stays, with its message.
fn report(drafts: &[Task], started: Vec<Result<Started, Failure>>, next: &str) -> CommandResult {
    let mut failed = Vec::new();
    for (draft, outcome) in drafts.iter().zip(started) {
        match outcome {
            Ok(started) => output::line(&output::task_line(&started.task))?,
            Err(failure) => failed.push((draft, failure)),
        }
    }
    let Some((_, first)) = failed.first() else {
        output::note(&printable(&format!("next: {next}")));
        return Ok(ExitCode::SUCCESS);
    };
    let ids: Vec<String> = failed.iter().map(|(task, _)| task.id.to_string()).collect();
    let all = count(drafts.len(), "agent");
    let mut failure = Failure::new(format!("{} of {all} did not start", failed.len())).code(first.code);
    for (task, cause) in &failed {
        let why = [vec![cause.message.clone()], cause.causes.clone()].concat().join(": ");
        failure = failure.because(format!("{}-{}: {why}", task.id, task.slug));
    }
    Err(failure.hint(format!("the tasks stay, with their messages: agency start {}", ids[0])).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lines_are_filled_in() {
        assert_eq!(fill(b"{{num}} of {{num}}: {{line}}", 7, b"a {{num}}"), b"7 of 7: a {{num}}");
        assert_eq!(fill(b"nothing {num}", 1, b""), b"nothing {num}");
    }
}
