//! The text of a notification, without control characters that a terminal or a desktop would obey.

use agency_api::notify::{Notice, NoticeKind, NoticeTask, SCHEMA_VERSION};
use agency_core::plain;

/// A summary names at most this many tasks; the reader needs no more.
const MAX_NAMED: usize = 5;

/// Characters that a desktop shows of a notification.
const MAX_CHARS: usize = 240;

/// Returns the notification about these tasks. There is at least one.
pub fn notice(tasks: Vec<NoticeTask>, time: String) -> Notice {
    let (kind, about) = match tasks.as_slice() {
        [one] if one.state.as_deref() == Some("exited") => (NoticeKind::Exited, one.clone()),
        [one] => (NoticeKind::NeedsInput, one.clone()),
        _ => (NoticeKind::Summary, NoticeTask::default()),
    };
    with_text(Notice { schema_version: SCHEMA_VERSION, kind, time, text: String::new(), about, tasks })
}

pub fn test(time: String) -> Notice {
    with_text(Notice {
        schema_version: SCHEMA_VERSION,
        kind: NoticeKind::Test,
        time,
        text: String::new(),
        about: NoticeTask::default(),
        tasks: Vec::new(),
    })
}

fn with_text(notice: Notice) -> Notice {
    let (title, body) = (title(&notice), body(&notice));
    let text = if body.is_empty() { title } else { clean(&format!("{title}: {body}")) };
    Notice { text, ..notice }
}

pub fn title(notice: &Notice) -> String {
    let slug = notice.about.slug.as_deref().unwrap_or("an agent");
    clean(&match notice.kind {
        NoticeKind::NeedsInput => format!("{slug} needs you"),
        NoticeKind::Exited => format!("{slug} has ended"),
        NoticeKind::Summary => format!("{} agents need you", notice.tasks.len()),
        NoticeKind::Test => "Agency reaches you".to_owned(),
    })
}

pub fn body(notice: &Notice) -> String {
    clean(&match notice.kind {
        NoticeKind::NeedsInput | NoticeKind::Exited => {
            let why = notice.about.why.as_deref().filter(|why| !matches!(*why, "unknown" | "exited"));
            let parts = [notice.about.agent.as_deref(), why, notice.about.detail.as_deref()];
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
        NoticeKind::Summary => summary(&notice.tasks),
        NoticeKind::Test => "this is a test, no agent needs you".to_owned(),
    })
}

fn summary(tasks: &[NoticeTask]) -> String {
    let named = tasks.iter().take(MAX_NAMED).map(|task| {
        let slug = task.slug.as_deref().unwrap_or_default();
        match task.why.as_deref() {
            Some("unknown") | None => slug.to_owned(),
            Some(why) => format!("{slug} ({why})"),
        }
    });
    let mut words = named.collect::<Vec<_>>().join(", ");
    if tasks.len() > MAX_NAMED {
        words.push_str(&format!(" and {} more", tasks.len() - MAX_NAMED));
    }
    words
}

pub fn clean(text: &str) -> String {
    plain::one_line(text, MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(slug: &str, why: &str, detail: Option<&str>) -> NoticeTask {
        NoticeTask {
            slug: Some(slug.to_owned()),
            agent: Some("Claude Code".to_owned()),
            state: Some(if why == "exited" { "exited" } else { "needs_input" }.to_owned()),
            why: Some(why.to_owned()),
            detail: detail.map(str::to_owned),
            ..NoticeTask::default()
        }
    }

    #[test]
    fn a_notification_about_one_task_names_its_reason() {
        for (task, text) in [
            (
                task("fix-login", "permission", Some("Allow Bash: rm?")),
                "fix-login needs you: Claude Code, permission, Allow Bash: rm?",
            ),
            (task("fix-login", "unknown", None), "fix-login needs you: Claude Code"),
            (
                task("fix-login", "exited", Some("it ended with 1")),
                "fix-login has ended: Claude Code, it ended with 1",
            ),
        ] {
            assert_eq!(notice(vec![task], String::new()).text, text);
        }
    }

    #[test]
    fn a_summary_counts_all_tasks_and_names_a_few() {
        let three =
            vec![task("a", "permission", None), task("b", "unknown", None), task("c", "exited", None)];
        let notice_of_three = notice(three, String::new());
        assert_eq!(notice_of_three.text, "3 agents need you: a (permission), b, c (exited)");
        assert_eq!(
            (notice_of_three.kind, &notice_of_three.about),
            (NoticeKind::Summary, &NoticeTask::default())
        );
        let many = (0..9).map(|number| task(&format!("t{number}"), "unknown", None)).collect();
        assert_eq!(notice(many, String::new()).text, "9 agents need you: t0, t1, t2, t3, t4 and 4 more");
    }

    #[test]
    fn control_characters_of_an_agent_do_not_reach_a_terminal() {
        let evil = notice(vec![task("a", "question", Some("\x1b]0;x\x07 \u{202e}b\r\nc"))], String::new());
        assert_eq!(evil.text, "a needs you: Claude Code, question, ]0;x b c");
    }
}
