//! Files in the workspace of a task. Paths are relative to the workspace, and nothing outside of it can be named.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::caller::TaskRef;

/// The longest part of a file that one call reads or writes.
pub const LONGEST_PART: u64 = 4 << 20;

/// Which directory to list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileListParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The directory, relative to the workspace; the workspace itself when absent.
    #[serde(default)]
    pub path: Option<Bytes>,
}

/// The files in one directory of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileListing {
    /// The directory, relative to the workspace.
    pub path: Bytes,
    /// The entries, by name.
    pub entries: Vec<FileEntry>,
    /// How many further entries are left out, because the directory has too many.
    #[serde(default)]
    pub left_out: u64,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// The name, without the directory.
    pub name: Bytes,
    /// The kind of entry.
    pub kind: FileKind,
    /// The size in bytes of a file.
    pub size: Option<u64>,
    /// The target of a symbolic link, as the link has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Bytes>,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// Which part of a file to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileReadParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The file, relative to the workspace.
    pub path: Bytes,
    /// The first byte to read.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes to read, at most 4 MiB; 1 MiB when absent.
    #[serde(default)]
    pub max_bytes: Option<u64>,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    /// The file, relative to the workspace.
    pub path: Bytes,
    /// The bytes from `offset` on.
    pub content: Bytes,
    /// The position of the first byte of `content`.
    pub offset: u64,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// The digest of the whole file: SHA-256, as hex.
    pub digest: String,
    /// The file has more bytes after `content`.
    pub more: bool,
    /// The file may be executed.
    pub executable: bool,
}

/// A new content of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileWriteParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The file, relative to the workspace. Its directory must exist.
    pub path: Bytes,
    /// The whole new content, at most 4 MiB.
    pub content: Bytes,
    /// The digest that the file must have now. Without it, there must be no such file yet.
    #[serde(default)]
    pub expect: Option<String>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileWritten {
    /// The file, relative to the workspace.
    pub path: Bytes,
    /// The digest of the new content.
    pub digest: String,
    /// The size of the new content in bytes.
    pub size: u64,
    /// The file is new.
    pub created: bool,
}
