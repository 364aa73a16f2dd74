//! Executes strings: OSC, and the queries among DCS.
//!
//! Images (sixel, kitty, iTerm2) are left to the viewer's terminal; here they draw nothing.

use rio_vt::crosswords::grid::row::SemanticPrompt;

use crate::cells::Link;
use crate::event::{Fed, Progress, Prompt, ScreenEvent};
use crate::palette::{self, Rgb};
use crate::scan::StringKind;
use crate::terminal::Terminal;

/// Longer addresses are not links.
const URI_MAX: usize = 4096;

impl Terminal {
    /// `raw` is the complete string: an answer uses the terminator of the query.
    pub(crate) fn string(&mut self, kind: StringKind, body: &[u8], raw: &[u8], fed: &mut Fed) {
        let bell = raw.last() == Some(&0x07);
        match kind {
            StringKind::Osc => self.osc(body, bell, fed),
            StringKind::Dcs => self.dcs(body, fed),
            StringKind::Apc | StringKind::Pm | StringKind::Sos => {}
        }
    }

    fn osc(&mut self, body: &[u8], bell: bool, fed: &mut Fed) {
        let (number, rest) = split_once(body, b';');
        let text = String::from_utf8_lossy(rest);
        match number {
            b"0" | b"2" => self.set_title(&text, fed),
            b"4" => self.palette_colours(rest, bell, fed),
            b"7" => fed.events.push(ScreenEvent::Directory(text.into_owned())),
            b"8" => self.hyperlink(rest),
            b"9" => notify_or_progress(&text, fed),
            b"10" => self.named_colours(palette::FOREGROUND, rest, bell, fed),
            b"11" => self.named_colours(palette::BACKGROUND, rest, bell, fed),
            b"12" => self.named_colours(palette::CURSOR, rest, bell, fed),
            b"52" => clipboard(&text, fed),
            b"99" => notify_kitty(&text, fed),
            b"104" => self.reset_colours(rest),
            b"110" => self.palette.reset(palette::FOREGROUND),
            b"111" => self.palette.reset(palette::BACKGROUND),
            b"112" => self.palette.reset(palette::CURSOR),
            b"133" => self.prompt(&text, fed),
            b"777" => notify_rxvt(&text, fed),
            b"7501" if rest == b"?" => self.report_status_protocol(fed),
            b"7501" => fed.events.push(ScreenEvent::Status(text.into_owned())),
            _ => {}
        }
    }

    fn dcs(&mut self, body: &[u8], fed: &mut Fed) {
        if let Some(setting) = body.strip_prefix(b"$q") {
            self.report_setting(setting, fed);
        } else if let Some(names) = body.strip_prefix(b"+q") {
            self.report_capabilities(names, fed);
        } else if let Some(stops) = body.strip_prefix(b"2$t") {
            self.restore_tabs(stops);
        }
    }

    /// DECRSPS: tab stops in the format of DECRQPSR.
    fn restore_tabs(&mut self, stops: &[u8]) {
        self.tabs.clear();
        let stops = stops.split(|byte| *byte == b'/').filter_map(number);
        stops.filter_map(|stop| stop.checked_sub(1)).for_each(|stop| self.tabs.set(stop, true));
    }

    /// OSC 4: pairs of a number and a colour or a question mark.
    fn palette_colours(&mut self, rest: &[u8], bell: bool, fed: &mut Fed) {
        let fields: Vec<&[u8]> = rest.split(|byte| *byte == b';').collect();
        for pair in fields.chunks_exact(2) {
            let Some(index) = number(pair[0]).filter(|index| *index < 256) else { continue };
            if pair[1] == b"?" {
                self.report_colour(&format!("4;{index}"), index, bell, fed);
            } else if let Some(colour) = Rgb::parse(pair[1]) {
                self.palette.set(index, colour);
            }
        }
    }

    /// OSC 10 to 12: each further field is for the next of the three.
    fn named_colours(&mut self, first: u16, rest: &[u8], bell: bool, fed: &mut Fed) {
        for (index, field) in (first..=palette::CURSOR).zip(rest.split(|byte| *byte == b';')) {
            if field == b"?" {
                let name = index - palette::FOREGROUND + 10;
                self.report_colour(&name.to_string(), index, bell, fed);
            } else if let Some(colour) = Rgb::parse(field) {
                self.palette.set(index, colour);
            }
        }
    }

    fn reset_colours(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            return self.palette.reset_numbered();
        }
        let indices = rest.split(|byte| *byte == b';').filter_map(number);
        indices.filter(|index| *index < 256).for_each(|index| self.palette.reset(index));
    }

    /// OSC 8: `key=value:…;address`. An empty address ends the link.
    fn hyperlink(&mut self, rest: &[u8]) {
        let (keys, uri) = split_once(rest, b';');
        let uri = String::from_utf8_lossy(uri);
        if uri.is_empty() || uri.len() > URI_MAX {
            return self.canvas.set_link(None);
        }
        let id = keys.split(|byte| *byte == b':').find_map(|key| key.strip_prefix(b"id="));
        let id = String::from_utf8_lossy(id.unwrap_or_default()).into_owned();
        self.canvas.set_link(Some(&Link { id, uri: uri.into_owned() }));
    }

    /// OSC 133, the marks of shell integration.
    fn prompt(&mut self, text: &str, fed: &mut Fed) {
        let mut fields = text.split(';');
        let prompt = match fields.next().unwrap_or_default() {
            "A" => Prompt::Started,
            "P" => Prompt::Started,
            "B" | "I" => Prompt::Input,
            "C" => Prompt::Output,
            "D" => Prompt::Ended { exit: fields.clone().next().and_then(|exit| exit.parse().ok()) },
            _ => return,
        };
        if prompt == Prompt::Started {
            let continued = fields.any(|field| field == "k=c" || field == "k=s");
            let mark = if continued { SemanticPrompt::PromptContinuation } else { SemanticPrompt::Prompt };
            self.canvas.mark_prompt(mark);
        }
        fed.events.push(ScreenEvent::Prompt(prompt));
    }
}

/// OSC 9: ConEmu's sub-commands (4 is progress), or iTerm2's notification.
fn notify_or_progress(text: &str, fed: &mut Fed) {
    let mut fields = text.split(';');
    if fields.next() != Some("4") {
        return notify("", text, fed);
    }
    let state = fields.next().unwrap_or_default();
    let percent =
        fields.next().and_then(|percent| percent.parse::<u8>().ok()).map(|percent| percent.min(100));
    let progress = match state {
        "0" => Progress::Removed,
        "1" => Progress::Running { percent },
        "2" => Progress::Failed { percent },
        "3" => Progress::Indeterminate,
        "4" => Progress::Paused { percent },
        _ => return,
    };
    fed.events.push(ScreenEvent::Progress(progress));
}

/// OSC 99: `key=value:…;text`, where the text is a title unless `p` says otherwise.
fn notify_kitty(text: &str, fed: &mut Fed) {
    let (keys, text) = text.split_once(';').unwrap_or((text, ""));
    match keys.split(':').find_map(|key| key.strip_prefix("p=")) {
        None | Some("title") => notify(text, "", fed),
        Some("body") => notify("", text, fed),
        Some(_) => {}
    }
}

/// OSC 777: `notify;title;body`.
fn notify_rxvt(text: &str, fed: &mut Fed) {
    if let Some(text) = text.strip_prefix("notify;") {
        let (title, body) = text.split_once(';').unwrap_or((text, ""));
        notify(title, body, fed);
    }
}

fn notify(title: &str, body: &str, fed: &mut Fed) {
    fed.events.push(ScreenEvent::Notification { title: title.to_owned(), body: body.to_owned() });
}

/// OSC 52: a query gets no answer, because reading the clipboard needs consent.
fn clipboard(text: &str, fed: &mut Fed) {
    if let Some((selection, data)) = text.split_once(';').filter(|(_, data)| *data != "?") {
        let (selection, data) = (selection.to_owned(), data.to_owned());
        fed.events.push(ScreenEvent::Clipboard { selection, data });
    }
}

fn split_once(bytes: &[u8], at: u8) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == at) {
        Some(place) => (&bytes[..place], &bytes[place + 1..]),
        None => (bytes, &[]),
    }
}

fn number(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
