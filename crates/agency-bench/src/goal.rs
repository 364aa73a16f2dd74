//! Goals for Agency's figures, and whether a run reached them.

use crate::figure::{Figures, Unit};
use crate::measure::{agents, tasks, worktree};
use crate::peer::{AGENCY, BARE, TMUX};

/// A measure, a figure, a peer.
type Which = (&'static str, &'static str, &'static str);

#[derive(Debug)]
pub struct Goal {
    pub text: &'static str,
    figure: Figure,
    bound: Bound,
    stretch: Option<f64>,
}

#[derive(Debug)]
enum Figure {
    Value(Which, Unit),
    /// The first over the second.
    Ratio(Which, Which),
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Stretch,
    Met,
    Missed,
    NotMeasured,
}

impl Verdict {
    pub fn text(self, has_stretch: bool) -> &'static str {
        match self {
            Verdict::Stretch if has_stretch => "met (stretch too)",
            Verdict::Stretch | Verdict::Met => "met",
            Verdict::Missed => "**missed**",
            Verdict::NotMeasured => "not measured",
        }
    }
}

const DETACHED: &str = "detached, wall";
const DRAWN: &str = "until the screen is drawn";

pub static GOALS: [Goal; 18] = [
    ratio(
        "detached `cat`, wall, of a bare PTY reader",
        ("cat", DETACHED, AGENCY),
        ("cat", DETACHED, BARE),
        Bound::AtMost(1.3),
        1.2,
    ),
    ratio(
        "detached `cat`, times faster than tmux",
        ("cat", DETACHED, TMUX),
        ("cat", DETACHED, AGENCY),
        Bound::AtLeast(1.8),
        2.0,
    ),
    ratio(
        "detached `cat`, CPU, of tmux",
        ("cat", "detached, CPU", AGENCY),
        ("cat", "detached, CPU", TMUX),
        Bound::AtMost(0.6),
        0.5,
    ),
    ratio(
        "attached `cat`, times faster than tmux",
        ("cat", "attached, wall", TMUX),
        ("cat", "attached, wall", AGENCY),
        Bound::AtLeast(1.5),
        1.9,
    ),
    ratio("echo p50, of tmux", ("echo", "p50", AGENCY), ("echo", "p50", TMUX), Bound::AtMost(1.25), 1.0),
    ratio(
        "attach to full redraw, of tmux",
        ("attach", DRAWN, AGENCY),
        ("attach", DRAWN, TMUX),
        Bound::AtMost(1.0),
        0.5,
    ),
    ratio(
        "a new task in 50 000 files, of `git worktree add`",
        ("worktree", worktree::STARTED, AGENCY),
        ("worktree", worktree::ALONE, AGENCY),
        Bound::AtMost(1.3),
        1.1,
    ),
    ratio(
        "20 tasks at once in 50 000 files, of 20 × `git worktree add`",
        ("worktree", worktree::STARTED_AT_ONCE, AGENCY),
        ("worktree", worktree::ALONE_AT_ONCE, AGENCY),
        Bound::AtMost(1.3),
        1.1,
    ),
    // Printed with one digit, this is 0.0 %.
    value(
        "CPU with 100 idle agents",
        ("memory", "idle CPU at 100, all stale", AGENCY),
        Unit::Percent,
        Bound::AtMost(0.05),
        None,
    ),
    value(
        "PSS of a keeper at 100",
        ("memory", "PSS of a keeper at 100", AGENCY),
        Unit::Kilobytes,
        Bound::AtMost(300.0),
        None,
    ),
    value(
        "PSS of 10 000 lines of scrollback",
        ("memory", "PSS of 10 000 lines", AGENCY),
        Unit::Kilobytes,
        Bound::AtMost(12.0 * 1024.0),
        Some(4.0 * 1024.0),
    ),
    value(
        "`agency ls` with 200 agents",
        ("agents", "`agency ls`, p50", AGENCY),
        Unit::Seconds,
        Bound::AtMost(0.05),
        None,
    ),
    value(
        "PSS of all with 200 agents",
        ("agents", "PSS of all", AGENCY),
        Unit::Kilobytes,
        Bound::AtMost(300.0 * 1024.0),
        None,
    ),
    value(
        "`agency ls` with 1 000 stopped tasks",
        ("tasks", tasks::LIST, AGENCY),
        Unit::Seconds,
        Bound::AtMost(0.015),
        None,
    ),
    value(
        "`agency doctor` with 100 tasks",
        ("tasks", tasks::DOCTOR, AGENCY),
        Unit::Seconds,
        Bound::AtMost(1.0),
        None,
    ),
    value(
        "first `agency ls` of a new daemon, 200 agents and 1 000 stopped tasks",
        ("agents", agents::FIRST_LIST, AGENCY),
        Unit::Seconds,
        Bound::AtMost(0.3),
        None,
    ),
    // Well under half a second.
    value(
        "2 000 entries opened, agent alive",
        ("conversation", "opened while its agent is running, p50", AGENCY),
        Unit::Seconds,
        Bound::AtMost(0.25),
        None,
    ),
    value(
        "2 000 entries opened, agent ended",
        ("conversation", "opened when its agent has ended, p50", AGENCY),
        Unit::Seconds,
        Bound::AtMost(0.25),
        None,
    ),
];

const fn ratio(text: &'static str, over: Which, under: Which, bound: Bound, stretch: f64) -> Goal {
    Goal { text, figure: Figure::Ratio(over, under), bound, stretch: Some(stretch) }
}

const fn value(text: &'static str, which: Which, unit: Unit, bound: Bound, stretch: Option<f64>) -> Goal {
    Goal { text, figure: Figure::Value(which, unit), bound, stretch }
}

impl Goal {
    fn value(&self, figures: &Figures) -> Option<f64> {
        let median = |(measure, name, peer): Which| figures.median(measure, name, peer);
        match self.figure {
            Figure::Value(which, _) => median(which),
            Figure::Ratio(over, under) => Some(median(over)? / median(under)?),
        }
    }

    pub fn verdict(&self, figures: &Figures) -> Verdict {
        match self.value(figures) {
            None => Verdict::NotMeasured,
            Some(value) if !self.bound.holds(value) => Verdict::Missed,
            Some(value) => match self.stretch {
                Some(stretch) if !self.bound.at(stretch).holds(value) => Verdict::Met,
                _ => Verdict::Stretch,
            },
        }
    }

    /// The bound, with the stretch goal in brackets.
    pub fn shown_bound(&self) -> String {
        let (sign, limit) = match self.bound {
            Bound::AtMost(limit) => ("≤", limit),
            Bound::AtLeast(limit) => ("≥", limit),
        };
        let stretch = self.stretch.map_or_else(String::new, |stretch| format!(" ({})", self.show(stretch)));
        format!("{sign} {}{stretch}", self.show(limit))
    }

    pub fn shown_value(&self, figures: &Figures) -> String {
        self.value(figures).map_or_else(|| "–".to_owned(), |value| self.show(value))
    }

    pub fn result(&self, figures: &Figures) -> &'static str {
        self.verdict(figures).text(self.stretch.is_some())
    }

    fn show(&self, value: f64) -> String {
        match self.figure {
            Figure::Value(_, unit) => unit.show(value),
            Figure::Ratio(..) => format!("{value:.2}×"),
        }
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtMost(limit) => value <= limit,
            Bound::AtLeast(limit) => value >= limit,
        }
    }

    fn at(self, limit: f64) -> Bound {
        match self {
            Bound::AtMost(_) => Bound::AtMost(limit),
            Bound::AtLeast(_) => Bound::AtLeast(limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Sample;

    fn echo(agency: f64, tmux: f64) -> Figures {
        let mut figures = Figures::default();
        figures.add("echo", AGENCY, Sample::new("p50", Unit::Seconds, agency));
        figures.add("echo", TMUX, Sample::new("p50", Unit::Seconds, tmux));
        figures
    }

    #[test]
    fn a_goal_is_missed_met_or_met_with_its_stretch() {
        let goal = GOALS.iter().find(|goal| goal.text.starts_with("echo")).unwrap();
        assert_eq!(goal.verdict(&echo(1.3, 1.0)), Verdict::Missed);
        assert_eq!(goal.verdict(&echo(1.2, 1.0)), Verdict::Met);
        assert_eq!(goal.verdict(&echo(0.9, 1.0)), Verdict::Stretch);
        assert_eq!(goal.verdict(&Figures::default()), Verdict::NotMeasured);
        assert_eq!(goal.shown_bound(), "≤ 1.25× (1.00×)");
    }

    #[test]
    fn a_faster_program_has_a_larger_ratio() {
        let goal = GOALS.iter().find(|goal| goal.text.starts_with("attached")).unwrap();
        let mut figures = Figures::default();
        figures.add("cat", AGENCY, Sample::new("attached, wall", Unit::Seconds, 2.0));
        figures.add("cat", TMUX, Sample::new("attached, wall", Unit::Seconds, 3.2));
        assert_eq!(goal.verdict(&figures), Verdict::Met);
        assert_eq!(goal.shown_value(&figures), "1.60×");
    }
}
