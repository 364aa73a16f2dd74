//! The title of the user's terminal: Agency sets it while the agent has set none, and writes the task before the agent's.

use agency_terminal::PICTURE;

/// A screen that the daemon sends contains this if the agent has set no title.
const NO_TITLE: &[u8] = b"\x1b]2;\x1b\\";

/// Where our title can be inserted into a message, if the message is a screen that resets the title: directly after
/// the reset. What follows may end in the middle of a sequence, or set a title.
pub(super) fn title_position(message: &[u8]) -> Option<usize> {
    if !message.starts_with(PICTURE.as_bytes()) {
        return None;
    }
    let reset_at = message.windows(NO_TITLE.len()).rposition(|window| window == NO_TITLE)?;
    Some(reset_at + NO_TITLE.len())
}

/// Writes the name of the task before every title in the output of the agent. An empty title stays empty.
#[derive(Debug)]
pub(super) struct TitlePrefix {
    prefix: String,
    place: Place,
}

/// Where the output is: how much of `ESC ] 2 ;` or `ESC ] 0 ;` was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    Escape,
    Command,
    Number,
    /// The next byte is the first one of the title.
    Title,
}

impl TitlePrefix {
    pub(super) fn of(slug: &str) -> TitlePrefix {
        TitlePrefix { prefix: format!("{slug}: "), place: Place::Text }
    }

    /// The output may be cut anywhere.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            let place = self.place;
            self.place = match (place, *byte) {
                (_, 0x1b) => Place::Escape,
                (Place::Escape, b']') => Place::Command,
                (Place::Command, b'0' | b'2') => Place::Number,
                (Place::Number, b';') => Place::Title,
                _ => Place::Text,
            };
            if place == Place::Title && !matches!(*byte, 0x07 | 0x1b | 0x18 | 0x1a) {
                out.extend_from_slice(self.prefix.as_bytes());
            }
            out.push(*byte);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use agency_terminal::{Keys, Screen, Size, Window};

    use super::*;

    fn pictures(program: &[u8]) -> [Vec<u8>; 3] {
        let mut screen = Screen::new(Size::cells(20, 5), 10);
        screen.feed(program);
        let frame = screen.frame(&mut Window::new(Size::cells(9, 3)), Keys::Plain);
        [screen.redraw(true), screen.redraw(false), frame]
    }

    #[test]
    fn every_picture_without_a_title_has_a_place_for_one() {
        for mut picture in pictures(b"\x1b]4;3;#123456\x07text") {
            let place = title_position(&picture).expect("the agent has set none");
            // Output since then comes in the same message.
            picture.extend_from_slice(b"\x1b[3");
            assert_eq!(title_position(&picture), Some(place));
            let mut terminal = Screen::new(Size::cells(20, 5), 10);
            terminal.feed(&picture[..place]);
            terminal.feed(b"\x1b]2;ours\x1b\\");
            terminal.feed(&picture[place..]);
            assert_eq!(terminal.title(), "ours");
        }
    }

    #[test]
    fn the_agents_title_stays() {
        for picture in pictures(b"\x1b]2;theirs\x07text") {
            assert_eq!(title_position(&picture), None);
        }
        assert_eq!(title_position(b"text\x1b]2;\x1b\\"), None, "may be cut anywhere");
    }

    #[test]
    fn the_task_comes_before_the_agents_title() {
        let titles = |pieces: &[&str]| {
            let mut prefix = TitlePrefix::of("fix");
            let mut terminal = Screen::new(Size::cells(20, 5), 10);
            pieces.iter().for_each(|piece| drop(terminal.feed(&prefix.feed(piece.as_bytes()))));
            (terminal.title().to_owned(), terminal.rows()[0].trim_end().to_owned())
        };
        let is = |title: &str, row: &str| (title.to_owned(), row.to_owned());
        assert_eq!(titles(&["a\x1b]2;Claude\x07b"]), is("fix: Claude", "ab"));
        assert_eq!(titles(&["a\x1b]0;Claude\x1b\\b"]), is("fix: Claude", "ab"));
        let pieces: Vec<String> = "x\x1b]2;Claude\x1b\\y".chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(titles(&pieces), is("fix: Claude", "xy"));
        // An empty title is none, other commands stay, and text stays text.
        assert_eq!(titles(&["\x1b]2;\x1b\\\x1b]12;red\x07]2;b"]), is("", "]2;b"));
    }
}
