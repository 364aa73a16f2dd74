//! The title of an attached terminal: ours, while the agent has none.

use agency_terminal::PICTURE;

/// How a picture says that the agent has set no title.
const NONE: &[u8] = b"\x1b]2;\x1b\\";

/// Where in a message the title can be said, if it is a picture that takes it away: right behind that, because
/// what follows may end in the middle of a sequence, or set a title.
pub(super) fn place_in(message: &[u8]) -> Option<usize> {
    if !message.starts_with(PICTURE.as_bytes()) {
        return None;
    }
    let taken_away = message.windows(NONE.len()).rposition(|window| window == NONE)?;
    Some(taken_away + NONE.len())
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
            let place = place_in(&picture).expect("the agent has set none");
            // What was printed since comes in the same message.
            picture.extend_from_slice(b"\x1b[3");
            assert_eq!(place_in(&picture), Some(place));
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
            assert_eq!(place_in(&picture), None);
        }
        assert_eq!(place_in(b"text\x1b]2;\x1b\\"), None, "may be cut anywhere");
    }
}
