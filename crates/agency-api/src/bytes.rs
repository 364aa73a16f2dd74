//! Bytes that are usually text. In JSON they are a string if they are UTF-8, otherwise an array of numbers.
//!
//! Arguments, environment values and paths of Unix are bytes. A lossy copy of them would name another program.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that are usually text.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// The bytes as text of the operating system.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// The bytes as a path.
    pub fn as_path(&self) -> &Path {
        Path::new(self.as_os_str())
    }

    /// The bytes as text of the operating system.
    pub fn into_os_string(self) -> OsString {
        OsString::from_vec(self.0)
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A path or a text: a string if it is UTF-8, otherwise an array of its bytes.",
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 } },
            ],
        })
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The size only: these are prompts and environment values, and Debug output ends up in logs.
        write!(f, "<{} bytes>", self.0.len())
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Bytes(text.as_bytes().to_vec())
    }
}

impl From<String> for Bytes {
    fn from(text: String) -> Self {
        Bytes(text.into_bytes())
    }
}

impl From<OsString> for Bytes {
    fn from(text: OsString) -> Self {
        Bytes(text.into_vec())
    }
}

impl From<&OsStr> for Bytes {
    fn from(text: &OsStr) -> Self {
        Bytes(text.as_bytes().to_vec())
    }
}

impl From<PathBuf> for Bytes {
    fn from(path: PathBuf) -> Self {
        Bytes(path.into_os_string().into_vec())
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Bytes(path.as_os_str().as_bytes().to_vec())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BytesVisitor)
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array of bytes")
    }

    fn visit_str<E>(self, text: &str) -> Result<Bytes, E> {
        Ok(Bytes::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Bytes, E> {
        Ok(Bytes::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Bytes, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element()? {
            bytes.push(byte);
        }
        Ok(Bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_string_and_anything_else_survives_as_numbers() {
        let text = Bytes::from("ä");
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"ä\"");
        let odd = Bytes(vec![0xff, 0x00, 0x41]);
        let json = serde_json::to_string(&odd).unwrap();
        assert_eq!(json, "[255,0,65]");
        assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), odd);
    }

    #[test]
    fn debug_shows_a_size_and_no_content() {
        assert_eq!(format!("{:?}", Bytes::from("secret")), "<6 bytes>");
    }
}
