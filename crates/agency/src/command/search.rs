//! `agency search`: finds words in conversations, in the output of terminals and in the texts of tasks.

use std::process::ExitCode;

use agency_api::Bytes;
use agency_api::method::ChatSearch;
use agency_api::search::{Found, Hit, HitKind, Piece, SearchParams};

use crate::cli::Search;
use crate::context::{self, Context};
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, Colour, Paint, count, printable};

pub(super) async fn search(context: &Context, args: Search) -> CommandResult {
    let here = context::here()?;
    let params = SearchParams {
        words: args.words.join(" "),
        task: args.task.as_deref().map(|name| context.task(name)).transpose()?,
        cwd: args.project.then(|| here.clone()),
        limit: Some(args.limit),
    };
    let found = context.daemon().await?.call(ChatSearch, params).await?;
    if args.json {
        output::json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    for hit in &found.hits {
        output::line(&hit_text(hit, &here, Paint::for_stdout()))?;
    }
    notes(&found).iter().for_each(|note| output::note(note));
    Ok(ExitCode::SUCCESS)
}

/// Task, time, speaker and the command that opens the entry; below it, the text.
fn hit_text(hit: &Hit, here: &Bytes, paint: Paint) -> String {
    let task = paint.paint(Colour::Cyan, &format!("{}-{}", hit.task, printable(&hit.slug)));
    let time = hit.time.as_deref().map_or_else(|| "-".to_owned(), moment::format_local);
    let command = paint.paint(Colour::Faint, &printable(&open_command(hit, here)));
    format!("{task}  {time}  {}  {command}\n    {}", speaker(hit.kind), snippet(&hit.snippet, paint))
}

fn open_command(hit: &Hit, here: &Bytes) -> String {
    let project = hit.project.as_path();
    let command = match (hit.kind, hit.number, &hit.time) {
        (HitKind::Output, _, Some(time)) => format!("agency screen {} --at {time}", hit.task),
        (HitKind::Output, _, None) => format!("agency logs {}", hit.task),
        (_, Some(number), _) => format!("agency chat {} --at {number}", hit.task),
        (_, None, _) => {
            let file = project.join(format!(".agency/tasks/{}-{}.md", hit.task, hit.slug));
            return file.display().to_string();
        }
    };
    match here.as_path().starts_with(project) {
        true => command,
        false => format!("cd {} && {command}", project.display()),
    }
}

fn speaker(kind: HitKind) -> &'static str {
    match kind {
        HitKind::Task => "task",
        HitKind::User => "you",
        HitKind::Assistant => "agent",
        HitKind::Thinking => "thinking",
        HitKind::ToolCall => "tool",
        HitKind::Plan => "plan",
        HitKind::Approval => "approval",
        HitKind::Notice => "notice",
        HitKind::Error => "error",
        HitKind::Output => "output",
    }
}

fn snippet(pieces: &[Piece], paint: Paint) -> String {
    let piece = |piece: &Piece| {
        let text = printable(&piece.text).replace(['\n', '\t'], " ");
        if piece.hit { paint.paint(Colour::Yellow, &text) } else { text }
    };
    pieces.iter().map(piece).collect::<String>().trim().to_owned()
}

/// Notes below the list.
fn notes(found: &Found) -> Vec<String> {
    let mut notes = Vec::new();
    if found.hits.is_empty() {
        notes.push("nothing found".to_owned());
    }
    if found.more {
        notes.push("there are more results: raise --limit or add words".to_owned());
    }
    if found.unread > 0 {
        let tasks = count(found.unread as usize, "task");
        notes.push(format!("not indexed yet: {tasks}; search again in a moment"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(number: Option<u64>) -> Hit {
        let piece = |text: &str, hit| Piece { text: text.to_owned(), hit };
        Hit {
            task: 3,
            slug: "fix".into(),
            project: Bytes::from("/p"),
            number,
            kind: HitKind::Assistant,
            time: None,
            snippet: vec![piece("…the\n", false), piece("login", true), piece("\x1b[2J", false)],
        }
    }

    #[test]
    fn a_hit_has_its_task_and_the_command_that_opens_it() {
        let text = hit_text(&hit(Some(17)), &Bytes::from("/p/src"), Paint::Plain);
        assert_eq!(text, "3-fix  -  agent  agency chat 3 --at 17\n    …the login\\u{1b}[2J");
        let elsewhere = open_command(&hit(Some(17)), &Bytes::from("/other"));
        assert_eq!(elsewhere, "cd /p && agency chat 3 --at 17");
        assert_eq!(open_command(&hit(None), &Bytes::from("/p")), "/p/.agency/tasks/3-fix.md");
        let time = Some("2026-01-31T14:05:00.5Z".to_owned());
        let printed = Hit { kind: HitKind::Output, time, ..hit(None) };
        assert_eq!(open_command(&printed, &Bytes::from("/p")), "agency screen 3 --at 2026-01-31T14:05:00.5Z");
    }
}
