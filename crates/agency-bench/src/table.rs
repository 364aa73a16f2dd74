//! Tables and sections of a report, plain or as Markdown.

use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    Markdown,
}

pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn with(heads: &[&str]) -> Table {
        Table { rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    pub fn show(&self, form: Form) -> String {
        match form {
            Form::Plain => self.plain(),
            Form::Markdown => self.markdown(),
        }
    }

    fn markdown(&self) -> String {
        let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
        let rule = format!("|{}\n", "---|".repeat(self.rows[0].len()));
        let body: String = self.rows[1..].iter().map(line).collect();
        format!("{}{rule}{body}", line(&self.rows[0]))
    }

    fn plain(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        self.rows.iter().map(line).collect()
    }
}

/// Adds a section with a heading to a report.
pub fn add_section(report: &mut String, form: Form, title: &str, body: &str) {
    let written = match form {
        Form::Plain => write!(report, "\n{title}\n{body}"),
        Form::Markdown => write!(report, "\n### {title}\n\n{body}"),
    };
    written.expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_or_become_markdown() {
        let mut table = Table::with(&["peer", "time"]);
        table.row(vec!["agency".into(), "380 µs".into()]);
        assert_eq!(table.plain(), "  peer    time\n  agency  380 µs\n");
        assert_eq!(table.markdown(), "| peer | time |\n|---|---|\n| agency | 380 µs |\n");
    }
}
