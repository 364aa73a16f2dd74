//! The lines that remarks are about: of the files in the workspace, or those that the work removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agency_api::file::LONGEST_PART;
use agency_api::remark::{DiffSide, NewRemark};
use agency_api::{Failure, FailureCode};
use agency_core::patch::removed_lines;
use agency_core::remark::{Anchor, NumberedLine, PlacedRemark, Remark, Side, number_lines};

use crate::diff::DiffRequest;
use crate::files::Files;

/// A new remark, and the line that it is about.
#[derive(Debug)]
pub struct AnchoredRemark {
    pub file: Option<String>,
    pub anchor: Option<Anchor>,
    pub text: String,
}

/// Where the lines are read.
#[derive(Debug)]
pub struct LineSource {
    workspace: Result<PathBuf, Failure>,
    diff: DiffRequest,
    /// `None`: not read yet.
    patch: Option<String>,
    known: BTreeMap<(Side, String), Vec<NumberedLine>>,
}

impl LineSource {
    /// The lines in this workspace, and those that this diff removes.
    pub fn new(workspace: Result<PathBuf, Failure>, diff: DiffRequest) -> LineSource {
        LineSource { workspace, diff, patch: None, known: BTreeMap::new() }
    }

    /// Blocking. Finds the line of each new remark.
    pub fn anchor(mut self, remarks: Vec<NewRemark>) -> Result<Vec<AnchoredRemark>, Failure> {
        remarks.into_iter().map(|remark| self.anchor_one(remark)).collect()
    }

    fn anchor_one(&mut self, remark: NewRemark) -> Result<AnchoredRemark, Failure> {
        let side = match remark.side {
            DiffSide::New => Side::New,
            DiffSide::Old => Side::Old,
        };
        let anchor = match (&remark.file, remark.line, &remark.quote) {
            (Some(file), Some(line), Some(quote)) => Some(Anchor::from_seen_line(
                side,
                self.present_lines(side, file).unwrap_or_default(),
                line,
                quote,
            )),
            (Some(file), Some(line), None) => {
                let lines = self.lines(side, file)?;
                Some(Anchor::at(side, lines, line).ok_or_else(|| no_line(file, line, side, lines.len()))?)
            }
            (None, Some(_), _) => {
                return Err(
                    Failure::new("a remark with a line needs a file").code(FailureCode::InvalidArgument)
                );
            }
            (_, None, _) => None,
        };
        Ok(AnchoredRemark { file: remark.file, anchor, text: remark.text })
    }

    /// Blocking. Finds where each remark is now.
    pub fn place(mut self, remarks: Vec<Remark>) -> Vec<PlacedRemark> {
        let place = |remark: Remark| {
            let place = remark.file.clone().zip(remark.anchor.as_ref().map(|anchor| anchor.side));
            let lines = place.and_then(|(file, side)| self.present_lines(side, &file));
            remark.place(lines)
        };
        remarks.into_iter().map(place).collect()
    }

    /// No lines if the file is gone. `None` if the lines cannot be read now.
    fn present_lines(&mut self, side: Side, file: &str) -> Option<&[NumberedLine]> {
        match self.lines(side, file) {
            Ok(lines) => Some(lines),
            Err(failure) if failure.code == FailureCode::NotFound => Some(&[]),
            Err(_) => None,
        }
    }

    fn lines(&mut self, side: Side, file: &str) -> Result<&[NumberedLine], Failure> {
        let key = (side, file.to_owned());
        if !self.known.contains_key(&key) {
            let lines = match side {
                Side::New => self.file_lines(file)?,
                Side::Old => removed_lines(self.patch()?, file),
            };
            self.known.insert(key.clone(), lines);
        }
        Ok(&self.known[&key])
    }

    fn file_lines(&self, file: &str) -> Result<Vec<NumberedLine>, Failure> {
        let workspace = self.workspace.as_ref().map_err(Failure::clone)?;
        let content = Files::open(workspace)?.read(Path::new(file), 0, Some(LONGEST_PART))?.content;
        Ok(number_lines(&String::from_utf8_lossy(&content.0)))
    }

    fn patch(&mut self) -> Result<&str, Failure> {
        if self.patch.is_none() {
            let patch = self.diff.clone().compute()?.patch.unwrap_or_default();
            self.patch = Some(String::from_utf8_lossy(&patch.0).into_owned());
        }
        Ok(self.patch.as_deref().unwrap_or_default())
    }
}

fn no_line(file: &str, line: u64, side: Side, lines: usize) -> Failure {
    let failure = Failure::new(format!("{file} has no line {line}")).code(FailureCode::InvalidArgument);
    match side {
        Side::New => failure.because(format!("it has {lines} lines")),
        Side::Old => failure.because("the work removed no such line"),
    }
}
