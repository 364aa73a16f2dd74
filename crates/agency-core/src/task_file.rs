//! `.agency/tasks/{id}-{slug}.md`: YAML front matter between two `---` lines, then the task's text.
//!
//! Reads and writes no file. A change touches the lines of its own key; everything else, comments, unknown
//! keys, line ends and the body included, stays byte for byte.
//!
//! `last_exit` is written as `{code: -15, raw: 0, at: "2026-01-31T12:00:00Z"}`: the code people are told, the
//! wait status as it was, and when. A signal is a negative number; what nobody knows is `unknown`.

mod entry;
mod front_matter;
mod yaml;

use crate::agent::Driver;
use crate::exit::ExitCode;
use crate::ids::TaskId;
use crate::task_status::TaskStatus;

use entry::{Entry, Node};

#[derive(Clone, PartialEq, Eq)]
pub struct TaskFile {
    /// A byte order mark if there was one, and the front matter with both its `---` lines.
    head: String,
    body: Vec<u8>,
    fields: Fields,
}

/// What the front matter says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    pub base_branch: Option<String>,
    /// `draft` where the file says nothing.
    pub status: TaskStatus,
    pub labels: Vec<String>,
    /// RFC 3339, as written.
    pub created_at: Option<String>,
    pub agent: Option<String>,
    pub driver: Option<Driver>,
    /// What `agency new SLUG -- COMMAND ARG…` was given.
    pub command: Option<Vec<String>>,
    pub session_id: Option<String>,
    /// The task whose agent had it made.
    pub parent: Option<TaskId>,
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastExit {
    pub code: ExitCode,
    pub raw: ExitCode,
    /// RFC 3339, as written.
    pub at: Option<String>,
}

/// One key and its new value. `None` takes the key out of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    BaseBranch(Option<String>),
    Status(TaskStatus),
    Labels(Vec<String>),
    CreatedAt(Option<String>),
    Agent(Option<String>),
    Driver(Option<Driver>),
    Command(Option<Vec<String>>),
    SessionId(Option<String>),
    Parent(Option<TaskId>),
    LastExit(Option<LastExit>),
}

impl TaskFile {
    pub fn parse(bytes: &[u8]) -> Result<TaskFile, TaskFileError> {
        let (head, body) = front_matter::split(bytes)?;
        let fields = read_fields(head)?;
        Ok(TaskFile { head: head.to_owned(), body: body.to_vec(), fields })
    }

    /// A new file.
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

    pub fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }

    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Everything after the front matter.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Changes one key. A value that is already there changes nothing at all.
    pub fn set(&mut self, field: Field) -> Result<(), TaskFileError> {
        let mut fields = self.fields.clone();
        fields.apply(field.clone());
        if fields == self.fields {
            return Ok(());
        }
        let head = front_matter::with_value(&self.head, field.key(), field.to_yaml().as_deref())?;
        // Hand-made front matter can tie keys together (an anchor here, its alias there).
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

/// The body is a prompt, and prompts are not for logs.
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
            // No words are no command.
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
        format!("{{code: {}, raw: {}{}}}", self.code, self.raw, at.unwrap_or_default())
    }

    fn from_node(node: &Node) -> Option<LastExit> {
        match node {
            Node::Text(code) => {
                let code = code.parse().ok()?;
                Some(LastExit { code, raw: code, at: None })
            }
            Node::Map(pairs) => {
                let get = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value);
                let code = get("code")?.parse().ok()?;
                let raw = get("raw").map_or(Some(code), |raw| raw.parse().ok())?;
                Some(LastExit { code, raw, at: get("at").cloned() })
            }
            Node::Null | Node::List(_) | Node::Other => None,
        }
    }
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

/// Unknown keys are none of our business, and an empty value is the same as none.
fn read_field(entry: &Entry) -> Result<Option<Field>, TaskFileError> {
    if entry.value == Node::Null {
        return Ok(None);
    }
    let wrong = |expected| {
        let (key, got) = (entry.key.clone(), entry.value.described());
        TaskFileProblem::WrongValue { key, expected, got }.at(entry.line)
    };
    let field = match entry.key.as_str() {
        "base_branch" => Field::BaseBranch(Some(entry.value.text().ok_or_else(|| wrong("text"))?)),
        "created_at" => Field::CreatedAt(Some(entry.value.text().ok_or_else(|| wrong("a time"))?)),
        "agent" => Field::Agent(Some(entry.value.text().ok_or_else(|| wrong("the name of an agent"))?)),
        "session_id" => Field::SessionId(Some(entry.value.text().ok_or_else(|| wrong("text"))?)),
        // Somebody else's `parent` may be anything, and was here first.
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

/// What is wrong with a task file. The caller knows which one it is and adds its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TaskFileError {
    /// In the file, from 1.
    pub line: usize,
    pub problem: TaskFileProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskFileProblem {
    #[error("the file does not begin with `---`")]
    NoFrontMatter,
    #[error("the front matter has no second `---` line")]
    Unclosed,
    #[error("the front matter is not UTF-8")]
    NotUtf8,
    #[error("a carriage return stands alone in the front matter")]
    LoneCarriageReturn,
    #[error("{0}")]
    Yaml(String),
    #[error("the front matter is not a list of `key: value` lines")]
    NotKeyed,
    #[error("`{0}` is there twice")]
    Twice(String),
    #[error("`{key}` must be {expected}, not {got}")]
    WrongValue { key: String, expected: &'static str, got: String },
    #[error("`{0}` cannot be changed without changing other keys")]
    CannotEdit(&'static str),
}

impl TaskFileProblem {
    fn at(self, line: usize) -> TaskFileError {
        TaskFileError { line, problem: self }
    }
}

impl TaskFileError {
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
