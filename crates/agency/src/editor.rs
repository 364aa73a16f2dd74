//! The user's editor, from $VISUAL or $EDITOR.

use std::ffi::OsString;

use agency_api::{Failure, FailureCode};

/// Used if no variable is set.
const DEFAULT_EDITOR: &str = "vi";

/// A variable that names an editor, and its value.
type EditorVariable = (&'static str, String);

/// The program and its arguments. Empty variables are ignored.
pub(crate) fn words() -> Result<Vec<String>, Failure> {
    match editor_variable() {
        Some((name, value)) => split(name, &value),
        None => Ok(vec![DEFAULT_EDITOR.to_owned()]),
    }
}

pub(crate) fn is_set() -> bool {
    editor_variable().is_some()
}

fn editor_variable() -> Option<EditorVariable> {
    let value = |name| std::env::var_os(name).map(OsString::into_string).and_then(Result::ok);
    let set = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| value(name).map(|value| (name, value)));
    set.into_iter().find(|(_, value)| !value.trim().is_empty())
}

/// Splits the value as a shell does, so that the user can quote a path with spaces.
fn split(name: &str, value: &str) -> Result<Vec<String>, Failure> {
    shlex::split(value).filter(|words| !words.is_empty()).ok_or_else(|| {
        Failure::new(format!("${name} cannot be read: {value}"))
            .code(FailureCode::InvalidConfig)
            .because("it has an unclosed quote, or names no program")
            .hint(format!("write it as in a shell: {name}='code --wait'"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_in_a_shell() {
        assert_eq!(split("EDITOR", "code --wait \"a b\"").unwrap(), ["code", "--wait", "a b"]);
        assert_eq!(split("EDITOR", "'/opt/my editor/ed' -x").unwrap(), ["/opt/my editor/ed", "-x"]);
        let refusal = split("VISUAL", "code \"a").unwrap_err().to_string();
        assert!(refusal.contains("$VISUAL cannot be read: code \"a"), "{refusal}");
    }
}
