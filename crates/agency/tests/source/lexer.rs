//! Splits Rust text into words and signs; drops comments, and what is inside of quotes.

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// A word, a number, `::`, one sign, or `""` for any quoted text.
    pub text: String,
    pub line: usize,
}

impl Token {
    pub fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub fn is_word(&self) -> bool {
        self.text.starts_with(is_word)
    }
}

pub fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (length, is_token) = match first {
            c if c.is_whitespace() => (c.len_utf8(), false),
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            '/' if rest.starts_with("/*") => (block_comment(rest), false),
            _ => (token(rest, first), true),
        };
        let part = &rest[..length];
        if is_token {
            found.push(Token { text: shown(part), line });
        }
        line += part.matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn shown(part: &str) -> String {
    match part {
        _ if part.ends_with(['"', '\'']) || part.ends_with("\"#") => "\"\"".to_owned(),
        _ => part.strip_prefix("r#").unwrap_or(part).to_owned(),
    }
}

fn token(rest: &str, first: char) -> usize {
    if let Some(length) = quoted(rest) {
        return length;
    }
    match first {
        ':' if rest.starts_with("::") => 2,
        '-' if rest.starts_with("->") => 2,
        '=' if rest.starts_with("=>") => 2,
        '\'' => 1 + word(&rest[1..]),
        c if is_word(c) => {
            let raw = if rest.starts_with("r#") { 2 } else { 0 };
            raw + word(&rest[raw..])
        }
        c => c.len_utf8(),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(rest: &str) -> usize {
    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// Block comments are nested.
fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string or character here, whatever its prefix; none for a word, a sign or a lifetime.
fn quoted(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r"].iter().find(|prefix| {
        let after = rest.strip_prefix(**prefix);
        after.is_some_and(|after| after.trim_start_matches('#').starts_with('"') || after.starts_with('\''))
    });
    let start = prefix.map_or(0, |prefix| prefix.len());
    if prefix.is_some_and(|prefix| prefix.ends_with('r')) {
        let hashes = rest[start..].len() - rest[start..].trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let inside = start + hashes + 1;
        return rest[inside..].find(&end).map(|at| inside + at + end.len());
    }
    match rest[start..].chars().next()? {
        '"' => Some(start + escaped(&rest[start..], '"')),
        '\'' if is_character(&rest[start..]) => Some(start + escaped(&rest[start..], '\'')),
        _ => None,
    }
}

/// `'a'` and `'\n'`, not the lifetime `'a`.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

fn escaped(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
