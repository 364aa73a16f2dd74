//! Writes runs as an asciicast v2 recording: a header, then one line per event.
//!
//! Several runs become one recording, without the time between them.

use std::time::Duration;

use agency_driver::terminal::SEPARATOR;
use agency_journal::{Body, Record};
use serde_json::json;

pub struct Cast {
    with_input: bool,
    /// Seconds since 1970, from the first anchor.
    began_at: Option<i64>,
    has_header: bool,
    /// The time of the first record of the current run.
    zero_ns: Option<u64>,
    /// How long the earlier runs took.
    before: Duration,
    last: Duration,
    /// The beginning of a character whose rest is in the next record.
    partial: Vec<u8>,
}

impl Cast {
    pub fn new(with_input: bool) -> Cast {
        Cast {
            with_input,
            began_at: None,
            has_header: false,
            zero_ns: None,
            before: Duration::ZERO,
            last: Duration::ZERO,
            partial: Vec::new(),
        }
    }

    pub fn record(&mut self, record: &Record, out: &mut Vec<u8>) {
        let zero = *self.zero_ns.get_or_insert(record.at_ns);
        self.last = self.before + Duration::from_nanos(record.at_ns.saturating_sub(zero));
        match &record.body {
            Body::Anchor { wall_unix_ns, .. } => {
                self.began_at.get_or_insert(wall_unix_ns / 1_000_000_000);
            }
            Body::Resize { cols, rows, .. } if !self.has_header => self.header(*cols, *rows, out),
            Body::Resize { cols, rows, .. } => self.event("r", &format!("{cols}x{rows}"), out),
            Body::Output { bytes, .. } => {
                let text = self.whole_characters(bytes);
                self.event("o", &text, out);
            }
            Body::Input { bytes, .. } if self.with_input => {
                self.event("i", &String::from_utf8_lossy(bytes), out);
            }
            _ => {}
        }
    }

    pub fn end_of_run(&mut self, out: &mut Vec<u8>) {
        self.event("o", &format!("\r\n{SEPARATOR}\r\n"), out);
        self.before = self.last;
        self.zero_ns = None;
        self.partial.clear();
    }

    fn header(&mut self, cols: u16, rows: u16, out: &mut Vec<u8>) {
        self.has_header = true;
        let mut header =
            json!({ "version": 2, "width": cols, "height": rows, "env": { "TERM": "xterm-256color" } });
        if let (Some(at), Some(fields)) = (self.began_at, header.as_object_mut()) {
            fields.insert("timestamp".to_string(), at.into());
        }
        write_line(out, &header);
    }

    fn event(&mut self, kind: &str, data: &str, out: &mut Vec<u8>) {
        if !self.has_header {
            self.header(80, 24, out);
        }
        if !data.is_empty() {
            // Players keep microseconds.
            let seconds = self.last.as_micros() as f64 / 1e6;
            write_line(out, &json!([seconds, kind, data]));
        }
    }

    /// The text up to the last whole character. The rest waits for the next record.
    fn whole_characters(&mut self, bytes: &[u8]) -> String {
        let mut bytes = [std::mem::take(&mut self.partial), bytes.to_vec()].concat();
        let whole = whole_len(&bytes);
        self.partial = bytes.split_off(whole);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The length without a character that is cut off at the end.
fn whole_len(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    for back in 1..=longest {
        let at = bytes.len() - back;
        let needs = match bytes[at] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => 1,
        };
        return if needs > back { at } else { bytes.len() };
    }
    bytes.len()
}

fn write_line(out: &mut Vec<u8>, value: &serde_json::Value) {
    out.extend_from_slice(value.to_string().as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use agency_journal::{Source, Stream};

    fn record(at_ms: u64, body: Body) -> Record {
        Record { seq: 1, output_offset: 0, at_ns: 5_000_000_000 + at_ms * 1_000_000, body }
    }

    fn output(bytes: &[u8]) -> Body {
        Body::Output { stream: Stream::Terminal, bytes: bytes.to_vec() }
    }

    fn written(with_input: bool, records: &[Record]) -> String {
        let mut cast = Cast::new(with_input);
        let mut out = Vec::new();
        records.iter().for_each(|record| cast.record(record, &mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_recording_has_a_header_and_times_from_its_beginning() {
        let size = Body::Resize { cols: 100, rows: 30, x_pixels: 0, y_pixels: 0 };
        let typed = Body::Input { source: Source::User, bytes: b"secret".to_vec() };
        let records = [record(0, size), record(250, output(b"hi\r\n")), record(300, typed.clone())];
        let header = r#"{"version":2,"width":100,"height":30,"env":{"TERM":"xterm-256color"}}"#;
        assert_eq!(written(false, &records), format!("{header}\n[0.25,\"o\",\"hi\\r\\n\"]\n"));
        assert!(written(true, &records).ends_with("[0.3,\"i\",\"secret\"]\n"));
    }

    #[test]
    fn a_character_is_never_cut_in_two() {
        let text = "aé€😀";
        for cut in 0..text.len() {
            let (first, second) = text.as_bytes().split_at(cut);
            let mut cast = Cast::new(false);
            let joined = cast.whole_characters(first) + &cast.whole_characters(second);
            assert_eq!(joined, text, "cut at {cut}");
        }
    }
}
