//! Folds a run's journal from its beginning without checkpoints; every daemon must get the same result.
//!
//! Continues where it stopped, so that a second comparison reads only new records.

use std::sync::Arc;
use std::time::Duration;

use agency_core::agent_state::Timing;
use agency_core::evidence::Rules;
use agency_driver::terminal::{Settings, TerminalRun};
use agency_journal::{Body, Reader, Record};
use agency_terminal::Size;

use crate::journal;
use crate::stage::Stage;

/// The position of the checkpoint of the launch, which holds the screen of the runs before.
const BEFORE_EVERY_RECORD: u64 = u64::MAX;

pub struct Fold {
    reader: Reader,
    terminal: TerminalRun,
    settings: Settings,
    next_seq: u64,
}

impl Fold {
    pub fn of(stage: &Stage, run: &str, scrollback: usize) -> Fold {
        let (timing, rules) = (Timing::default(), Arc::new(Rules::shipped()));
        let settings = Settings { timing, scrollback, rules, program: String::new() };
        let terminal = TerminalRun::began(Size::cells(80, 24), &settings, Duration::ZERO);
        Fold { reader: journal::reader(stage, run), terminal, settings, next_seq: 0 }
    }

    /// The whole state after every record before `next_seq`.
    pub fn dump_before(&mut self, next_seq: u64) -> Vec<u8> {
        while self.next_seq < next_seq {
            let record = self.reader.next().expect("a journal can be read");
            let record =
                record.unwrap_or_else(|| panic!("a daemon knows record {next_seq}, which is not written"));
            self.next_seq = record.seq + 1;
            self.take(&record);
        }
        self.terminal.screen().dump()
    }

    fn take(&mut self, record: &Record) {
        let at = Duration::from_nanos(record.at_ns);
        match &record.body {
            Body::Output { bytes, .. } => drop(self.terminal.on_output(bytes, record.end_offset(), at)),
            Body::Resize { cols, rows, x_pixels, y_pixels } => {
                let (cols, rows, x_pixels, y_pixels) = (*cols, *rows, *x_pixels, *y_pixels);
                self.terminal.on_resize(Size { cols, rows, x_pixels, y_pixels }, at);
            }
            Body::Checkpoint { at_seq: BEFORE_EVERY_RECORD, bytes } => {
                let plain = zstd::decode_all(&bytes[..]).expect("a checkpoint is compressed");
                self.terminal = TerminalRun::restored(&plain, &self.settings).expect("a whole checkpoint");
            }
            Body::Gap { .. } => panic!("nothing was lost, yet there is a gap: {record:?}"),
            _ => {}
        }
    }
}
