//! Viewers of several sizes on one task: each shows its part of the screen, cell by cell.

use agency_terminal::{Pen, RowSnapshot, Screen, ScreenSnapshot, Size};
use agency_testkit::Pty;

use crate::stage::Stage;

const COLOURS: &str =
    r"\e[31mred\e[0m \e[1\x3b48\x3b5\x3b30mbold on blue\e[0m \e[4:3munder\e[0m 漢字 👩‍👩‍👧 e\r\n";
const LINES: &str = r"one\r\ntwo\r\n\e]8\x3b\x3bhttps://example.org\e\\three\e]8\x3b\x3b\e\\\r\n";

/// The screen of the user's terminal after all that was written to it.
fn emulated(seen: &[u8], cols: u16, rows: u16) -> Screen {
    let mut screen = Screen::new(Size::cells(cols, rows), 1000);
    screen.feed(seen);
    screen
}

/// The agent's screen from the daemon.
fn of_agent(stage: &Stage, cols: u16, rows: u16) -> Screen {
    emulated(stage.run(["screen", "one", "--ansi"]).ok().as_bytes(), cols, rows)
}

/// The visible part of a screen: each cell with its look, and the cursor.
struct Look {
    rows: Vec<Vec<(String, Pen)>>,
    cursor: (u16, u16),
}

fn look(screen: &mut Screen) -> Look {
    let snapshot = screen.snapshot();
    let plain = Screen::new(Size::cells(9, 9), 0).snapshot().primary.cursor.pen;
    let ScreenSnapshot { rows, .. } = snapshot.alternate.unwrap_or(snapshot.primary);
    let text = |text: String| if text.is_empty() { " ".to_owned() } else { text };
    let cells = |row: RowSnapshot| {
        let cells = row.cells.into_iter().map(|cell| (text(cell.text), cell.pen));
        let blanks = std::iter::repeat((" ".to_owned(), plain.clone()));
        cells.chain(blanks).take(snapshot.size.cols.into()).collect()
    };
    Look { rows: rows.into_iter().map(cells).collect(), cursor: screen.cursor() }
}

/// Whether the one is a window onto the other, at the position where the cursors match: not beyond the screen's end
/// unless the window is larger, and at the first column if the cursor allows it.
fn is_window(seen: &Look, whole: &Look) -> bool {
    let top = whole.cursor.0.checked_sub(seen.cursor.0);
    let left = whole.cursor.1.checked_sub(seen.cursor.1);
    let (Some(top), Some(left)) = (top, left) else { return false };
    let (rows, cols) = (seen.rows.len(), seen.rows[0].len());
    if usize::from(top) > whole.rows.len().saturating_sub(rows)
        || left > 0 && usize::from(whole.cursor.1) < cols
    {
        return false;
    }
    seen.rows.iter().zip(&whole.rows[top.into()..]).all(|(seen, whole)| {
        let whole = &whole[left.into()..];
        let shared = seen.len().min(whole.len());
        seen[..shared] == whole[..shared]
    })
}

struct Viewer {
    pty: Pty,
    cols: u16,
    rows: u16,
    /// The output before this index was for another size.
    from: usize,
}

impl Viewer {
    fn attached(stage: &Stage, args: &[&str], cols: u16, rows: u16) -> Viewer {
        let args = [&["attach", "one"], args].concat();
        Viewer { pty: Pty::spawn(stage.agency(args), cols, rows), cols, rows, from: 0 }
    }

    /// A terminal of this size that got the viewer's output.
    fn emulated(&self) -> Screen {
        emulated(&self.pty.output()[self.from..], self.cols, self.rows)
    }

    fn resize(&mut self, cols: u16, rows: u16) {
        self.pty.look();
        (self.cols, self.rows, self.from) = (cols, rows, self.pty.output().len());
        self.pty.resize(cols, rows);
    }

    /// Waits until the viewer shows its part of the agent's screen.
    #[track_caller]
    fn wait_shown(&mut self, whole: &mut Screen) {
        let (whole, cols, rows, from) = (look(whole), self.cols, self.rows, self.from);
        self.pty.wait_until("a window onto the screen", |seen| {
            is_window(&look(&mut emulated(&seen[from..], cols, rows)), &whole).then_some(())
        });
    }

    fn text(&self) -> String {
        let rows = look(&mut self.emulated()).rows;
        let lines = rows.iter().map(|row| row.iter().map(|(text, _)| text.as_str()).collect::<String>());
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn viewers_of_every_size_show_their_part_cell_by_cell() {
    let stage = Stage::new();
    stage.play("one", &format!("loop; print {COLOURS}; print {LINES}; ask more?; end"));
    let mut types = Viewer::attached(&stage, &[], 80, 24);
    types.pty.wait_for("more?");
    let mut others = [(40, 10), (30, 40), (100, 8), (120, 40), (80, 23), (7, 3)]
        .map(|(cols, rows)| Viewer::attached(&stage, &["--read-only"], cols, rows));
    for _ in 0..6 {
        let mut agent = of_agent(&stage, 80, 24);
        types.wait_shown(&mut agent);
        others.iter_mut().for_each(|viewer| viewer.wait_shown(&mut agent));
        types.pty.send("\r");
        types.pty.wait_for("more?");
    }
}

#[test]
fn a_viewer_that_gets_the_right_size_sees_everything_and_a_window_after_that() {
    let stage = Stage::new();
    stage.play("one", &format!("loop; print {COLOURS}; ask more?; end"));
    let mut types = Viewer::attached(&stage, &[], 60, 12);
    types.pty.wait_for("more?");
    let mut looks = Viewer::attached(&stage, &["--read-only"], 90, 20);
    for (cols, rows) in [(60, 12), (30, 6), (60, 12), (61, 12)] {
        looks.resize(cols, rows);
        types.pty.send("\r");
        types.pty.wait_for("more?");
        looks.wait_shown(&mut of_agent(&stage, 60, 12));
    }
    assert!(looks.text().contains('│'), "{}", looks.text());
    // The viewer that types sets the size; then the edge moves.
    types.resize(61, 12);
    stage.eventually("no edge is left", crate::stage::SOON, || {
        looks.pty.look();
        (!looks.text().contains('│')).then_some(())
    });
    looks.wait_shown(&mut of_agent(&stage, 61, 12));
}

#[test]
fn the_new_controller_sees_everything_and_the_old_one_a_window() {
    let stage = Stage::new();
    stage.play("one", &format!("on-winch; loop; print {COLOURS}; ask more?; end"));
    let mut first = Viewer::attached(&stage, &[], 80, 24);
    first.pty.wait_for("more?");
    let mut second = Viewer::attached(&stage, &["--take"], 44, 11);
    second.pty.wait_for("resized 11 44");
    second.pty.send("\r");
    second.pty.wait_for("more?");
    let mut agent = of_agent(&stage, 44, 11);
    second.wait_shown(&mut agent);
    first.wait_shown(&mut agent);
    assert!(first.text().contains('┘'), "{}", first.text());
    second.pty.send("\x11");
    assert!(second.pty.wait_exit().success());
    // Taking control also restores the size.
    first.pty.wait_for("resized 24 80");
    first.pty.send("\r");
    first.pty.wait_for("more?");
    first.wait_shown(&mut of_agent(&stage, 80, 24));
}

#[test]
fn keys_modes_and_full_screens_are_right_in_a_window_too() {
    let stage = Stage::new();
    let modes = r"\e[?1049h\e[?2004h\e[?1h\e[?1002h\e[?1006h\e[>5u\e[5\x3b10Hhere\e]2\x3ba title\a\e[5 q";
    stage.play("one", &format!("raw; print {modes}; loop; wait-for x; print heard; end"));
    let mut types = Viewer::attached(&stage, &["--frames"], 80, 24);
    types.pty.wait_for("here");
    types.pty.send("x");
    types.pty.wait_for("heard");
    let mut agent = of_agent(&stage, 80, 24);
    types.wait_shown(&mut agent);
    let mut looks = Viewer::attached(&stage, &["--read-only"], 70, 24);
    looks.wait_shown(&mut agent);
    let (typing, looking) = (types.emulated(), looks.emulated());
    assert_eq!(typing.modes(), agent.modes());
    assert_eq!((typing.keyboard_flags(), looking.keyboard_flags()), (5, 0));
    assert_eq!((typing.title(), looking.title()), ("one: a title", "one: a title"));
    assert!(typing.is_alternate() && looking.is_alternate());
    assert!(!looking.modes().bracketed_paste && !looking.modes().app_cursor);
    for viewer in [&mut types, &mut looks] {
        viewer.pty.send("\x11");
        assert!(viewer.pty.wait_exit().success());
        let (left, fresh) = (viewer.emulated(), Screen::new(Size::cells(80, 24), 0));
        assert_eq!((left.modes(), left.is_alternate()), (fresh.modes(), false));
        assert!(!viewer.emulated().snapshot().insert && viewer.emulated().snapshot().autowrap);
    }
}

#[test]
fn scrollback_is_above_the_window_in_lines_of_its_own_width() {
    let stage = Stage::new();
    let long = "word ".repeat(14);
    stage.play("one", &format!("say {long}end; flood 4K; ask ready?"));
    stage.wait_printed("one", "ready?");
    let mut types = Viewer::attached(&stage, &[], 80, 24);
    types.pty.wait_for("ready?");
    let mut looks = Viewer::attached(&stage, &["--read-only"], 40, 10);
    looks.wait_shown(&mut of_agent(&stage, 80, 24));
    let text = looks.emulated().text();
    assert!(text.contains(&format!("{long}end")), "one line, however it was broken: {text}");
    let mut floods: Vec<&str> = text.lines().filter(|line| line.starts_with("flood")).collect();
    floods.dedup();
    assert!(floods.len() >= 64, "{text}");
}

#[test]
fn a_flood_is_drawn_in_frames() {
    let stage = Stage::new();
    stage.play("one", "ask begin?; flood 8M; ask done?");
    let mut types = Viewer::attached(&stage, &[], 80, 24);
    types.pty.wait_for("begin?");
    let mut looks = Viewer::attached(&stage, &["--read-only"], 60, 10);
    looks.pty.wait_for("begin?");
    types.pty.send("go\r");
    looks.pty.wait_for("done?");
    types.pty.wait_for("done?");
    looks.wait_shown(&mut of_agent(&stage, 80, 24));
    assert!(looks.pty.output().len() < 4 << 20, "{} bytes", looks.pty.output().len());
}

#[test]
fn an_agent_gets_the_colours_of_the_controllers_terminal() {
    let stage = Stage::new();
    stage.play("one", r"raw; loop; wait-for x; query \e]11\x3b?\e\\; print .; end");
    let mut viewers = ["1111/2222/3333", "4444/5555/6666"].map(|colour| {
        let mut viewer = Viewer::attached(&stage, &["--take"], 80, 24);
        viewer.pty.wait_for("\x1b]11;?");
        viewer.pty.send(format!("\x1b]11;rgb:{colour}\x1b\\\x1b[?62cx"));
        viewer.pty.wait_for(&in_hex(colour));
        viewer
    });
    // The first viewer takes control again, and its colours count again.
    viewers[1].pty.send("\x11");
    assert!(viewers[1].pty.wait_exit().success());
    stage.wait_task("one", "has one viewer", |task| task["viewers"] == 1);
    viewers[0].pty.send("x");
    viewers[0].pty.wait_for(&in_hex("1111/2222/3333"));
}

const COPY: &str = r"print \e]52\x3bc\x3b?\a\e]52\x3bc\x3baGVsbG8=\acopied; ask more?";
const COPIED: &[u8] = b"\x1b]52;c;aGVsbG8=";

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_copy_reaches_the_controllers_terminal_if_the_user_allows_it() {
    let stage = Stage::with_config("clipboard = \"allow\"\n");
    stage.play("one", &format!("loop; ask begin?; {COPY}; end"));
    let mut looks = Viewer::attached(&stage, &["--read-only"], 80, 24);
    looks.pty.wait_for("begin?");
    for args in [&[][..], &["--frames"]] {
        let mut types = Viewer::attached(&stage, args, 80, 24);
        types.pty.wait_for("begin?");
        types.pty.send("\r");
        types.pty.wait_until("a write to the clipboard", |seen| contains(seen, COPIED).then_some(()));
        types.pty.wait_for("more?");
        assert!(!contains(types.pty.output(), b"\x1b]52;c;?"), "a question is never passed on");
        types.pty.send("\r\x11");
        assert!(types.pty.wait_exit().success());
        assert!(!String::from_utf8_lossy(types.pty.output()).contains("tried to copy"));
        stage.wait_task("one", "has one viewer", |task| task["viewers"] == 1);
    }
    // Without a controller, the daemon writes to no clipboard, also not later.
    stage.run(["send", "one", ""]).ok();
    looks.pty.wait_for("more?");
    let mut types = Viewer::attached(&stage, &[], 80, 24);
    types.pty.wait_for("more?");
    types.pty.look();
    looks.pty.look();
    assert!(!contains(types.pty.output(), b"\x1b]52;") && !contains(looks.pty.output(), b"\x1b]52;"));
}

#[test]
fn detaching_mentions_a_refused_copy() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.repo().join(".agency")).unwrap();
    // A repository cannot allow this; only the user can.
    std::fs::write(stage.repo().join(".agency/config.toml"), "clipboard = \"allow\"\n").unwrap();
    stage.play("one", &format!("ask begin?; {COPY}"));
    let mut types = Viewer::attached(&stage, &[], 80, 24);
    types.pty.wait_for("begin?");
    types.pty.send("\r");
    types.pty.wait_for("more?");
    types.pty.send("\x11");
    assert!(types.pty.wait_exit().success());
    types
        .pty
        .wait_for("[1-one tried to copy to the clipboard; to allow it: agency config set clipboard allow]");
    types.pty.wait_for("[detached from 1-one]");
    assert!(!contains(types.pty.output(), b"\x1b]52;"));
}

/// The form in which the fake agent prints an answer.
fn in_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn with_nested_agencies_the_outer_one_gets_the_detach_key() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    // The inner one runs on the daemon's terminal and asks it for its colours.
    stage.run(["new", "outer", "--no-attach", "--", "agency", "attach", "one"]).ok();
    stage.wait_task("one", "is looked at", |task| task["viewers"] == 1);
    let outside = |stage: &Stage| Pty::spawn(stage.agency(["attach", "outer"]), 80, 24);
    let mut terminal = outside(&stage);
    terminal.wait_for("ready?");
    terminal.send("through both\r");
    terminal.wait_for("got: through both");
    terminal.send("\x11");
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 2-outer]");
    assert_eq!(stage.task("one")["viewers"], 1, "the inner one stays");
    // A key that bypasses the outer one detaches the inner one.
    stage.run(["send", "outer", "--no-enter", "\x11"]).ok();
    stage.wait_task("one", "is left", |task| task["viewers"] == 0);
    stage.wait_printed("outer", "[detached from 1-one]");
}
