//! Suggests the names that a user probably meant, nearest first, by edit distance.
//!
//! Decides nothing: a suggestion is text for a hint, and Agency never acts on it.

/// Up to three of `names` that look like `word`, nearest first.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // A third of the letters may be wrong; more than that is another word.
    let tolerated = (word.chars().count() / 3).max(2);
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(distance, name)| *distance <= tolerated && *distance < name.chars().count())
        .collect();
    close.sort();
    close.dedup();
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Whether `word` is probably a mistyped or shortened `name`: at most two letters differ, or `name` begins with it.
pub fn is_near(word: &str, name: &str) -> bool {
    let letters = name.chars().count();
    let is_prefix = !word.is_empty() && name.to_lowercase().starts_with(&word.to_lowercase());
    is_prefix || distance(word, name) <= 2.min(letters.saturating_sub(1))
}

/// `` did you mean `a` or `b`? ``, or `None` without names.
pub fn did_you_mean(nearest: &[impl AsRef<str>]) -> Option<String> {
    let quoted: Vec<String> = nearest.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    let (last, first) = quoted.split_last()?;
    match first {
        [] => Some(format!("did you mean {last}?")),
        _ => Some(format!("did you mean {} or {last}?", first.join(", "))),
    }
}

/// The number of letters to insert, delete, replace or swap with their neighbour. Ignores case.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_nearest_first_and_far_ones_not_at_all() {
        let agents = ["claude-code", "codex", "opencode", "gemini", "aider", "shell"];
        for (word, expected) in [
            ("codxe", vec!["codex"]),
            ("claude-cod", vec!["claude-code"]),
            ("Gemini", vec!["gemini"]),
            ("opencodex", vec!["opencode"]),
            ("banana", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(nearest(word, agents), expected, "{word}");
        }
    }

    #[test]
    fn only_slips_and_beginnings_are_near() {
        for (word, name, expected) in [
            ("atttach", "attach", true),
            ("stpo", "stop", true),
            ("conf", "conflicts", true),
            ("frobnicate", "conflicts", false),
            ("xy", "rm", false),
            ("", "rm", false),
        ] {
            assert_eq!(is_near(word, name), expected, "{word} {name}");
        }
    }

    #[test]
    fn distance_counts_single_mistakes() {
        for (a, b, expected) in
            [("", "", 0), ("a", "", 1), ("abc", "acb", 1), ("kitten", "sitting", 3), ("Ä", "ä", 0)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn suggestions_read_as_a_question() {
        assert_eq!(did_you_mean(&[] as &[&str]), None);
        assert_eq!(did_you_mean(&["a"]).as_deref(), Some("did you mean `a`?"));
        assert_eq!(did_you_mean(&["a", "b", "c"]).as_deref(), Some("did you mean `a`, `b` or `c`?"));
    }
}
