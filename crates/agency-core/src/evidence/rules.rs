//! Rules about text on the screen or in the title. They are data; Agency ships some, and users can override them.
//!
//! A rule has patterns and a meaning. The first rule that matches decides. A user's rules come before the shipped ones, and a
//! rule with the name of a shipped rule replaces it.

use std::collections::HashSet;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::menu::is_furniture;
use super::status::one_line;
use crate::activity::{Activity, Why};

/// Every shipped rule file: name and text.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped_rules.rs"));

/// All rules in their order.
#[derive(Clone, Debug)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// The meaning of a match.
    pub activity: Activity,
    on: RuleTarget,
    /// Look only at this many of the last rows that have text.
    lines: Option<usize>,
    all: Vec<Pattern>,
    any: Vec<Pattern>,
    none: Vec<Pattern>,
    detail: Option<Pattern>,
    programs: Vec<String>,
    is_shipped: bool,
}

/// The result of a rule that matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// The name of the rule.
    pub rule: String,
    /// Whether the agent works or waits.
    pub activity: Activity,
    /// The text that the rule found.
    pub detail: Option<String>,
    /// A shipped rule for all programs.
    #[serde(default)]
    pub is_general: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleTarget {
    #[default]
    Screen,
    Title,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<RuleSource>,
}

/// A rule as a file contains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleSource {
    name: String,
    #[serde(default)]
    says: Option<RuleActivity>,
    #[serde(default)]
    why: Option<Why>,
    #[serde(default)]
    on: RuleTarget,
    lines: Option<usize>,
    #[serde(default)]
    all: Vec<String>,
    #[serde(default)]
    any: Vec<String>,
    #[serde(default)]
    none: Vec<String>,
    detail: Option<String>,
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default = "yes")]
    enabled: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleActivity {
    Working,
    Waiting,
}

fn yes() -> bool {
    true
}

/// Why a rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    /// The file is not a list of rules.
    #[error("{file}: {cause}")]
    File {
        /// The file.
        file: String,
        /// Why, in words.
        cause: String,
    },
    /// One rule of the file is wrong.
    #[error("{file}: rule `{rule}`: {cause}")]
    Rule {
        /// The file.
        file: String,
        /// The name of the rule.
        rule: String,
        /// Why, in words.
        cause: String,
    },
}

impl Default for Rules {
    fn default() -> Self {
        Rules::shipped()
    }
}

impl Rules {
    /// The rules that Agency ships.
    pub fn shipped() -> Rules {
        Rules::with_users(&[]).0
    }

    /// Adds the rules of users. `files` are names and contents, in order. Returns a problem for every rule that cannot be used,
    /// and leaves that rule out.
    pub fn with_users(files: &[(String, String)]) -> (Rules, Vec<RuleProblem>) {
        let (mut rules, mut named, mut problems) = (Vec::new(), HashSet::new(), Vec::new());
        let shipped = SHIPPED.iter().map(|(name, text)| (true, *name, *text));
        let users = files.iter().map(|(name, text)| (false, name.as_str(), text.as_str()));
        for (is_shipped, file, text) in users.chain(shipped) {
            let (mut fresh, mut usable) = (HashSet::new(), Vec::new());
            for written in read(file, text, &mut problems) {
                let name = written.name.clone();
                // An earlier file has this rule. Two rules of one name in the same file are a mistake.
                if named.contains(&name) {
                    continue;
                }
                if !fresh.insert(name.clone()) {
                    let cause = "there are two rules with this name".to_owned();
                    problems.push(RuleProblem::Rule { file: file.to_owned(), rule: name, cause });
                    continue;
                }
                let checked = rule_of(written, is_shipped).and_then(|rule| match rule {
                    // A test checks the many shipped rules, so the daemon need not.
                    Some(rule) if !is_shipped => rule.check().map(|()| Some(rule)),
                    rule => Ok(rule),
                });
                match checked {
                    Ok(rule) => {
                        rules.extend(rule);
                        usable.push(name);
                    }
                    Err(cause) => {
                        problems.push(RuleProblem::Rule { file: file.to_owned(), rule: name, cause })
                    }
                }
            }
            // A rule that cannot be used replaces no other.
            named.extend(usable);
        }
        (Rules { rules }, problems)
    }

    /// The names of all rules.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.name.as_str())
    }

    /// Every program that has rules of its own.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().flat_map(|rule| &rule.programs).map(String::as_str)
    }

    /// The first rule that matches the screen. `rows` go from top to bottom.
    pub fn on_screen(&self, rows: &[String], program: &str) -> Option<Matched> {
        let view = View::of(rows);
        let mut rules =
            self.rules.iter().filter(|rule| rule.on == RuleTarget::Screen && rule.is_for(program));
        rules.find_map(|rule| rule.matched(view.last(rule.lines)))
    }

    /// The first rule that matches the title.
    pub fn on_title(&self, title: &str, program: &str) -> Option<Matched> {
        let mut rules = self.rules.iter().filter(|rule| rule.on == RuleTarget::Title && rule.is_for(program));
        rules.find_map(|rule| rule.matched(title))
    }
}

/// The rows as one text, and where its last rows begin.
struct View {
    text: String,
    /// Where each row with text begins. Rows of borders, rulers and blanks do not count.
    starts: Vec<usize>,
}

impl View {
    fn of(rows: &[String]) -> View {
        let (mut text, mut starts) = (String::new(), Vec::new());
        let skips = !has_input_box(rows);
        for row in rows {
            if !(row.trim().is_empty() || skips && is_furniture(row)) {
                starts.push(text.len());
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        View { text, starts }
    }

    fn last(&self, lines: Option<usize>) -> &str {
        let skipped = lines.map_or(0, |lines| self.starts.len().saturating_sub(lines));
        // With few rows everything counts, also a ruler above the first row with text.
        let start = if skipped == 0 { None } else { self.starts.get(skipped).copied() };
        &self.text[start.unwrap_or(0)..]
    }
}

/// Whether the screen shows an input box: a prompt between two rulers. It separates the transcript from the rows that matter, so
/// its rulers count as rows.
fn has_input_box(rows: &[String]) -> bool {
    let is_ruler = |row: &String| !row.trim().is_empty() && is_furniture(row);
    let is_prompt = |row: &String| {
        row.trim_start_matches(|c: char| c.is_whitespace() || "│┃".contains(c))
            .starts_with(['❯', '›', '>', '!'])
    };
    rows.windows(3).any(|rows| is_ruler(&rows[0]) && is_prompt(&rows[1]) && is_ruler(&rows[2]))
}

impl Rule {
    /// Fails if a pattern is invalid.
    fn check(&self) -> Result<(), String> {
        let mut all = self.all.iter().chain(&self.any).chain(&self.none).chain(&self.detail);
        all.try_for_each(|written| pattern(&written.text).map(drop))
    }

    fn is_for(&self, program: &str) -> bool {
        self.programs.is_empty() || self.programs.iter().any(|name| name == program)
    }

    fn matched(&self, text: &str) -> Option<Matched> {
        let found = |pattern: &Pattern| pattern.regex().is_some_and(|regex| regex.is_match(text));
        let matches = self.all.iter().all(found)
            && (self.any.is_empty() || self.any.iter().any(found))
            && !self.none.iter().any(found);
        matches.then(|| Matched {
            rule: self.name.clone(),
            activity: self.activity,
            detail: self.detail.as_ref().and_then(Pattern::regex).and_then(|regex| detail(regex, text)),
            is_general: self.is_shipped && self.programs.is_empty(),
        })
    }
}

/// The text of the last match, because the lowest text on the screen is the newest.
fn detail(pattern: &Regex, text: &str) -> Option<String> {
    let found = pattern.captures_iter(text).last()?;
    let words = found.get(1).or(found.get(0))?.as_str();
    Some(one_line(words)).filter(|line| !line.is_empty())
}

fn read(file: &str, text: &str, problems: &mut Vec<RuleProblem>) -> Vec<RuleSource> {
    match toml_edit::de::from_str::<File>(text) {
        Ok(file) => file.rule,
        Err(error) => {
            let cause = error.to_string().trim().to_owned();
            problems.push(RuleProblem::File { file: file.to_owned(), cause });
            Vec::new()
        }
    }
}

/// Checks a rule. `None` if it is turned off.
fn rule_of(written: RuleSource, is_shipped: bool) -> Result<Option<Rule>, String> {
    if !written.enabled {
        return Ok(None);
    }
    let activity = match (written.says, written.why) {
        (Some(RuleActivity::Working), None) => Activity::Working,
        (Some(RuleActivity::Working), Some(_)) => {
            return Err("`why` is for rules that say waiting".to_owned());
        }
        (Some(RuleActivity::Waiting), why) => Activity::Waiting(why.unwrap_or(Why::Unknown)),
        (None, _) => return Err("`says` is missing: working or waiting".to_owned()),
    };
    if written.all.is_empty() && written.any.is_empty() {
        return Err("it has no pattern: give `all` or `any`".to_owned());
    }
    Ok(Some(Rule {
        name: written.name,
        activity,
        on: written.on,
        lines: written.lines,
        all: written.all.into_iter().map(Pattern::of).collect(),
        any: written.any.into_iter().map(Pattern::of).collect(),
        none: written.none.into_iter().map(Pattern::of).collect(),
        detail: written.detail.map(Pattern::of),
        programs: written.programs,
        is_shipped,
    }))
}

/// Compiled when it is first needed: a few of the many rules decide most screens.
#[derive(Clone, Debug)]
struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn of(text: String) -> Pattern {
        Pattern { text, compiled: OnceLock::new() }
    }

    fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| pattern(&self.text).ok()).as_ref()
    }
}

/// The limit for a compiled pattern, so that a user's pattern cannot use much memory.
const PATTERN_BYTES: usize = 1 << 20;

fn pattern(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).multi_line(true).size_limit(PATTERN_BYTES).build();
    built.map_err(|error| format!("`{text}` is not a valid pattern: {}", one_line(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn users(text: &str) -> (Rules, Vec<RuleProblem>) {
        Rules::with_users(&[("mine.toml".to_owned(), text.to_owned())])
    }

    const MINE: &str = r#"
        [[rule]]
        name = "mine"
        says = "waiting"
        why = "permission"
        lines = 2
        all = ['^\[mine\] May I']
        none = ['not yet']
        detail = 'May I (.+)\?'
    "#;

    #[test]
    fn every_shipped_rule_can_be_used() {
        let (rules, problems) = Rules::with_users(&[]);
        assert_eq!(problems, []);
        assert!(rules.rules.len() > 20);
        for rule in &rules.rules {
            assert_eq!(rule.check(), Ok(()), "{}", rule.name);
        }
    }

    #[test]
    fn a_rule_looks_at_the_last_rows_and_reports_the_text_that_it_found() {
        let (rules, problems) = users(MINE);
        assert_eq!(problems, []);
        let matched = rules.on_screen(&rows("hello\n[mine] May I go?\n\n> \n\n"), "x").expect("a match");
        assert_eq!(matched.activity, Activity::Waiting(Why::Permission));
        assert_eq!((matched.rule.as_str(), matched.detail.as_deref()), ("mine", Some("go")));
        assert_eq!(rules.on_screen(&rows("[mine] May I go?\nnot yet"), "x"), None);
        assert_eq!(rules.on_screen(&rows("[mine] May I go?\none\ntwo"), "x"), None, "too far up");
    }

    #[test]
    fn a_users_rule_replaces_a_shipped_one() {
        let shipped = Rules::shipped();
        let name = shipped.names().next().expect("one").to_owned();
        let (rules, problems) = users(&format!("[[rule]]\nname = \"{name}\"\nenabled = false\n"));
        assert_eq!(problems, []);
        assert!(rules.names().all(|other| other != name));
    }

    #[test]
    fn a_bad_rule_leaves_the_shipped_one_of_its_name_in_force() {
        let name = Rules::shipped().names().next().expect("one").to_owned();
        let (rules, problems) =
            users(&format!("[[rule]]\nname = \"{name}\"\nsays = \"working\"\nall = ['(']"));
        assert_eq!(problems.len(), 1);
        assert!(rules.names().any(|other| other == name));
    }

    #[test]
    fn a_bad_rule_is_named_and_the_other_rules_are_used() {
        let (rules, problems) =
            users(&format!("{MINE}\n[[rule]]\nname = \"odd\"\nsays = \"working\"\nall = ['(']"));
        assert!(rules.names().any(|name| name == "mine"));
        let [RuleProblem::Rule { file, rule, cause }] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!((file.as_str(), rule.as_str()), ("mine.toml", "odd"));
        assert!(cause.contains("is not a valid pattern"), "{cause}");
        for text in ["[[rule]]\nname = 3", "rules = 1", "[["] {
            assert!(matches!(users(text).1.as_slice(), [RuleProblem::File { .. }]), "{text}");
        }
        for (text, cause) in [
            ("says = \"waiting\"", "it has no pattern: give `all` or `any`"),
            ("all = ['x']", "`says` is missing: working or waiting"),
            ("says = \"working\"\nwhy = \"error\"\nall = ['x']", "`why` is for rules that say waiting"),
        ] {
            let problems = users(&format!("[[rule]]\nname = \"odd\"\n{text}")).1;
            assert!(problems[0].to_string().ends_with(cause), "{problems:?}");
        }
    }
}
