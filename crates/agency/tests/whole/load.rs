//! Two hundred shells at once: all answer, a flood of one delays no other, and all survive the death of the daemon.

use std::collections::BTreeMap;

use agency_api::Bytes;
use agency_api::method::{
    Caller, PtyScreen, PtyScreenParams, ScreenDump, TaskNew, TaskNewParams, TaskRef, TaskSend, TaskSendParams,
};
use agency_testkit::{Keeper, eventually};

use crate::api::ApiConnection;
use crate::stage::{SOON, Stage};

const AGENTS: usize = 200;

/// Each caller has its own connection and works on one agent after the other.
const CALLERS: usize = 8;

/// Agents that must answer while another one floods; not all, because a flood makes a test machine slow.
const WITNESSES: usize = 40;

#[test]
fn two_hundred_shells_answer_through_a_flood_and_the_death_of_their_daemon() {
    let crowd = Crowd::start();
    crowd.each(&crowd.slugs, |caller, slug| caller.check_answer(slug, "first"));
    let keepers = crowd.keepers();

    let (flooding, others) = crowd.slugs.split_first().expect("a crowd");
    let some: Vec<String> = others.iter().step_by(AGENTS / WITNESSES).cloned().collect();
    crowd.caller().start_flood(flooding);
    crowd.each(&some, |caller, slug| caller.check_answer(slug, "second"));
    crowd.caller().stop_flood(flooding);

    let before = crowd.each(&crowd.slugs, |caller, slug| caller.screen(slug));
    crowd.stage.kill_daemon();
    assert_eq!(crowd.keepers(), keepers, "no keeper was lost, doubled or replaced");
    let after = crowd.each(&crowd.slugs, |caller, slug| caller.screen(slug));
    for ((slug, before), after) in crowd.slugs.iter().zip(before).zip(after) {
        assert!(before.dump == after.dump, "{slug} is as it was");
    }
    crowd.each(&some, |caller, slug| caller.check_answer(slug, "third"));
    crowd.caller().check_answer(flooding, "third");
    crowd.stop();
}

struct Crowd {
    stage: Stage,
    slugs: Vec<String>,
}

impl Crowd {
    fn start() -> Crowd {
        let stage = Stage::with_config("max_agents = 0\nscrollback = 200\nshutdown_timeout = \"60s\"\n");
        stage.run(["daemon", "start"]).ok();
        let slugs = (0..AGENTS).map(|number| format!("agent-{number}")).collect();
        let crowd = Crowd { stage, slugs };
        crowd.each(&crowd.slugs, |caller, slug| caller.start_task(slug));
        crowd
    }

    fn caller(&self) -> Client<'_> {
        Client { stage: &self.stage, connection: ApiConnection::open(&self.stage) }
    }

    /// Does the work for each of these, some at a time; returns the results in order.
    fn each<T: Send>(&self, slugs: &[String], work: impl Fn(&mut Client<'_>, &str) -> T + Sync) -> Vec<T> {
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

    /// The keepers by task; checks that every task runs and has a keeper with its agent.
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

    fn stop(self) {
        self.stage.run(["daemon", "stop", "--agents"]).ok();
        self.stage
            .eventually("the end of all processes", SOON, || self.stage.processes().is_empty().then_some(()));
        self.stage.eventually("no keeper stays", SOON, || self.stage.keepers().is_empty().then_some(()));
    }
}

/// A client of the daemon.
struct Client<'a> {
    stage: &'a Stage,
    connection: ApiConnection,
}

impl Client<'_> {
    fn task(&self, slug: &str) -> TaskRef {
        TaskRef { cwd: Bytes::from(self.stage.home()), name: slug.to_owned() }
    }

    fn start_task(&mut self, slug: &str) {
        let command = self.stage.command("sh");
        let set = command.get_envs().filter_map(|(name, value)| Some((name.into(), value?.into())));
        let params = TaskNewParams {
            cwd: Bytes::from(self.stage.home()),
            slug: Some(slug.to_owned()),
            body: Bytes::default(),
            agent: None,
            driver: None,
            base_branch: None,
            labels: Vec::new(),
            on_behalf_of: None,
            resume: None,
            agents_to_start: None,
            draft: false,
            command: None,
            vcs: Some("none".to_owned()),
            caller: Caller { env: set.collect(), ..Caller::default() },
        };
        self.connection.call(TaskNew, params);
    }

    /// Types, and waits until the terminal has taken the text.
    fn type_text(&mut self, slug: &str, text: &str, enter: bool) {
        let params = TaskSendParams {
            task: self.task(slug),
            text: text.into(),
            enter,
            anyway: false,
            queue: false,
            keys: Vec::new(),
            images: Vec::new(),
        };
        self.connection.call(TaskSend, params);
    }

    fn screen(&mut self, slug: &str) -> ScreenDump {
        self.connection.call(PtyScreen, PtyScreenParams { task: self.task(slug), at: None })
    }

    fn wait_for_line(&mut self, slug: &str, line: &str) {
        eventually(&format!("{slug} shows {line:?}"), SOON, || {
            self.screen(slug).text.lines().any(|shown| shown == line).then_some(())
        });
    }

    /// The shell puts the word together, so that the typed text does not contain it.
    fn check_answer(&mut self, slug: &str, word: &str) {
        self.type_text(slug, &format!("printf '%s %s\\n' {slug} {word}"), true);
        self.wait_for_line(slug, &format!("{slug} {word}"));
    }

    fn start_flood(&mut self, slug: &str) {
        self.type_text(slug, "yes", true);
        self.wait_for_line(slug, "y");
    }

    fn stop_flood(&mut self, slug: &str) {
        // The terminal turns this key into a signal.
        self.type_text(slug, "\x03", false);
        self.check_answer(slug, "second");
    }
}
