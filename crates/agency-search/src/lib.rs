//! The index of tasks, conversations and the output of terminals, which `agency search` reads.
//!
//! The daemon's loop only reports which tasks exist and which may have changed. The index writer, one asynchronous
//! task, reads them one after the other and writes the file. Everything in the index comes from journals and task
//! files, so a killed daemon or a deleted file loses nothing: the index is built again.

mod index_file;
mod output;
mod passage;
mod query;
mod search;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agency_api::chat::Chat;
use agency_api::paths::StateDir;
use agency_api::search::HitKind;
use agency_api::{Bytes, Failure};
use agency_core::ids::{RunId, TaskKey};
use agency_core::task_file::TaskFile;
use agency_run::command::{ChatRequest, ConversationCommand};
use agency_run::conversation::{Page, PastConversation};
use agency_run::handle::CommandSender;
use agency_store::bounded_read::{Links, read_bounded};
use agency_store::exit_notes;
use tokio::sync::{Notify, watch};

use index_file::IndexFile;
pub use index_file::{IndexError, Scope};
use output::LiveOutput;
pub use output::{TaskOutput, TerminalJournal};
use passage::Passage;
use passage::milliseconds;
pub use search::Search;

/// A search waits this long for the index writer. After that, its answer counts the tasks that are missing.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The index writer skips a run that does not answer in this time, and reads it the next time.
const RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// A task, and where to read its texts.
#[derive(Debug, Clone)]
pub struct IndexedTask {
    pub key: TaskKey,
    pub root: Bytes,
    pub slug: String,
    pub file: PathBuf,
    pub conversation: TaskConversation,
    pub output: TaskOutput,
}

#[derive(Debug, Clone)]
pub enum TaskConversation {
    /// The agent runs in a terminal, or has never run.
    None,
    Past {
        runs: Vec<RunId>,
        journals: Box<PastConversation>,
    },
    Live {
        run: RunId,
        commands: CommandSender<ConversationCommand>,
    },
}

/// A handle to the index, for the daemon's loop and for searches.
#[derive(Debug, Clone)]
pub struct Index {
    queue: Arc<WorkQueue>,
}

#[derive(Debug)]
struct WorkQueue {
    path: PathBuf,
    pending: Mutex<Pending>,
    wake: Notify,
    unread: watch::Sender<usize>,
}

/// Tasks that the writer has to read. A task that changes twice is read once, so the number of tasks limits the size.
#[derive(Debug, Default)]
struct Pending {
    all: BTreeMap<TaskKey, IndexedTask>,
    due: BTreeSet<TaskKey>,
    /// The writer has to remove tasks that are not in `all`.
    purge: bool,
    is_reading: bool,
}

impl Pending {
    fn unread(&self) -> usize {
        self.due.len() + usize::from(self.purge) + usize::from(self.is_reading)
    }
}

impl Index {
    pub fn open(state: &StateDir) -> Index {
        let path = state.root().join(format!("index-{}.sqlite", state.host()));
        let (pending, wake, unread) = (Mutex::default(), Notify::new(), watch::Sender::new(0));
        let queue = Arc::new(WorkQueue { path, pending, wake, unread });
        tokio::spawn(
            IndexWriter { queue: queue.clone(), file: None, read: HashMap::new(), outputs: HashMap::new() }
                .run(),
        );
        Index { queue }
    }

    pub fn path(&self) -> &Path {
        &self.queue.path
    }

    /// Sets the list of all tasks and reads them again. Other tasks leave the index.
    pub fn replace_tasks(&self, tasks: Vec<IndexedTask>) {
        self.queue.change(|pending| {
            pending.all = tasks.into_iter().map(|task| (task.key.clone(), task)).collect();
            pending.due = pending.all.keys().cloned().collect();
            pending.purge = true;
        });
    }

    /// Reads a task again, because it may have changed.
    pub fn update_task(&self, task: IndexedTask) {
        self.queue.change(|pending| {
            pending.due.insert(task.key.clone());
            pending.all.insert(task.key.clone(), task);
        });
    }

    pub fn remove_task(&self, key: &TaskKey) {
        self.queue.change(|pending| {
            pending.due.remove(key);
            pending.all.remove(key);
            pending.purge = true;
        });
    }

    /// Deletes the damaged file and reads everything again.
    pub fn rebuild(&self) {
        if let Err(cause) = index_file::delete(&self.queue.path) {
            tracing::warn!(%cause, "cannot delete the damaged index");
        }
        self.queue.change(Pending::queue_all);
    }

    /// Waits until the writer has read everything, at most `MAX_WAIT`. Returns how many tasks it has not read yet.
    pub async fn wait_until_read(&self) -> u64 {
        let mut unread = self.queue.unread.subscribe();
        let all_read = unread.wait_for(|unread| *unread == 0);
        if tokio::time::timeout(MAX_WAIT, all_read).await.is_ok() {
            return 0;
        }
        self.queue.lock().unread() as u64
    }
}

impl Pending {
    fn queue_all(&mut self) {
        self.due = self.all.keys().cloned().collect();
        self.purge = true;
    }
}

impl WorkQueue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        let mut pending = self.lock();
        change(&mut pending);
        self.unread.send_replace(pending.unread());
        drop(pending);
        self.wake.notify_one();
    }

    fn next(&self) -> Option<Job> {
        let mut pending = self.lock();
        let job = match std::mem::take(&mut pending.purge) {
            true => Some(Job::Purge(pending.all.keys().cloned().collect())),
            // Newest first: users most likely search for these.
            false => pending.due.pop_last().and_then(|key| pending.all.get(&key).cloned()).map(Job::Read),
        };
        pending.is_reading = job.is_some();
        self.unread.send_replace(pending.unread());
        job
    }
}

enum Job {
    /// Remove all tasks but these.
    Purge(BTreeSet<TaskKey>),
    Read(IndexedTask),
}

struct IndexWriter {
    queue: Arc<WorkQueue>,
    /// The writer opens it when it needs it.
    file: Option<IndexFile>,
    /// How far the writer has read each live conversation: the run and its revision.
    read: HashMap<TaskKey, (RunId, u64)>,
    /// How far the writer has read each live terminal.
    outputs: HashMap<TaskKey, LiveOutput>,
}

impl IndexWriter {
    async fn run(mut self) {
        loop {
            match self.queue.next() {
                Some(job) => self.handle(job).await,
                None => self.queue.wake.notified().await,
            }
        }
    }

    async fn handle(&mut self, job: Job) {
        let path = self.queue.path.clone();
        let mut file = self.file.take().filter(IndexFile::is_in_place);
        if file.is_none() {
            self.read.clear();
            self.outputs.clear();
        }
        let mut output = match &job {
            Job::Read(task) => self.outputs.remove(&task.key),
            Job::Purge(_) => None,
        };
        let new_entries = match &job {
            Job::Read(IndexedTask {
                conversation: TaskConversation::Live { run, commands }, key, ..
            }) => self.fetch_new_entries(key, run, commands).await,
            _ => None,
        };
        let running = tokio::task::spawn_blocking(move || {
            let outcome = open_and_run(&path, &mut file, &job, new_entries.as_ref(), &mut output);
            (file, job, new_entries, output, outcome)
        });
        let Ok((file, job, new_entries, output, outcome)) = running.await else { return };
        self.file = file;
        if let (Job::Read(task), Some(output)) = (&job, output) {
            self.outputs.insert(task.key.clone(), output);
        }
        match outcome {
            Ok(Opened::AsItWas) => self.remember_progress(&job, new_entries),
            Ok(Opened::Empty) => {
                self.remember_progress(&job, new_entries);
                self.queue.change(Pending::queue_all);
            }
            Err(cause) => self.handle_error(&cause),
        }
    }

    /// Asks the run for the entries that changed since the writer last read them.
    async fn fetch_new_entries(
        &mut self,
        key: &TaskKey,
        run: &RunId,
        commands: &CommandSender<ConversationCommand>,
    ) -> Option<NewEntries> {
        let since = self.read.get(key).filter(|(known, _)| known == run).map_or(0, |(_, revision)| *revision);
        let wanted = Page { since: Some(since), ..Page::default() };
        let ask = |answer| ConversationCommand::Read(ChatRequest { page: wanted, wait: false, answer });
        let chat = tokio::time::timeout(RUN_TIMEOUT, commands.ask(ask)).await.ok()?.ok()?;
        Some(NewEntries { chat, run: run.clone(), is_whole: since == 0 })
    }

    fn remember_progress(&mut self, job: &Job, new_entries: Option<NewEntries>) {
        let Job::Read(task) = job else { return };
        match new_entries {
            Some(new_entries) => {
                drop(self.read.insert(task.key.clone(), (new_entries.run, new_entries.chat.revision)))
            }
            None => drop(self.read.remove(&task.key)),
        }
    }

    fn handle_error(&mut self, cause: &IndexError) {
        let is_new = self.file.as_ref().is_none_or(|file| file.is_new);
        tracing::warn!(%cause, "the index is incomplete");
        // Building a new file again would not help.
        if cause.is_damaged() && !is_new {
            self.file = None;
            self.read.clear();
            self.outputs.clear();
            Index { queue: self.queue.clone() }.rebuild();
        }
    }
}

struct NewEntries {
    chat: Chat,
    run: RunId,
    is_whole: bool,
}

/// The content of the file when the writer opened it.
enum Opened {
    AsItWas,
    /// Nothing, so the writer has to read all tasks.
    Empty,
}

/// Opens the file if needed, and runs the job. Blocks.
fn open_and_run(
    path: &Path,
    file: &mut Option<IndexFile>,
    job: &Job,
    new_entries: Option<&NewEntries>,
    output: &mut Option<LiveOutput>,
) -> Result<Opened, IndexError> {
    let (file, opened) = match file {
        Some(file) => (file, Opened::AsItWas),
        None => {
            let file = file.insert(IndexFile::open(path)?);
            let opened = if file.is_new { Opened::Empty } else { Opened::AsItWas };
            (file, opened)
        }
    };
    run_job(file, job, new_entries, output).map(|()| opened)
}

fn run_job(
    file: &mut IndexFile,
    job: &Job,
    new_entries: Option<&NewEntries>,
    output: &mut Option<LiveOutput>,
) -> Result<(), IndexError> {
    match job {
        Job::Purge(kept) => {
            let gone = file.tasks().into_iter().filter(|key| !kept.contains(key));
            gone.collect::<Vec<_>>().iter().try_for_each(|key| file.remove_task(key))
        }
        Job::Read(task) => {
            write_task_text(file, task)?;
            write_conversation(file, task, new_entries)?;
            *output = output::write_output(file, &task.key, &task.output, output.take())?;
            Ok(())
        }
    }
}

fn write_task_text(file: &mut IndexFile, task: &IndexedTask) -> Result<(), IndexError> {
    let stamp = file_stamp(&task.file);
    if file.stamps(&task.key).text == stamp {
        return Ok(());
    }
    file.write_task_text(&task.key, task_text(task).as_ref(), &stamp)
}

/// Returns a text that changes when the file does; empty if there is no file.
fn file_stamp(path: &Path) -> String {
    std::fs::symlink_metadata(path).map_or_else(
        |_| String::new(),
        |meta| {
            let (size, inode) = (meta.size(), meta.ino());
            format!(
                "{inode} {size} {}.{} {}.{}",
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec()
            )
        },
    )
}

/// Returns the text of a task; none if its file cannot be read.
fn task_text(task: &IndexedTask) -> Option<Passage> {
    let file = TaskFile::parse(&read_bounded(&task.file, Links::Refused).ok()?).ok()?;
    let fields = file.fields();
    let body = String::from_utf8_lossy(file.body());
    let text = format!("{}\n{}\n{}", task.slug, fields.labels.join(" "), body.trim());
    let at_ms = fields.created_at.as_deref().and_then(milliseconds);
    Some(Passage { number: 0, kind: HitKind::Task, at_ms, text })
}

fn write_conversation(
    file: &mut IndexFile,
    task: &IndexedTask,
    new_entries: Option<&NewEntries>,
) -> Result<(), IndexError> {
    let key = &task.key;
    match (&task.conversation, new_entries) {
        (TaskConversation::None, _) if file.stamps(key).conversation == NO_CONVERSATION => Ok(()),
        (TaskConversation::None, _) => file.write_conversation(key, &[], true, NO_CONVERSATION),
        (TaskConversation::Live { .. }, None) => Ok(()),
        (TaskConversation::Live { .. }, Some(new_entries))
            if new_entries.chat.entries.is_empty() && !new_entries.is_whole =>
        {
            Ok(())
        }
        (TaskConversation::Live { .. }, Some(new_entries)) => {
            file.write_conversation(key, &passages(&new_entries.chat), new_entries.is_whole, "")
        }
        (TaskConversation::Past { runs, journals }, _) => {
            let runs = runs.iter().map(|run| run.0.as_str()).collect::<Vec<_>>().join(" ");
            // The daemon may add an exit note after the writer has read the run.
            let stamp = match exit_notes::file_size(&journals.last.journal) {
                0 => runs,
                bytes => format!("{runs} {bytes}"),
            };
            if file.stamps(key).conversation == stamp {
                return Ok(());
            }
            match journals.read(Page { since: Some(0), ..Page::default() }) {
                Ok(chat) => file.write_conversation(key, &passages(&chat), true, &stamp),
                Err(failure) => {
                    log_unreadable(key, &failure);
                    Ok(())
                }
            }
        }
    }
}

/// The stamp of a task that has no conversation.
const NO_CONVERSATION: &str = "-";

fn log_unreadable(key: &TaskKey, failure: &Failure) {
    tracing::warn!(task = %key, cause = failure.message, "cannot read a conversation for the index");
}

fn passages(chat: &Chat) -> Vec<Passage> {
    chat.entries.iter().map(Passage::of).collect()
}
