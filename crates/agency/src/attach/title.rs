//! The title of the user's terminal: Agency sets it while the agent has set none.

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
}
