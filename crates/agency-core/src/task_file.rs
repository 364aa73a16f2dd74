//! `.agency/tasks/{id}-{slug}.md`: YAML front matter between two `---` lines, then the task's text.
//!
//! Reads and writes no file. A change touches only the lines of its own key. Everything else stays byte for byte:
//! comments, unknown keys, line ends and the body.
//!
//! `last_exit` is written as `{code: -15, raw: 0, at: "2026-01-31T12:00:00Z"}`: the code that people see, the wait status,
//! and the time. A signal is a negative number; a lost status is `unknown`. `asked: true` follows if a caller
//! requested an end with another code than −15, and `asked: false` after an end with that code that no caller requested.

mod entry;
mod front_matter;
mod yaml;

use crate::agent::Driver;
use crate::exit::{ExitCode, SIGTERM};
use crate::ids::TaskId;
use crate::task_status::TaskStatus;

use entry::{Entry, Node};

/// A task file that can be changed key by key.
#[derive(Clone, PartialEq, Eq)]
pub struct TaskFile {
    /// A byte order mark if there was one, and the front matter with both its `---` lines.
    head: String,
    body: Vec<u8>,
    fields: Fields,
}

/// The keys of the front matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The branch or revision that the workspace starts from.
    pub base_branch: Option<String>,
    /// `draft` if the file has no status.
    pub status: TaskStatus,
    /// The user's own labels.
    pub labels: Vec<String>,
    /// RFC 3339, as written.
    pub created_at: Option<String>,
    /// The agent; absent: the default one.
    pub agent: Option<String>,
    /// The driver; absent: the agent's usual one.
    pub driver: Option<Driver>,
    /// The command of `agency new SLUG -- COMMAND ARG…`.
    pub command: Option<Vec<String>>,
    /// The agent's own id of the session to resume.
    pub session_id: Option<String>,
    /// The task whose agent created this one.
    pub parent: Option<TaskId>,
    /// The end of the last run.
    pub last_exit: Option<LastExit>,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields {
            base_branch: None,
            status: TaskStatus::Draft,
            labels: Vec::new(),
            created_at: None,
            agent: None,
            driver: None,
            command: None,
            session_id: None,
            parent: None,
            last_exit: None,
        }
    }
}

/// The end of the last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastExit {
    /// The code that people see.
    pub code: ExitCode,
    /// The wait status of the kernel.
    pub raw: ExitCode,
    /// RFC 3339, as written.
    pub at: Option<String>,
    /// Whether a caller requested this end.
    pub asked: bool,
}

/// One key and its new value. `None` removes the key from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// `base_branch`
    BaseBranch(Option<String>),
    /// `status`
    Status(TaskStatus),
    /// `labels`
    Labels(Vec<String>),
    /// `created_at`
    CreatedAt(Option<String>),
    /// `agent`
    Agent(Option<String>),
    /// `driver`
    Driver(Option<Driver>),
    /// `command`
    Command(Option<Vec<String>>),
    /// `session_id`
    SessionId(Option<String>),
    /// `parent`
    Parent(Option<TaskId>),
    /// `last_exit`
    LastExit(Option<LastExit>),
}

impl TaskFile {
    /// Reads the bytes of a file.
    pub fn parse(bytes: &[u8]) -> Result<TaskFile, TaskFileError> {
        let (head, body) = front_matter::split(bytes)?;
        let fields = read_fields(head)?;
        Ok(TaskFile { head: head.to_owned(), body: body.to_vec(), fields })
    }

    /// Makes a new file.
    pub fn create(mut fields: Fields, body: Vec<u8>) -> TaskFile {
        fields.apply(Field::Command(fields.command.clone()));
        let mut head = "---\n".to_owned();
        for field in fields.clone().into_list() {
            if let Some(value) = field.to_yaml() {
                head.push_str(&format!("{}: {value}\n", field.key()));
            }
        }
        head.push_str("---\n");
        TaskFile { head, body, fields }
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }

    /// The keys of the front matter.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Everything after the front matter.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Replaces everything after the front matter.
    pub fn set_body(&mut self, body: Vec<u8>) {
        self.body = body;
    }

    /// Changes one key. If the key already has this value, no byte changes.
    pub fn set(&mut self, field: Field) -> Result<(), TaskFileError> {
        let mut fields = self.fields.clone();
        fields.apply(field.clone());
        if fields == self.fields {
            return Ok(());
        }
        let head = front_matter::with_value(&self.head, field.key(), field.to_yaml().as_deref())?;
        // Front matter that a person wrote can connect keys (an anchor here, its alias there).
        let read_back = read_fields(&head);
        if read_back.as_ref() != Ok(&fields) {
            let line = front_matter::line_of(&self.head, field.key());
            return Err(TaskFileProblem::CannotEdit(field.key()).at(line));
        }
        self.head = head;
        self.fields = fields;
        Ok(())
    }
}

/// The body is a prompt, and logs must not contain prompts.
impl std::fmt::Debug for TaskFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = format_args!("{} bytes", self.body.len());
        f.debug_struct("TaskFile").field("fields", &self.fields).field("body", &body).finish()
    }
}

impl Fields {
    fn into_list(self) -> [Field; 10] {
        [
            Field::BaseBranch(self.base_branch),
            Field::Status(self.status),
            Field::Labels(self.labels),
            Field::CreatedAt(self.created_at),
            Field::Agent(self.agent),
            Field::Driver(self.driver),
            Field::Command(self.command),
            Field::SessionId(self.session_id),
            Field::Parent(self.parent),
            Field::LastExit(self.last_exit),
        ]
    }

    fn apply(&mut self, field: Field) {
        match field {
            Field::BaseBranch(value) => self.base_branch = value,
            Field::Status(value) => self.status = value,
            Field::Labels(value) => self.labels = value,
            Field::CreatedAt(value) => self.created_at = value,
            Field::Agent(value) => self.agent = value,
            Field::Driver(value) => self.driver = value,
            // An empty list is no command.
            Field::Command(value) => self.command = value.filter(|words| !words.is_empty()),
            Field::SessionId(value) => self.session_id = value,
            Field::Parent(value) => self.parent = value,
            Field::LastExit(value) => self.last_exit = value,
        }
    }
}

impl Field {
    fn key(&self) -> &'static str {
        match self {
            Field::BaseBranch(_) => "base_branch",
            Field::Status(_) => "status",
            Field::Labels(_) => "labels",
            Field::CreatedAt(_) => "created_at",
            Field::Agent(_) => "agent",
            Field::Driver(_) => "driver",
            Field::Command(_) => "command",
            Field::SessionId(_) => "session_id",
            Field::Parent(_) => "parent",
            Field::LastExit(_) => "last_exit",
        }
    }

    fn to_yaml(&self) -> Option<String> {
        match self {
            Field::BaseBranch(text)
            | Field::CreatedAt(text)
            | Field::Agent(text)
            | Field::SessionId(text) => text.as_deref().map(yaml::scalar),
            Field::Status(status) => Some(status.to_string()),
            Field::Parent(parent) => parent.map(|parent| parent.to_string()),
            Field::Driver(driver) => driver.map(|driver| driver.to_string()),
            Field::Labels(labels) => Some(yaml::list(labels)),
            Field::Command(words) => words.as_deref().filter(|words| !words.is_empty()).map(yaml::list),
            Field::LastExit(exit) => exit.as_ref().map(LastExit::to_yaml),
        }
    }
}

impl LastExit {
    fn to_yaml(&self) -> String {
        let at = self.at.as_deref().map(|at| format!(", at: {}", yaml::scalar(at)));
        let is_unusual = self.asked != usually_asked(self.code);
        let asked = is_unusual.then(|| format!(", asked: {}", self.asked));
        format!(
            "{{code: {}, raw: {}{}{}}}",
            self.code,
            self.raw,
            at.unwrap_or_default(),
            asked.unwrap_or_default()
        )
    }

    fn from_node(node: &Node) -> Option<LastExit> {
        match node {
            Node::Text(code) => {
                let code = code.parse().ok()?;
                Some(LastExit { code, raw: code, at: None, asked: usually_asked(code) })
            }
            Node::Map(pairs) => {
                let get = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value);
                let code = get("code")?.parse().ok()?;
                let raw = get("raw").map_or(Some(code), |raw| raw.parse().ok())?;
                let asked = get("asked").and_then(|asked| asked.parse().ok());
                let asked = asked.unwrap_or_else(|| usually_asked(code));
                Some(LastExit { code, raw, at: get("at").cloned(), asked })
            }
            Node::Null | Node::List(_) | Node::Other => None,
        }
    }
}

/// Files of earlier versions do not say who asked for an end. A run that Agency stopped has this code, and few others do.
fn usually_asked(code: ExitCode) -> bool {
    code == ExitCode::Signal(SIGTERM)
}

fn read_fields(head: &str) -> Result<Fields, TaskFileError> {
    let mut fields = Fields::default();
    for entry in front_matter::entries(head)? {
        if let Some(field) = read_field(&entry)? {
            fields.apply(field);
        }
    }
    Ok(fields)
}

/// Reads one key. Ignores unknown keys and empty values.
fn read_field(entry: &Entry) -> Result<Option<Field>, TaskFileError> {
    if entry.value == Node::Null {
        return Ok(None);
    }
    let wrong = |expected| {
        let (key, got) = (entry.key.clone(), entry.value.describe());
        TaskFileProblem::WrongValue { key, expected, got }.at(entry.line)
    };
    let field = match entry.key.as_str() {
        "base_branch" => Field::BaseBranch(Some(entry.value.text().ok_or_else(|| wrong("text"))?)),
        "created_at" => Field::CreatedAt(Some(entry.value.text().ok_or_else(|| wrong("a time"))?)),
        "agent" => Field::Agent(Some(entry.value.text().ok_or_else(|| wrong("the name of an agent"))?)),
        "session_id" => Field::SessionId(Some(entry.value.text().ok_or_else(|| wrong("text"))?)),
        // Other tools may use `parent` for something else, so ignore any other value.
        "parent" => match entry.value.parsed().filter(|id| *id > 0) {
            Some(id) => Field::Parent(Some(TaskId(id))),
            None => return Ok(None),
        },
        "status" => Field::Status(entry.value.parsed().ok_or_else(|| wrong(STATUSES))?),
        "driver" => Field::Driver(Some(entry.value.parsed().ok_or_else(|| wrong(DRIVERS))?)),
        "labels" => Field::Labels(entry.value.list().ok_or_else(|| wrong("a list such as [bug, ui]"))?),
        "command" => {
            let words = entry.value.list().filter(|words| !words.is_empty());
            Field::Command(Some(words.ok_or_else(|| wrong("a list such as [make, test]"))?))
        }
        "last_exit" => Field::LastExit(Some(LastExit::from_node(&entry.value).ok_or_else(|| wrong(EXITS))?)),
        _ => return Ok(None),
    };
    Ok(Some(field))
}

const STATUSES: &str = "draft, running, idle, stopped, completed, failed, reviewed or merged";
const DRIVERS: &str = "terminal, stream-json or acp";
const EXITS: &str = "an exit such as {code: -15, raw: 0}";

/// A problem in a task file. The caller adds the name of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TaskFileError {
    /// The line of the file, counted from 1.
    pub line: usize,
    /// The problem.
    pub problem: TaskFileProblem,
}

/// A problem with a task file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskFileProblem {
    /// The first line is not `---`.
    #[error("the file does not begin with `---`")]
    NoFrontMatter,
    /// There is no second `---` line.
    #[error("the front matter has no second `---` line")]
    Unclosed,
    /// The front matter has other bytes than UTF-8.
    #[error("the front matter is not UTF-8")]
    NotUtf8,
    /// A carriage return without a newline.
    #[error("a line of the front matter ends with a carriage return only")]
    LoneCarriageReturn,
    /// The YAML parser refuses it.
    #[error("{0}")]
    Yaml(String),
    /// It is YAML, but not a block mapping.
    #[error("the front matter is not a list of `key: value` lines")]
    NotKeyed,
    /// A key occurs twice.
    #[error("`{0}` occurs twice")]
    Twice(String),
    /// A key has a value that it does not take.
    #[error("`{key}` must be {expected}, not {got}")]
    WrongValue {
        /// The key.
        key: String,
        /// The values that the key takes.
        expected: &'static str,
        /// The value in the file, in words.
        got: String,
    },
    /// The key shares its text with other keys.
    #[error("`{0}` cannot be changed without changing other keys")]
    CannotEdit(&'static str),
}

impl TaskFileProblem {
    fn at(self, line: usize) -> TaskFileError {
        TaskFileError { line, problem: self }
    }
}

impl TaskFileError {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        match &self.problem {
            TaskFileProblem::NoFrontMatter => {
                "begin the file with the lines `---`, `status: draft`, `---`".to_owned()
            }
            TaskFileProblem::Unclosed => "end the front matter with a line `---`".to_owned(),
            TaskFileProblem::NotUtf8 => "save the file as UTF-8".to_owned(),
            TaskFileProblem::LoneCarriageReturn => "save the file with \\n or \\r\\n line ends".to_owned(),
            TaskFileProblem::Yaml(_) => "quote text that has `: `, `#`, brackets or quotes in it".to_owned(),
            TaskFileProblem::NotKeyed => "write one `key: value` per line, none of them indented".to_owned(),
            TaskFileProblem::Twice(key) => format!("delete one of the two `{key}`"),
            TaskFileProblem::WrongValue { key, .. } => format!("correct `{key}`, or delete the line"),
            TaskFileProblem::CannotEdit(key) => {
                format!("write the value of `{key}` on one line, without anchors (`&`)")
            }
        }
    }
}

#[cfg(test)]
mod tests;
