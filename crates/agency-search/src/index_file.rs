//! The file of the index: passages of text in SQLite, with a full-text table (FTS5).
//!
//! Journals and task files contain everything in it, so a user may delete it at any time. A file that another version
//! of Agency made is deleted and built again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agency_api::search::{HitKind, Piece};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, params};

use super::passage::{FIRST_OUTPUT, MOST_OUTPUT, Passage};

/// The format of the tables below. It includes the version of Agency because the code that folds a conversation
/// numbers its entries, and another version may number them differently.
const FORMAT: &str = concat!("2 ", env!("CARGO_PKG_VERSION"));

/// A search waits this long while the writer stores a large conversation.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Words in a snippet.
const SNIPPET_WORDS: i64 = 24;

/// These mark a hit in a snippet. A passage never contains them.
const BEGIN: char = '\u{1}';
const END: char = '\u{2}';

const TABLES: &str = "
    CREATE TABLE made (format TEXT NOT NULL);
    CREATE TABLE tasks (
        id INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        task INTEGER NOT NULL,
        text_stamp TEXT NOT NULL DEFAULT '',
        talk_stamp TEXT NOT NULL DEFAULT '',
        output_stamp TEXT NOT NULL DEFAULT '',
        UNIQUE (project, task)
    );
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY,
        task_id INTEGER NOT NULL,
        number INTEGER NOT NULL,
        kind TEXT NOT NULL,
        at_ms INTEGER,
        text TEXT NOT NULL,
        UNIQUE (task_id, number)
    );
    CREATE VIRTUAL TABLE words USING fts5(
        text, content = 'passages', content_rowid = 'id', prefix = '2 3',
        tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
        INSERT INTO words (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER passage_gone AFTER DELETE ON passages BEGIN
        INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
    END;
    CREATE TRIGGER passage_changed AFTER UPDATE ON passages BEGIN
        INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
        INSERT INTO words (rowid, text) VALUES (new.id, new.text);
    END;
";

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    File(#[from] io::Error),
}

impl IndexError {
    /// The file is damaged or no index, so a new file would help.
    pub fn is_damaged(&self) -> bool {
        let IndexError::Sqlite(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown)
        )
    }
}

/// The versions of a task's texts that the index contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The version of the task file.
    pub text: String,
    /// The version of the conversation; empty while its run is live.
    pub conversation: String,
    /// The runs whose output is complete.
    pub output: String,
}

/// Which earlier passages new ones replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    Everything,
    Nothing,
}

/// The index, open for writing. Only the index writer has one.
#[derive(Debug)]
pub struct IndexFile {
    path: PathBuf,
    inode: u64,
    connection: Connection,
    stamps: HashMap<TaskKey, Stamps>,
    /// The index is still empty.
    pub is_new: bool,
}

impl IndexFile {
    /// Opens the file, or creates it. Replaces a damaged file.
    pub fn open(path: &Path) -> Result<IndexFile, IndexError> {
        match IndexFile::try_open(path) {
            Err(cause) if cause.is_damaged() => {
                tracing::warn!(%cause, "the index cannot be used and is built again");
                delete(path)?;
                IndexFile::try_open(path)
            }
            outcome => outcome,
        }
    }

    fn try_open(path: &Path) -> Result<IndexFile, IndexError> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let mut connection = connect(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // A power cut may lose the last writes, which the writer repeats; it does not damage the file.
        connection.pragma_update(None, "synchronous", "normal")?;
        let is_new = create_tables(&mut connection)?;
        let stamps = read_stamps(&connection)?;
        Ok(IndexFile { path: path.to_path_buf(), inode: inode(&file)?, connection, stamps, is_new })
    }

    /// Whether the path still leads to the open file.
    pub fn is_in_place(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|meta| meta.ino() == self.inode)
    }

    pub fn stamps(&self, key: &TaskKey) -> Stamps {
        self.stamps.get(key).cloned().unwrap_or_default()
    }

    pub fn tasks(&self) -> Vec<TaskKey> {
        self.stamps.keys().cloned().collect()
    }

    /// Replaces the text of a task.
    pub fn write_task_text(
        &mut self,
        key: &TaskKey,
        passage: Option<&Passage>,
        stamp: &str,
    ) -> Result<(), IndexError> {
        self.change(key, |change, id| {
            change.execute("DELETE FROM passages WHERE task_id = ?1 AND number = 0", [id])?;
            passage.map_or(Ok(()), |passage| write_passage(change, id, passage))?;
            let set = "UPDATE tasks SET text_stamp = ?2 WHERE id = ?1";
            change.prepare_cached(set)?.execute(params![id, stamp]).map(drop)
        })?;
        self.stamps.entry(key.clone()).or_default().text = stamp.to_owned();
        Ok(())
    }

    /// Adds new entries of a conversation, or replaces all of them if `is_whole`.
    pub fn write_conversation(
        &mut self,
        key: &TaskKey,
        passages: &[Passage],
        is_whole: bool,
        stamp: &str,
    ) -> Result<(), IndexError> {
        self.change(key, |change, id| {
            if is_whole {
                let conversation = params![id, FIRST_OUTPUT];
                change.execute(
                    "DELETE FROM passages WHERE task_id = ?1 AND number > 0 AND number < ?2",
                    conversation,
                )?;
            }
            passages.iter().try_for_each(|passage| write_passage(change, id, passage))?;
            let set = "UPDATE tasks SET talk_stamp = ?2 WHERE id = ?1";
            change.prepare_cached(set)?.execute(params![id, stamp]).map(drop)
        })?;
        self.stamps.entry(key.clone()).or_default().conversation = stamp.to_owned();
        Ok(())
    }

    /// Adds output of a task's terminals. The oldest output leaves the index when there is too much.
    pub fn write_output(
        &mut self,
        key: &TaskKey,
        passages: &[Passage],
        replaces: Replaces,
        stamp: &str,
    ) -> Result<(), IndexError> {
        let oldest = match (replaces, passages.last()) {
            (Replaces::Everything, _) => u64::MAX >> 1,
            (Replaces::Nothing, None) => FIRST_OUTPUT,
            (Replaces::Nothing, Some(newest)) => newest.number.saturating_sub(MOST_OUTPUT) + 1,
        };
        self.change(key, |change, id| {
            let old = params![id, FIRST_OUTPUT, oldest];
            change
                .execute("DELETE FROM passages WHERE task_id = ?1 AND number >= ?2 AND number < ?3", old)?;
            passages.iter().try_for_each(|passage| write_passage(change, id, passage))?;
            let set = "UPDATE tasks SET output_stamp = ?2 WHERE id = ?1";
            change.prepare_cached(set)?.execute(params![id, stamp]).map(drop)
        })?;
        self.stamps.entry(key.clone()).or_default().output = stamp.to_owned();
        Ok(())
    }

    pub fn remove_task(&mut self, key: &TaskKey) -> Result<(), IndexError> {
        if self.stamps.contains_key(key) {
            self.change(key, |change, id| {
                change.execute("DELETE FROM passages WHERE task_id = ?1", [id])?;
                change.execute("DELETE FROM tasks WHERE id = ?1", [id]).map(drop)
            })?;
            self.stamps.remove(key);
        }
        Ok(())
    }

    /// Applies the change in one transaction.
    fn change(
        &mut self,
        key: &TaskKey,
        change: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<()>,
    ) -> Result<(), IndexError> {
        let transaction = self.connection.transaction()?;
        let id = task_id(&transaction, key)?;
        change(&transaction, id)?;
        transaction.commit()?;
        self.is_new = false;
        Ok(())
    }
}

/// Deletes the file and the two files that SQLite keeps beside it.
pub fn delete(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            _ => {}
        }
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, IndexError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn inode(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.ino())
}

/// Creates the tables if there are none. Returns whether it did.
fn create_tables(connection: &mut Connection) -> Result<bool, IndexError> {
    let change = connection.transaction()?;
    let tables: i64 = change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 {
        let made: String = change.query_row("SELECT format FROM made", [], |row| row.get(0))?;
        return match made == FORMAT {
            true => Ok(false),
            false => Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB),
                Some(format!("its format is `{made}`, not `{FORMAT}`")),
            )
            .into()),
        };
    }
    change.execute_batch(TABLES)?;
    change.execute("INSERT INTO made VALUES (?1)", [FORMAT])?;
    change.commit()?;
    Ok(true)
}

fn read_stamps(connection: &Connection) -> Result<HashMap<TaskKey, Stamps>, IndexError> {
    let mut all =
        connection.prepare("SELECT project, task, text_stamp, talk_stamp, output_stamp FROM tasks")?;
    let rows = all.query_map([], |row| {
        let key = TaskKey { project: ProjectId(row.get(0)?), task: TaskId(row.get(1)?) };
        Ok((key, Stamps { text: row.get(2)?, conversation: row.get(3)?, output: row.get(4)? }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn task_id(change: &Transaction<'_>, key: &TaskKey) -> rusqlite::Result<i64> {
    let named = params![key.project.0, key.task.0];
    let add = "INSERT INTO tasks (project, task) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    change.prepare_cached(add)?.execute(named)?;
    let find = "SELECT id FROM tasks WHERE project = ?1 AND task = ?2";
    change.prepare_cached(find)?.query_row(named, |row| row.get(0))
}

fn write_passage(change: &Transaction<'_>, task_id: i64, passage: &Passage) -> rusqlite::Result<()> {
    let Passage { number, kind, at_ms, text } = passage;
    let text = text.replace([BEGIN, END, '\0'], " ");
    let add = "INSERT INTO passages (task_id, number, kind, at_ms, text) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT DO UPDATE SET kind = excluded.kind, at_ms = excluded.at_ms, text = excluded.text";
    change.prepare_cached(add)?.execute(params![task_id, number, kind.as_str(), at_ms, text]).map(drop)
}

/// The tasks that a search is limited to.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub project: Option<ProjectId>,
    pub task: Option<TaskId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub key: TaskKey,
    pub number: u64,
    pub kind: HitKind,
    pub at_ms: Option<i64>,
    pub snippet: Vec<Piece>,
}

const FIND: &str = "
    SELECT tasks.project, tasks.task, passages.number, passages.kind, passages.at_ms,
        snippet(words, 0, char(1), char(2), '…', ?5)
    FROM words
    JOIN passages ON passages.id = words.rowid
    JOIN tasks ON tasks.id = passages.task_id
    WHERE words MATCH ?1 AND (?2 IS NULL OR tasks.project = ?2) AND (?3 IS NULL OR tasks.task = ?3)
    ORDER BY passages.at_ms DESC, passages.id DESC LIMIT ?4";

/// Returns the hits, newest first. Blocks, and may run while the writer writes.
pub fn find(path: &Path, expression: &str, scope: &Scope, limit: u64) -> Result<Vec<Match>, IndexError> {
    let connection = connect(path)?;
    let mut find = connection.prepare(FIND)?;
    let (project, task) = (scope.project.as_ref().map(|id| &id.0), scope.task.map(|id| id.0));
    let rows = find.query_map(params![expression, project, task, limit, SNIPPET_WORDS], |row| {
        let kind: String = row.get(3)?;
        let snippet: String = row.get(5)?;
        Ok(Match {
            key: TaskKey { project: ProjectId(row.get(0)?), task: TaskId(row.get(1)?) },
            number: row.get(2)?,
            kind: HitKind::ALL.into_iter().find(|known| known.as_str() == kind).unwrap_or(HitKind::Notice),
            at_ms: row.get(4)?,
            snippet: pieces(&snippet),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn pieces(snippet: &str) -> Vec<Piece> {
    let mut hit = false;
    let mut pieces = Vec::new();
    for text in snippet.split_inclusive([BEGIN, END]) {
        let plain = text.trim_end_matches([BEGIN, END]);
        if !plain.is_empty() {
            pieces.push(Piece { text: plain.to_owned(), hit });
        }
        hit = text.ends_with(BEGIN);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(task: u64) -> TaskKey {
        TaskKey { project: ProjectId("p".into()), task: TaskId(task) }
    }

    fn passage(number: u64, text: &str) -> Passage {
        Passage { number, kind: HitKind::Assistant, at_ms: Some(number as i64), text: text.to_owned() }
    }

    fn found(path: &Path, typed: &str) -> Vec<(u64, u64)> {
        let expression = super::super::query::expression(typed).expect("words");
        let found = find(path, &expression, &Scope::default(), 100).expect("an index");
        found.into_iter().map(|found| (found.key.task.0, found.number)).collect()
    }

    #[test]
    fn passages_are_added_changed_and_removed() {
        let dir = tempfile::tempdir().expect("a writable directory");
        let path = dir.path().join("index");
        let mut file = IndexFile::open(&path).expect("an index");
        file.write_task_text(&key(1), Some(&passage(0, "fix-login the crème brûlée")), "t")
            .expect("a writable directory");
        let entries = [passage(1, "The login is broken"), passage(2, "foo_bar(\"kill -9\")")];
        file.write_conversation(&key(1), &entries, true, "").expect("a writable directory");
        file.write_conversation(&key(2), &entries[..1], true, "r1").expect("a writable directory");
        assert_eq!(found(&path, "login"), [(2, 1), (1, 1), (1, 0)]);
        assert_eq!(found(&path, "creme BRUL"), [(1, 0)]);
        assert_eq!(found(&path, "bar kill"), [(1, 2)]);
        assert_eq!(found(&path, "\"is broken\""), [(2, 1), (1, 1)]);
        assert_eq!(found(&path, "\"broken is\""), []);
        file.write_conversation(&key(1), &[passage(1, "The logout works")], false, "")
            .expect("a writable directory");
        assert_eq!(found(&path, "login"), [(2, 1), (1, 0)]);
        assert_eq!(found(&path, "kill"), [(1, 2)], "the other entry is unchanged");
        let printed = |n: u64, text: &str| passage(FIRST_OUTPUT + n, text);
        file.write_output(&key(1), &[printed(0, "printed first")], Replaces::Everything, "").expect("room");
        file.write_conversation(&key(1), &entries, true, "").expect("room");
        assert_eq!(found(&path, "printed"), [(1, FIRST_OUTPUT)], "a conversation replaces no output");
        file.write_output(&key(1), &[printed(MOST_OUTPUT, "much later")], Replaces::Nothing, "")
            .expect("room");
        assert_eq!(found(&path, "printed"), [], "the oldest output leaves");
        assert_eq!(found(&path, "kill"), [(1, 2)], "output replaces no conversation");
        file.write_conversation(&key(1), &[passage(1, "The logout works")], false, "").expect("room");
        file.remove_task(&key(2)).expect("a writable directory");
        assert_eq!(found(&path, "login"), [(1, 0)]);
        drop(file);
        let file = IndexFile::open(&path).expect("the same index");
        assert_eq!(file.stamps(&key(1)), Stamps { text: "t".into(), ..Stamps::default() });
        assert_eq!(file.tasks(), [key(1)]);
    }

    #[test]
    fn no_search_text_is_a_syntax_error() {
        let dir = tempfile::tempdir().expect("a writable directory");
        let path = dir.path().join("index");
        let mut file = IndexFile::open(&path).expect("an index");
        file.write_conversation(&key(1), &[passage(1, "say NOT it AND go")], true, "")
            .expect("a writable directory");
        let odd = [
            "a*",
            "^a",
            "text: a",
            "(a",
            "a OR",
            "NEAR(a b",
            "a + b",
            "{a}",
            "\"a\"\"b",
            "a'b",
            "a;b",
            "-a",
            "ß\u{301}",
            "\u{1}a\u{2}",
            "text : x *",
        ];
        odd.iter().for_each(|typed| drop(found(&path, typed)));
        assert_eq!(found(&path, "NOT AND"), [(1, 1)]);
    }

    #[test]
    fn a_file_that_is_no_index_is_replaced_and_a_deleted_one_is_noticed() {
        let dir = tempfile::tempdir().expect("a writable directory");
        let path = dir.path().join("index");
        for rubbish in [&b"SQLite format 3\0and then nothing of the kind"[..], &[0xff; 9000]] {
            std::fs::write(&path, rubbish).expect("a writable directory");
            let mut file = IndexFile::open(&path).expect("a new index");
            assert!(file.is_new && file.is_in_place());
            file.write_conversation(&key(1), &[passage(1, "word")], true, "").expect("a writable directory");
            assert_eq!(found(&path, "word"), [(1, 1)]);
            delete(&path).expect("it is ours");
            assert!(!file.is_in_place());
        }
    }

    #[test]
    fn a_snippet_marks_the_words_that_match() {
        let piece = |text: &str, hit| Piece { text: text.to_owned(), hit };
        let wanted = [piece("a ", false), piece("b", true), piece(" c ", false), piece("d", true)];
        assert_eq!(pieces("a \u{1}b\u{2} c \u{1}d\u{2}"), wanted);
        assert_eq!(pieces(""), []);
    }
}
