//! The index of what was said: kept beside the tasks, asked by `agency search`, made anew whenever it is missing.
//!
//! The daemon's loop only says which tasks there are and which may have changed; one task of the runtime, the
//! librarian, reads and writes, one task of ours after another. Nothing is here that could not be folded again from
//! journals and task files, so who kills the daemon or deletes the file loses nothing.

mod passage;
mod query;
mod shelf;

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
use agency_store::last_words;
use agency_store::read_small::{Links, read_small};
use tokio::sync::{Notify, watch};

use passage::Passage;
use passage::milliseconds;
pub use query::expression;
use shelf::Shelf;
pub use shelf::{Match, Scope, ShelfError, find};

/// Who searches waits that long for what is being read; then the answer says that something is missing.
const PATIENCE: Duration = Duration::from_secs(2);

/// A run that does not answer is read the next time.
const RUN_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A task, and where what is said in it can be read.
#[derive(Debug, Clone)]
pub struct Listed {
    pub key: TaskKey,
    pub root: Bytes,
    pub slug: String,
    pub file: PathBuf,
    pub talk: Talk,
}

#[derive(Debug, Clone)]
pub enum Talk {
    /// There is a terminal, or nothing has run.
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

/// What the loop and callers have of it.
#[derive(Debug, Clone)]
pub struct Index {
    desk: Arc<Desk>,
}

#[derive(Debug)]
struct Desk {
    path: PathBuf,
    waiting: Mutex<Waiting>,
    wake: Notify,
    unread: watch::Sender<usize>,
}

/// Bounded by the number of tasks: one that changes twice is read once.
#[derive(Debug, Default)]
struct Waiting {
    all: BTreeMap<TaskKey, Listed>,
    due: BTreeSet<TaskKey>,
    /// Tasks that are not in `all` have to leave.
    purge: bool,
    is_reading: bool,
}

impl Waiting {
    fn unread(&self) -> usize {
        self.due.len() + usize::from(self.purge) + usize::from(self.is_reading)
    }
}

impl Index {
    pub fn open(state: &StateDir) -> Index {
        let path = state.root().join(format!("index-{}.sqlite", state.host()));
        let (waiting, wake, unread) = (Mutex::default(), Notify::new(), watch::Sender::new(0));
        let desk = Arc::new(Desk { path, waiting, wake, unread });
        tokio::spawn(Librarian { desk: desk.clone(), shelf: None, read: HashMap::new() }.work());
        Index { desk }
    }

    pub fn path(&self) -> &Path {
        &self.desk.path
    }

    /// These are all tasks; others leave.
    pub fn sweep(&self, tasks: Vec<Listed>) {
        self.desk.change(|waiting| {
            waiting.all = tasks.into_iter().map(|listed| (listed.key.clone(), listed)).collect();
            waiting.due = waiting.all.keys().cloned().collect();
            waiting.purge = true;
        });
    }

    /// Something may be new in this one.
    pub fn touch(&self, listed: Listed) {
        self.desk.change(|waiting| {
            waiting.due.insert(listed.key.clone());
            waiting.all.insert(listed.key.clone(), listed);
        });
    }

    pub fn forget(&self, key: &TaskKey) {
        self.desk.change(|waiting| {
            waiting.due.remove(key);
            waiting.all.remove(key);
            waiting.purge = true;
        });
    }

    /// The file is damaged: it goes, and everything is read again.
    pub fn distrust(&self) {
        if let Err(cause) = shelf::discard(&self.desk.path) {
            tracing::warn!(%cause, "the index of conversations stays");
        }
        self.desk.change(Waiting::read_all_again);
    }

    /// Waits for what is being read, but not for ever. Returns how many tasks are not read yet.
    pub async fn settled(&self) -> u64 {
        let mut unread = self.desk.unread.subscribe();
        let all_read = unread.wait_for(|unread| *unread == 0);
        if tokio::time::timeout(PATIENCE, all_read).await.is_ok() {
            return 0;
        }
        self.desk.lock().unread() as u64
    }
}

impl Waiting {
    fn read_all_again(&mut self) {
        self.due = self.all.keys().cloned().collect();
        self.purge = true;
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.lock();
        change(&mut waiting);
        self.unread.send_replace(waiting.unread());
        drop(waiting);
        self.wake.notify_one();
    }

    fn next(&self) -> Option<Work> {
        let mut waiting = self.lock();
        let work = match std::mem::take(&mut waiting.purge) {
            true => Some(Work::Purge(waiting.all.keys().cloned().collect())),
            // The newest tasks are the likeliest to be looked for.
            false => waiting.due.pop_last().and_then(|key| waiting.all.get(&key).cloned()).map(Work::Read),
        };
        waiting.is_reading = work.is_some();
        self.unread.send_replace(waiting.unread());
        work
    }
}

enum Work {
    /// All but these leave.
    Purge(BTreeSet<TaskKey>),
    Read(Listed),
}

struct Librarian {
    desk: Arc<Desk>,
    /// Opened when it is first needed.
    shelf: Option<Shelf>,
    /// How far live conversations have been read: in which run, up to which revision.
    read: HashMap<TaskKey, (RunId, u64)>,
}

impl Librarian {
    async fn work(mut self) {
        loop {
            match self.desk.next() {
                Some(work) => self.see_to(work).await,
                None => self.desk.wake.notified().await,
            }
        }
    }

    async fn see_to(&mut self, work: Work) {
        let path = self.desk.path.clone();
        let mut shelf = self.shelf.take().filter(Shelf::is_there);
        if shelf.is_none() {
            self.read.clear();
        }
        let news = match &work {
            Work::Read(Listed { talk: Talk::Live { run, commands }, key, .. }) => {
                self.news_of(key, run, commands).await
            }
            _ => None,
        };
        let done = tokio::task::spawn_blocking(move || {
            let outcome = done(&path, &mut shelf, &work, news.as_ref());
            (shelf, work, news, outcome)
        });
        let Ok((shelf, work, news, outcome)) = done.await else { return };
        self.shelf = shelf;
        match outcome {
            Ok(Opened::AsItWas) => self.read_so_far(&work, news),
            Ok(Opened::Empty) => {
                self.read_so_far(&work, news);
                self.desk.change(Waiting::read_all_again);
            }
            Err(cause) => self.failed(&cause),
        }
    }

    /// What a live conversation has that was not read before.
    async fn news_of(
        &mut self,
        key: &TaskKey,
        run: &RunId,
        commands: &CommandSender<ConversationCommand>,
    ) -> Option<News> {
        let since = self.read.get(key).filter(|(known, _)| known == run).map_or(0, |(_, revision)| *revision);
        let wanted = Page { since: Some(since), ..Page::default() };
        let ask = |answer| ConversationCommand::Read(ChatRequest { page: wanted, wait: false, answer });
        let chat = tokio::time::timeout(RUN_ANSWERS_WITHIN, commands.ask(ask)).await.ok()?.ok()?;
        Some(News { chat, run: run.clone(), is_whole: since == 0 })
    }

    fn read_so_far(&mut self, work: &Work, news: Option<News>) {
        let Work::Read(listed) = work else { return };
        match news {
            Some(news) => drop(self.read.insert(listed.key.clone(), (news.run, news.chat.revision))),
            None => drop(self.read.remove(&listed.key)),
        }
    }

    fn failed(&mut self, cause: &ShelfError) {
        let is_new = self.shelf.as_ref().is_none_or(|shelf| shelf.is_new);
        tracing::warn!(%cause, "the index of conversations lacks something");
        // One that was made a moment ago would not get better by being made again.
        if cause.is_rotten() && !is_new {
            self.shelf = None;
            self.read.clear();
            Index { desk: self.desk.clone() }.distrust();
        }
    }
}

struct News {
    chat: Chat,
    run: RunId,
    is_whole: bool,
}

/// What was found in the file.
enum Opened {
    AsItWas,
    /// Nothing at all, so that everything has to be read.
    Empty,
}

/// Blocking. Opens the file if it is not open.
fn done(
    path: &Path,
    shelf: &mut Option<Shelf>,
    work: &Work,
    news: Option<&News>,
) -> Result<Opened, ShelfError> {
    let (shelf, opened) = match shelf {
        Some(shelf) => (shelf, Opened::AsItWas),
        None => {
            let shelf = shelf.insert(Shelf::open(path)?);
            let opened = if shelf.is_new { Opened::Empty } else { Opened::AsItWas };
            (shelf, opened)
        }
    };
    do_work(shelf, work, news).map(|()| opened)
}

fn do_work(shelf: &mut Shelf, work: &Work, news: Option<&News>) -> Result<(), ShelfError> {
    match work {
        Work::Purge(kept) => {
            let gone = shelf.tasks().into_iter().filter(|key| !kept.contains(key));
            gone.collect::<Vec<_>>().iter().try_for_each(|key| shelf.forget(key))
        }
        Work::Read(listed) => {
            put_text(shelf, listed)?;
            put_talk(shelf, listed, news)
        }
    }
}

fn put_text(shelf: &mut Shelf, listed: &Listed) -> Result<(), ShelfError> {
    let stamp = file_stamp(&listed.file);
    if shelf.stamps(&listed.key).text == stamp {
        return Ok(());
    }
    shelf.put_text(&listed.key, task_text(listed).as_ref(), &stamp)
}

/// Whether it may have changed; empty if it is not there.
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

/// A file that cannot be read has nothing to be found by.
fn task_text(listed: &Listed) -> Option<Passage> {
    let file = TaskFile::parse(&read_small(&listed.file, Links::Refused).ok()?).ok()?;
    let fields = file.fields();
    let body = String::from_utf8_lossy(file.body());
    let text = format!("{}\n{}\n{}", listed.slug, fields.labels.join(" "), body.trim());
    let at_ms = fields.created_at.as_deref().and_then(milliseconds);
    Some(Passage { number: 0, kind: HitKind::Task, at_ms, text })
}

fn put_talk(shelf: &mut Shelf, listed: &Listed, news: Option<&News>) -> Result<(), ShelfError> {
    let key = &listed.key;
    match (&listed.talk, news) {
        (Talk::None, _) if shelf.stamps(key).talk == NO_TALK => Ok(()),
        (Talk::None, _) => shelf.put_talk(key, &[], true, NO_TALK),
        (Talk::Live { .. }, None) => Ok(()),
        (Talk::Live { .. }, Some(news)) if news.chat.entries.is_empty() && !news.is_whole => Ok(()),
        (Talk::Live { .. }, Some(news)) => shelf.put_talk(key, &passages(&news.chat), news.is_whole, ""),
        (Talk::Past { runs, journals }, _) => {
            let runs = runs.iter().map(|run| run.0.as_str()).collect::<Vec<_>>().join(" ");
            // How a run ended may be said after it was read.
            let stamp = match last_words::bytes(&journals.last.journal) {
                0 => runs,
                bytes => format!("{runs} {bytes}"),
            };
            if shelf.stamps(key).talk == stamp {
                return Ok(());
            }
            match journals.read(Page { since: Some(0), ..Page::default() }) {
                Ok(chat) => shelf.put_talk(key, &passages(&chat), true, &stamp),
                Err(failure) => {
                    unreadable(key, &failure);
                    Ok(())
                }
            }
        }
    }
}

/// The stamp of a task that has no conversation.
const NO_TALK: &str = "-";

fn unreadable(key: &TaskKey, failure: &Failure) {
    tracing::warn!(task = %key, cause = failure.message, "a conversation cannot be searched");
}

fn passages(chat: &Chat) -> Vec<Passage> {
    chat.entries.iter().map(Passage::of).collect()
}
