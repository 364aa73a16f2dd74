//! How a field of the configuration becomes a value, and a value becomes the content of a field.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clipboard::Clipboard;
use super::notify::TerminalNotice;
use super::ui::MarkStyle;
use super::value::{Value, ValueKind};
use crate::agent::{Driver, Restart};
use crate::approval::Decision;

/// A type that a field of the configuration can have.
pub(super) trait Field: Sized {
    /// The kinds of keys that can set such a field. The table of keys does not compile if a row has another kind.
    const KINDS: &'static [ValueKind];

    /// The value, if one is set.
    fn to_value(&self) -> Option<Value>;

    /// The content of the field, if the value is of one of `KINDS`.
    fn from_value(value: Value) -> Option<Self>;

    /// Whether this content removes an optional field: `[]` removes a command.
    fn is_removal(&self) -> bool {
        false
    }
}

/// Returns `kind` if it fits the type of the field. A table that is a `static` checks this when it is compiled.
pub(super) const fn checked<S, F: Field>(kind: ValueKind, _field: fn(&S) -> &F) -> ValueKind {
    let mut index = 0;
    while index < F::KINDS.len() {
        if F::KINDS[index] as u8 == kind as u8 {
            return kind;
        }
        index += 1;
    }
    panic!("a key of this kind cannot set a field of this type")
}

/// Fields whose type is the content of one variant of `Value`.
macro_rules! fields {
    ($($field:ty: $variant:ident of $kinds:expr;)*) => {$(
        impl Field for $field {
            const KINDS: &'static [ValueKind] = &$kinds;

            fn to_value(&self) -> Option<Value> {
                Some(Value::$variant(self.clone()))
            }

            fn from_value(value: Value) -> Option<$field> {
                if let Value::$variant(content) = value { Some(content) } else { None }
            }
        }
    )*};
}

fields! {
    String: Text of [ValueKind::Text, ValueKind::Address];
    bool: Truth of [ValueKind::Truth];
    u32: Count of [ValueKind::Count];
    Duration: Time of [ValueKind::Time];
    Vec<Vec<String>>: Commands of [ValueKind::Commands];
    Driver: Driver of [ValueKind::Driver];
    Restart: Restart of [ValueKind::Restart];
    Clipboard: Clipboard of [ValueKind::Clipboard];
    TerminalNotice: TerminalNotice of [ValueKind::TerminalNotice];
    MarkStyle: MarkStyle of [ValueKind::MarkStyle];
}

impl Field for Vec<String> {
    const KINDS: &'static [ValueKind] =
        &[ValueKind::Command, ValueKind::Words, ValueKind::Occasions, ValueKind::Tools];

    fn to_value(&self) -> Option<Value> {
        Some(Value::Words(self.clone()))
    }

    fn from_value(value: Value) -> Option<Vec<String>> {
        if let Value::Words(words) = value { Some(words) } else { None }
    }

    fn is_removal(&self) -> bool {
        self.is_empty()
    }
}

impl<F: Field> Field for Option<F> {
    const KINDS: &'static [ValueKind] = F::KINDS;

    fn to_value(&self) -> Option<Value> {
        self.as_ref()?.to_value()
    }

    fn from_value(value: Value) -> Option<Option<F>> {
        F::from_value(value).map(|content| (!content.is_removal()).then_some(content))
    }
}

/// Rules are read as text, so that a rule is a table of strings.
impl Field for Decision {
    const KINDS: &'static [ValueKind] = &[ValueKind::Decision];

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.as_str().to_owned()))
    }

    fn from_value(value: Value) -> Option<Decision> {
        value.text()?.parse().ok()
    }
}

/// The table as a whole has no value: each variable is a key of its own.
impl Field for BTreeMap<String, String> {
    const KINDS: &'static [ValueKind] = &[ValueKind::Env];

    fn to_value(&self) -> Option<Value> {
        None
    }

    fn from_value(_: Value) -> Option<BTreeMap<String, String>> {
        None
    }
}
