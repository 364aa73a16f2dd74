//! Rules that past answers suggest: commands that the user allowed again and again, and never denied.
//!
//! Only suggests: the user reads the rule and decides.

use serde_json::Value;

use super::subject::{self, Subject};
use super::{Decision, Rule};

/// The same answer twice may be a coincidence.
const ALLOWED_AT_LEAST: usize = 3;

/// Examples that a person reads with a suggestion.
const MOST_EXAMPLES: usize = 3;

/// Programs that run other programs, delete, or reach other machines. For these, only exact commands are suggested.
const TOO_POWERFUL: [&str; 24] = [
    "sudo", "doas", "su", "rm", "dd", "sh", "bash", "zsh", "dash", "fish", "python", "python3", "perl",
    "ruby", "node", "eval", "env", "xargs", "find", "curl", "wget", "ssh", "docker", "kill",
];

/// An answered request, as the log of decisions has it.
#[derive(Clone, Debug)]
pub struct PastAnswer {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub input: Value,
    /// The answer.
    pub allowed: bool,
    /// A rule answered, so the user needs no other one.
    pub by_rule: bool,
}

/// A rule that the user may want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The rule.
    pub rule: Rule,
    /// How often the user allowed what it covers.
    pub allowed: usize,
    /// Some of the commands that it covers.
    pub examples: Vec<String>,
}

impl Suggestion {
    /// The rule as it stands in a configuration file.
    pub fn toml(&self) -> String {
        // Strings of JSON are strings of TOML, too.
        let quoted = |text: &str| Value::from(text).to_string();
        format!(
            "[[approve]]\ntool = {}\nmatch = {}\ndecision = {}\nwhy = {}\n",
            quoted(&self.rule.tool),
            quoted(self.rule.pattern.as_deref().unwrap_or("*")),
            quoted(self.rule.decision.as_str()),
            quoted(self.rule.why.as_deref().unwrap_or_default()),
        )
    }
}

/// Rules that would have given the user's own answers. None of them covers a request that was ever denied, and none covers
/// what another one covers.
pub fn suggest(answers: &[PastAnswer]) -> Vec<Suggestion> {
    let asked: Vec<(&PastAnswer, String)> =
        answers.iter().filter_map(|answer| Some((answer, command_of(answer)?))).collect();
    let by_user = asked.iter().filter(|(answer, _)| answer.allowed && !answer.by_rule);
    let allowed: Vec<&str> = by_user.map(|(_, command)| command.as_str()).collect();
    let denied: Vec<&PastAnswer> = answers.iter().filter(|answer| !answer.allowed).collect();
    let mut patterns: Vec<String> = Vec::new();
    // Wider patterns first, so that they make exact ones needless.
    for pattern in allowed
        .iter()
        .filter_map(|command| family(command))
        .chain(allowed.iter().map(|command| quote(command)))
    {
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let mut suggestions: Vec<Suggestion> = Vec::new();
    for pattern in patterns {
        let Some(suggestion) = suggestion(pattern, &allowed, &denied) else { continue };
        let is_new = |example: &String| !suggestions.iter().any(|known| covers(&known.rule, example));
        if suggestion.examples.iter().any(is_new) {
            suggestions.push(suggestion);
        }
    }
    suggestions.sort_by_key(|suggestion| std::cmp::Reverse(suggestion.allowed));
    suggestions
}

fn suggestion(pattern: String, allowed: &[&str], denied: &[&PastAnswer]) -> Option<Suggestion> {
    let is_exact = !pattern.ends_with(" *");
    let mut rule = Rule {
        tool: subject::EXECUTE.to_owned(),
        pattern: Some(pattern),
        agent: None,
        decision: Decision::Allow,
        why: None,
    };
    let covered: Vec<&str> = allowed.iter().copied().filter(|command| covers(&rule, command)).collect();
    let mut examples: Vec<String> = Vec::new();
    for command in &covered {
        if !examples.iter().any(|known| known == command) {
            examples.push((*command).to_owned());
        }
    }
    let is_wide_enough = is_exact || examples.len() > 1;
    let was_denied = denied.iter().any(|answer| may_cover(&rule, answer));
    if covered.len() < ALLOWED_AT_LEAST || !is_wide_enough || was_denied {
        return None;
    }
    rule.why = Some(format!("allowed {0} of {0} times", covered.len()));
    examples.truncate(MOST_EXAMPLES);
    Some(Suggestion { rule, allowed: covered.len(), examples })
}

/// The command of a request, if it is one and runs inside the agent's sandbox.
fn command_of(answer: &PastAnswer) -> Option<String> {
    let is_unsafe = answer.input["dangerouslyDisableSandbox"].as_bool() == Some(true);
    match Subject::of(&answer.tool, &answer.input, std::path::Path::new("/")) {
        Subject::Command(command) if !is_unsafe && !command.is_empty() => Some(command),
        _ => None,
    }
}

fn covers(rule: &Rule, command: &str) -> bool {
    let subject = Subject::Command(command.to_owned());
    rule.pattern.as_deref().is_some_and(|pattern| subject.is_all(pattern))
}

/// Whether a denied request is anything like what the rule allows: as a whole, or one of its parts.
fn may_cover(rule: &Rule, denied: &PastAnswer) -> bool {
    let subject = Subject::of(&denied.tool, &denied.input, std::path::Path::new("/"));
    let is_command = matches!(subject, Subject::Command(_) | Subject::Unknown);
    is_command
        && rule.fits_tool(&denied.tool)
        && rule.pattern.as_deref().is_some_and(|pattern| subject.has_any(pattern))
}

/// `cargo test *` for `cargo test --lib`.
fn family(command: &str) -> Option<String> {
    let mut words = command.split(' ');
    let (program, verb, _) = (words.next()?, words.next()?, words.next()?);
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let is_verb = verb.starts_with(|c: char| c.is_ascii_alphabetic()) && is_plain(verb);
    let name = program.rsplit('/').next().unwrap_or(program);
    (is_plain(program) && is_verb && !TOO_POWERFUL.contains(&name)).then(|| format!("{program} {verb} *"))
}

/// A pattern that fits only this command.
fn quote(command: &str) -> String {
    command
        .chars()
        .flat_map(|c| matches!(c, '*' | '?' | '\\').then_some('\\').into_iter().chain([c]))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answers(lines: &[&str]) -> Vec<PastAnswer> {
        let answer = |line: &&str| {
            let (answer, command) = line.split_once(' ').expect("an answer and a command");
            PastAnswer {
                tool: "Bash".to_owned(),
                input: json!({ "command": command }),
                allowed: answer != "deny",
                by_rule: answer == "rule",
            }
        };
        lines.iter().map(answer).collect()
    }

    fn patterns(lines: &[&str]) -> Vec<String> {
        suggest(&answers(lines)).into_iter().filter_map(|suggestion| suggestion.rule.pattern).collect()
    }

    #[test]
    fn commands_that_were_always_allowed_become_a_rule() {
        let lines =
            ["allow cargo test --lib", "allow cargo test --doc", "allow cargo test -p x", "allow make"];
        assert_eq!(patterns(&lines), ["cargo test *"]);
        assert_eq!(patterns(&["allow make", "allow make", "allow make"]), ["make"]);
        assert_eq!(patterns(&["allow make", "allow make"]), [""; 0], "twice is not enough");
        assert_eq!(patterns(&["rule make", "rule make", "allow make"]), [""; 0], "a rule answers already");
    }

    #[test]
    fn nothing_is_covered_that_was_ever_denied() {
        let allowed = ["allow git push origin a", "allow git push origin b", "allow git push origin c"];
        assert_eq!(patterns(&allowed), ["git push *"]);
        for denied in
            ["deny git push --force origin a", "deny true && git push origin main", "deny git push x; ls"]
        {
            assert_eq!(patterns(&[&allowed[..], &[denied]].concat()), [""; 0], "{denied}");
        }
        let exact = ["allow make", "allow make", "allow make", "deny make install"];
        assert_eq!(patterns(&exact), ["make"]);
        assert_eq!(patterns(&["allow make", "allow make", "allow make", "deny make"]), [""; 0]);
        let mut unclear = answers(&["allow make", "allow make", "allow make"]);
        unclear.push(PastAnswer {
            tool: "Bash".to_owned(),
            input: json!({}),
            allowed: false,
            by_rule: false,
        });
        assert!(suggest(&unclear).is_empty(), "the denied request does not say what it would do");
    }

    #[test]
    fn powerful_programs_and_wildcards_in_commands_get_exact_rules_only() {
        let deletes = ["allow rm tmp a b", "allow rm tmp a c", "allow rm tmp a d"];
        assert_eq!(patterns(&deletes), [""; 0]);
        let cleaned = ["allow rm *.o", "allow rm *.o", "allow rm *.o"];
        assert_eq!(patterns(&cleaned), [r"rm \*.o"]);
        let suggested = suggest(&answers(&cleaned));
        assert!(!covers(&suggested[0].rule, "rm a.o"));
        assert_eq!(
            suggested[0].toml(),
            "[[approve]]\ntool = \"execute\"\nmatch = \"rm \\\\*.o\"\ndecision = \"allow\"\nwhy = \"allowed 3 of 3 times\"\n"
        );
    }
}
