//! Laws that must hold after every step of every story.

use agency_core::ids::TaskKey;
use agency_core::supervisor::{AgentActivity, Occupation, Operation, Supervisor};
use agency_core::task_status::TaskStatus;

use crate::daemon::Daemon;
use crate::universe::{Tally, Temper, World};

impl World {
    pub(crate) fn check_laws(&self) {
        if let Some(law) = self.extra_law {
            law(self);
        }
        let Some(daemon) = &self.daemon else { return };
        self.check_that_every_process_has_an_owner(&daemon.supervisor);
        for key in self.files.keys() {
            self.check_task(daemon, key);
        }
        for key in self.trash.keys() {
            assert!(!self.lives(key), "{key} is removed and lives");
            assert!(daemon.supervisor.status(key).is_none(), "{key} is removed and still known");
        }
        self.check_that_operations_exclude_each_other(&daemon.supervisor);
        self.check_that_nobody_is_forgotten(daemon);
        self.check_connection();
    }

    /// Never two processes for a task, never more than the limit, never on ground that git works on.
    pub(crate) fn check_birth(&self, key: &TaskKey) {
        assert!(!self.lives(key), "two processes for {key}");
        assert!(!self.git.contains_key(key), "an agent starts in a workspace that git works on");
        assert!(!self.setups.contains_key(key), "an agent starts in a workspace that is being set up");
        assert!(!self.works.contains_key(key), "an agent starts in a workspace whose files change");
        let alive = self.living().count() + 1;
        let max = self.limits.max_agents as usize;
        assert!(max == 0 || alive <= max + self.beyond_limit, "{alive} agents live, {max} may");
    }

    fn check_that_every_process_has_an_owner(&self, supervisor: &Supervisor) {
        for (id, run) in self.living() {
            let owned = if self.is_orphan(id) {
                supervisor.may_begin(&run.key, Operation::Start, AgentActivity::AtRest).is_err()
            } else if run.announced {
                supervisor.live_run(&run.key) == Some(id)
            } else {
                supervisor.occupation(&run.key).is_busy()
            };
            assert!(owned, "{id} of {} lives and has no owner", run.key);
        }
    }

    fn check_task(&self, daemon: &Daemon, key: &TaskKey) {
        let file = &self.files[key];
        let Some(status) = daemon.supervisor.status(key) else {
            // Being removed, or not seen again yet.
            return assert!(!self.is_owned_and_lives(key), "{key} is forgotten and lives");
        };
        let agree = file.is_broken || status == file.status;
        assert!(agree, "the file of {key} says {}, and the supervisor {status}", file.status);
        let is_over = status == TaskStatus::Stopped && daemon.supervisor.live_run(key).is_none();
        let has_run = self.living().any(|(id, run)| run.key == *key && run.announced && !self.is_orphan(id));
        assert!(!is_over || !has_run, "{key} is called stopped and lives");
        let at_rest = daemon.supervisor.occupation(key) == Occupation::Free;
        if at_rest && !file.elsewhere {
            assert!(!status.claims_a_process(), "{key} rests and claims to be {status}");
            assert!(!self.git.contains_key(key), "{key} rests and git works on it");
            assert!(!self.setups.contains_key(key), "{key} rests and is being set up");
            let workspace = file.workspace.as_ref();
            let left_over = workspace.is_some_and(|it| it.made_in == self.generation && !it.lived_in);
            assert!(!left_over, "a start of {key} came to nothing and left its workspace behind");
        }
    }

    /// An operation on files is alone with them, and the supervisor knows of it, and of no other.
    fn check_that_operations_exclude_each_other(&self, supervisor: &Supervisor) {
        for key in self.files.keys() {
            let under_way = [
                self.git.contains_key(key),
                self.setups.contains_key(key),
                self.works.contains_key(key),
                self.is_keeper_starting(key),
            ];
            let count = under_way.into_iter().filter(|is_under_way| *is_under_way).count();
            assert!(count <= 1, "{count} operations on {key} at once");
        }
        for (key, (_, operation)) in &self.works {
            assert!(!self.git.contains_key(key), "{operation:?} of {key} while its workspace is made");
            assert!(!self.setups.contains_key(key), "{operation:?} of {key} while it is set up");
            let occupation = supervisor.occupation(key);
            assert!(works_with(occupation), "{operation:?} of {key}, which is {occupation}");
        }
        for key in self.files.keys().chain(self.trash.keys()) {
            let occupation = supervisor.occupation(key);
            let is_own = self.tasks_own(supervisor, key);
            let has_work = self.works.contains_key(key) || is_own;
            assert!(
                has_work || !works_with(occupation),
                "{key} is {occupation}, but no operation is under way"
            );
        }
    }

    /// A removal that still waits for the end of a process is the supervisor's own.
    fn tasks_own(&self, supervisor: &Supervisor, key: &TaskKey) -> bool {
        supervisor.status(key).is_some() && supervisor.occupation(key) == Occupation::Removing
    }

    /// A caller waits for a task only while it is in the middle of something.
    fn check_that_nobody_is_forgotten(&self, daemon: &Daemon) {
        for (ticket, key) in &daemon.waiting {
            let served = match key {
                Some(key) => daemon.supervisor.occupation(key).is_busy(),
                None => daemon.closing,
            };
            assert!(served, "{ticket} waits for {key:?}, where nothing happens");
        }
    }

    /// Quiet, but perhaps not over: those who asked have their answers.
    pub(crate) fn check_that_all_is_said(&self) {
        let Some(daemon) = &self.daemon else { return };
        assert!(daemon.waiting.is_empty(), "still without an answer: {:?}", daemon.waiting);
        let connecting: Vec<_> = daemon.connecting.keys().collect();
        assert!(connecting.is_empty(), "without an answer of the connection: {connecting:?}");
        for key in self.files.keys().filter(|key| !self.is_hidden(key)) {
            let occupation = daemon.supervisor.occupation(key);
            assert!(!occupation.is_busy(), "{key} is {occupation} for ever");
            let is_noted = self.removals.contains(key);
            assert_eq!(occupation == Occupation::Unsettled, is_noted, "{key} is {occupation}");
        }
        self.check_that_operations_are_settled();
        for (key, run) in daemon.supervisor.live_runs() {
            assert!(self.runs[run].exit.is_none(), "{run} of {key} is dead and taken for alive");
        }
    }

    /// No operation is under way, and none that was cut off is forgotten.
    fn check_that_operations_are_settled(&self) {
        assert!(self.works.is_empty(), "under way for ever: {:?}", self.works);
        assert!(self.git.is_empty() && self.setups.is_empty(), "git or a setup works for ever");
        assert!(self.snapshots.is_empty() && self.unkept_turns.is_empty(), "a turn is not kept");
        assert!(self.emptying.is_empty(), "a trash is emptied for ever");
        let unsettled = self.merges.iter().chain(&self.returns).find(|key| !self.is_hidden(key));
        assert_eq!(unsettled, None, "an operation that was cut off is not settled");
    }

    /// After a shutdown only that lives which cannot be killed, or takes no orders.
    pub(crate) fn check_nothing_lives(&self) {
        for (id, run) in self.living() {
            // A launch that took longer than the whole shutdown is left to the next daemon.
            let takes_no_orders = run.is_deaf || run.has_missed_kill;
            let is_out_of_reach = run.temper == Temper::Undead || takes_no_orders || self.is_orphan(id);
            assert!(is_out_of_reach || !run.announced, "{id} of {} survives", run.key);
        }
    }

    pub(crate) fn check_that_all_is_over(&self) {
        for (id, run) in self.living() {
            assert!(run.is_left, "{id} of {} began after the shutdown", run.key);
        }
        let is_known = |key: &TaskKey| !self.lost_projects.contains(&key.project);
        let readable = self.files.iter().filter(|(_, file)| !file.elsewhere && !file.is_broken);
        for (key, file) in readable.filter(|(key, _)| is_known(key)) {
            // The keeper holds an exit that came too late, for the next daemon to write down.
            let kept = self.runs.values().any(|run| run.key == *key && !run.dismissed);
            // The file of a task that is half removed stays as it is.
            let is_true = kept || self.removals.contains(key) || !file.status.claims_a_process();
            assert!(is_true, "{key} is {} for ever", file.status);
        }
    }
}

fn works_with(occupation: Occupation) -> bool {
    match occupation {
        Occupation::Merging
        | Occupation::Syncing
        | Occupation::RestoringTurn
        | Occupation::Restoring
        | Occupation::Removing
        | Occupation::TearingDown => true,
        Occupation::Free
        | Occupation::SettingUp
        | Occupation::Starting
        | Occupation::Restarting
        | Occupation::Live
        | Occupation::Stopping
        | Occupation::Cancelling
        | Occupation::CleaningUp
        | Occupation::Unsettled
        | Occupation::Orphaned
        | Occupation::Elsewhere => false,
    }
}

impl Tally {
    /// A world in which something never happens proves nothing about it.
    pub(crate) fn assert_everything_happened(&self) {
        for (what, count) in [
            ("birth", self.births),
            ("death of the daemon", self.deaths_of_the_daemon),
            ("shutdown", self.shutdowns),
            ("setup", self.setups),
            ("undone workspace", self.undone_workspaces),
            ("undone task", self.undone_tasks),
            ("restart after a crash", self.crash_restarts),
            ("kill", self.kills),
        ] {
            assert!(count > 100, "{what}: only {count}");
        }
        let rare =
            [("unsettled removal", self.unsettled), ("restart that waits for files", self.held_restarts)];
        for (what, count) in rare {
            assert!(count > 20, "{what}: only {count}");
        }
        let rare = [
            "teardown",
            "snapshot",
            "turn that ended during a snapshot",
            "emptied trash",
            "merge that was cut off",
            "broken task file",
            "unexplained run",
            "run of a lost project",
            "project that is found again",
            "lost epoch",
            "adopted orphan",
            "orphan that its task refuses",
            "killed orphan",
            "session",
            "adopted connection",
            "lost connection",
        ];
        for kind in rare {
            assert!(self.rare.get(kind).is_some_and(|count| *count > 20), "too rare: {kind}");
        }
        for kind in ["Merge", "Sync", "RestoreTurn", "RestoreFiles", "RestoreTask", "Remove", "FinishRemoval"]
        {
            assert!(self.works.get(kind).is_some_and(|count| *count > 100), "never done: {kind}");
        }
        let refused = [
            "max agents",
            "transition",
            "not running",
            "busy",
            "agent at work",
            "agent lives",
            "unsettled",
            "elsewhere",
            "unknown",
            "cancelled",
            "orphaned",
            "emptying trash",
            "coming back",
        ];
        let failed = ["workspace failed", "setup failed", "keeper failed", "won't die", "shutting down"];
        for kind in refused.iter().chain(&failed) {
            assert!(self.refusals.get(kind).is_some_and(|count| *count > 20), "never refused: {kind}");
        }
        for kind in
            ["crashed", "restarting", "restart given up", "restart failed", "won't die", "marked stopped"]
        {
            assert!(self.notices.get(kind).is_some_and(|count| *count > 20), "never noticed: {kind}");
        }
    }
}
