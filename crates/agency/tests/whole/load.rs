//! Two hundred shells at once: all answer, one that floods slows no other, and no daemon's death loses any of them.

use std::collections::BTreeMap;

use agency_api::Bytes;
use agency_api::method::{
    Caller, PtyScreen, ScreenDump, TaskNew, TaskNewParams, TaskRef, TaskSend, TaskSendParams,
};
use agency_testkit::{Keeper, eventually};

use crate::api::Line;
use crate::stage::{SOON, Stage};

const AGENTS: usize = 200;

/// Each has a line of its own and calls for one agent after the other.
const CALLERS: usize = 8;

/// Agents that must answer while another one floods: a flood is long for the machine that tests.
const WITNESSES: usize = 40;

#[test]
fn two_hundred_shells_answer_through_a_flood_and_the_death_of_their_daemon() {
    let crowd = Crowd::gathered();
    crowd.each(&crowd.slugs, |caller, slug| caller.hears(slug, "first"));
    let keepers = crowd.keepers();

    let (flooding, others) = crowd.slugs.split_first().expect("a crowd");
    let some: Vec<String> = others.iter().step_by(AGENTS / WITNESSES).cloned().collect();
    crowd.caller().sets_off(flooding);
    crowd.each(&some, |caller, slug| caller.hears(slug, "second"));
    crowd.caller().stops(flooding);

    let before = crowd.each(&crowd.slugs, |caller, slug| caller.sees(slug));
    crowd.stage.kill_daemon();
    assert_eq!(crowd.keepers(), keepers, "nobody was lost, doubled or replaced");
    let after = crowd.each(&crowd.slugs, |caller, slug| caller.sees(slug));
    for ((slug, before), after) in crowd.slugs.iter().zip(before).zip(after) {
        assert!(before.dump == after.dump, "{slug} is as it was");
    }
    crowd.each(&some, |caller, slug| caller.hears(slug, "third"));
    crowd.caller().hears(flooding, "third");
    crowd.dissolve();
}

struct Crowd {
    stage: Stage,
    slugs: Vec<String>,
}

impl Crowd {
    fn gathered() -> Crowd {
        let stage = Stage::with_config("max_agents = 0\nscrollback = 200\nshutdown_timeout = \"60s\"\n");
        stage.run(["daemon", "start"]).ok();
        let slugs = (0..AGENTS).map(|number| format!("agent-{number}")).collect();
        let crowd = Crowd { stage, slugs };
        crowd.each(&crowd.slugs, |caller, slug| caller.starts(slug));
        crowd
    }

    fn caller(&self) -> Talk<'_> {
        Talk { stage: &self.stage, line: Line::open(&self.stage) }
    }

    /// Does something with each of these, some at a time; what comes of it is in their order.
    fn each<T: Send>(&self, slugs: &[String], work: impl Fn(&mut Talk<'_>, &str) -> T + Sync) -> Vec<T> {
        let work = &work;
        std::thread::scope(|scope| {
            let parts = slugs.chunks(slugs.len().div_ceil(CALLERS));
            let callers: Vec<_> = parts
                .map(|part| {
                    scope.spawn(move || {
                        let mut caller = self.caller();
                        part.iter().map(|slug| work(&mut caller, slug)).collect::<Vec<T>>()
                    })
                })
                .collect();
            callers.into_iter().flat_map(|caller| caller.join().expect("a caller is content")).collect()
        })
    }

    /// As the list has them: every task runs, and each has a keeper with its agent.
    fn keepers(&self) -> BTreeMap<String, Keeper> {
        let listing = self.stage.run(["ls", "--all", "--json"]).json();
        assert_eq!(listing["orphans"], serde_json::json!([]));
        let keepers: BTreeMap<String, Keeper> =
            self.stage.keepers().into_iter().map(|keeper| (keeper.run.clone(), keeper)).collect();
        let tasks = listing["tasks"].as_array().expect("a list").iter().map(|task| {
            assert_eq!(task["status"], "running", "{task}");
            let run = task["run"].as_str().unwrap_or_else(|| panic!("it runs: {task}"));
            let keeper = keepers.get(run).unwrap_or_else(|| panic!("it is kept: {task}"));
            (task["slug"].as_str().expect("a name").to_owned(), keeper.clone())
        });
        let by_slug: BTreeMap<String, Keeper> = tasks.collect();
        assert_eq!((by_slug.len(), keepers.len()), (AGENTS, AGENTS));
        by_slug
    }

    fn dissolve(self) {
        self.stage.run(["daemon", "stop", "--agents"]).ok();
        self.stage.eventually("everybody has gone", SOON, || self.stage.processes().is_empty().then_some(()));
        self.stage.eventually("no keeper stays", SOON, || self.stage.keepers().is_empty().then_some(()));
    }
}

/// Somebody who talks to the daemon.
struct Talk<'a> {
    stage: &'a Stage,
    line: Line,
}

impl Talk<'_> {
    fn task(&self, slug: &str) -> TaskRef {
        TaskRef { cwd: Bytes::from(self.stage.home()), name: slug.to_owned() }
    }

    fn starts(&mut self, slug: &str) {
        let command = self.stage.command("sh");
        let set = command.get_envs().filter_map(|(name, value)| Some((name.into(), value?.into())));
        let params = TaskNewParams {
            cwd: Bytes::from(self.stage.home()),
            slug: slug.to_owned(),
            body: Bytes::default(),
            agent: None,
            driver: None,
            base_branch: None,
            labels: Vec::new(),
            on_behalf_of: None,
            draft: false,
            command: None,
            vcs: Some("none".to_owned()),
            caller: Caller { env: set.collect(), ..Caller::default() },
        };
        self.line.call(TaskNew, params);
    }

    /// Types, and waits until the terminal has taken it.
    fn types(&mut self, slug: &str, text: &str, enter: bool) {
        let params = TaskSendParams {
            task: self.task(slug),
            text: text.into(),
            enter,
            anyway: false,
            queue: false,
            keys: Vec::new(),
        };
        self.line.call(TaskSend, params);
    }

    fn sees(&mut self, slug: &str) -> ScreenDump {
        self.line.call(PtyScreen, self.task(slug))
    }

    fn waits_for(&mut self, slug: &str, line: &str) {
        eventually(&format!("{slug} shows {line:?}"), SOON, || {
            self.sees(slug).text.lines().any(|shown| shown == line).then_some(())
        });
    }

    /// The shell puts the words together: what is typed is not yet what is waited for.
    fn hears(&mut self, slug: &str, word: &str) {
        self.types(slug, &format!("printf '%s %s\\n' {slug} {word}"), true);
        self.waits_for(slug, &format!("{slug} {word}"));
    }

    fn sets_off(&mut self, slug: &str) {
        self.types(slug, "yes", true);
        self.waits_for(slug, "y");
    }

    fn stops(&mut self, slug: &str) {
        // The terminal makes a signal of it.
        self.types(slug, "\x03", false);
        self.hears(slug, "second");
    }
}
