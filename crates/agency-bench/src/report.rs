//! The report of a run: machine, goals, a table for each measure.

use serde::{Deserialize, Serialize};

use crate::figure::{Figure, Figures};
use crate::goal::GOALS;
use crate::machine::Machine;
use crate::measure::MEASURES;
use crate::peer::{BARE, TMUX};
use crate::table::{Form, Table, add_section};

/// The results of a run; `--json` writes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub machine: Machine,
    pub versions: Vec<String>,
    pub missing: Vec<String>,
    pub megabytes: usize,
    pub rounds: usize,
    pub is_quick: bool,
    pub figures: Figures,
    pub failures: Vec<String>,
}

impl Run {
    pub fn report(&self, form: Form) -> String {
        let mut text = self.head(form);
        add_section(&mut text, form, "Goals", &self.goals(form));
        for measure in &MEASURES {
            let table = self.table(measure.name);
            if !table.is_empty() {
                add_section(&mut text, form, measure.title, &table.show(form));
            }
        }
        if !self.failures.is_empty() {
            let lines: String = self.failures.iter().map(|failure| format!("- {failure}\n")).collect();
            add_section(&mut text, form, "Failed", &lines);
        }
        text
    }

    fn head(&self, form: Form) -> String {
        let Machine { date, cpu, cores, kernel, memory, load_averages } = &self.machine;
        let mut lines = vec![
            format!("{date}; {cpu}, {cores} cores, {memory}, Linux {kernel}"),
            format!("load average {}", load_averages.join(" before, ") + " after"),
            format!("{} MB of log, {} rounds, interleaved; medians", self.megabytes, self.rounds),
            format!("measured: {}", self.versions.join("; ")),
        ];
        if !self.missing.is_empty() {
            lines.push(format!("not installed: {}", self.missing.join(", ")));
        }
        if self.is_quick {
            lines.push("a quick run: it shows that the harness works, not how fast anything is".to_owned());
        }
        let bullet = if form == Form::Markdown { "- " } else { "" };
        lines.iter().map(|line| format!("{bullet}{line}\n")).collect()
    }

    fn goals(&self, form: Form) -> String {
        let mut table = Table::with(&["goal", "asked", "reached", ""]);
        for goal in &GOALS {
            let cells = [goal.text.to_owned(), goal.shown_bound(), goal.shown_value(&self.figures)];
            let result = goal.result(&self.figures).to_owned();
            table.row(cells.into_iter().chain([result]).collect());
        }
        table.show(form)
    }

    fn table(&self, measure: &str) -> Table {
        let mut table = Table::with(&["figure", "of", "median", "min–max", "of tmux", "of bare"]);
        let ours = self.figures.0.iter().filter(|figure| figure.measure == measure);
        let mut names: Vec<&str> = Vec::new();
        for figure in ours.clone() {
            if !names.contains(&figure.name.as_str()) {
                names.push(&figure.name);
            }
        }
        for name in names {
            ours.clone().filter(|figure| figure.name == name).for_each(|figure| table.row(self.row(figure)));
        }
        table
    }

    fn row(&self, figure: &Figure) -> Vec<String> {
        let Figure { measure, name, unit, peer, .. } = figure;
        let (least, most) = figure.range();
        let over = |other: &str| match self.figures.median(measure, name, other) {
            Some(theirs) if theirs > 0.0 && other != peer => format!("{:.2}×", figure.median() / theirs),
            _ => String::new(),
        };
        let range = match figure.values.len() {
            1 => String::new(),
            _ => format!("{}–{}", unit.show(least), unit.show(most)),
        };
        vec![name.clone(), peer.clone(), unit.show(figure.median()), range, over(TMUX), over(BARE)]
    }
}
