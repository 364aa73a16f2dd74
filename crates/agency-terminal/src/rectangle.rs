//! Sequences for rectangles: copy, fill, erase, change attributes, checksum.
//!
//! Does not touch the cells itself; the canvas does.

use rio_vt::crosswords::style::{Style, StyleFlags};

use crate::canvas::Area;
use crate::csi::Csi;
use crate::event::Fed;
use crate::settings::Protection;
use crate::terminal::Terminal;

/// DECSACE: attributes change in the whole rectangle, not only from its first place to its last.
const RECTANGLE: u8 = 2;

/// Attributes that can be changed in a rectangle, by the number that sets them; that number plus 20 clears them.
const ATTRIBUTES: [(u16, StyleFlags); 5] = [
    (1, StyleFlags::BOLD),
    (4, StyleFlags::UNDERLINE),
    (5, StyleFlags::SLOW_BLINK),
    (7, StyleFlags::INVERSE),
    (8, StyleFlags::HIDDEN),
];

impl Terminal {
    /// `CSI … $ …`.
    pub(crate) fn rectangle(&mut self, csi: &Csi) {
        match csi.last {
            b'v' => self.copy_rectangle(csi),
            b'x' => self.fill_rectangle(csi),
            b'z' => self.erase_rectangle(csi, false),
            b'{' => self.erase_rectangle(csi, self.settings.protection == Protection::Dec),
            b'r' => self.restyle_rectangle(csi, set_attribute),
            b't' => self.restyle_rectangle(csi, reverse_attribute),
            _ => {}
        }
    }

    /// The rectangle whose top, left, bottom and right start at parameter `at`.
    fn area(&self, csi: &Csi, at: usize) -> Option<Area> {
        let area = self.corners(csi, at);
        (area.top <= area.bottom && area.left <= area.right).then_some(area)
    }

    fn corners(&self, csi: &Csi, at: usize) -> Area {
        let bounds = self.counted_area();
        let from = |at, first: u16| first.saturating_add(csi.or(at, 1) - 1);
        let to = |at, first: u16, last: u16| match csi.get(at) {
            0 => last,
            number => first.saturating_add(number - 1).min(last),
        };
        Area {
            top: from(at, bounds.top),
            left: from(at + 1, bounds.left),
            bottom: to(at + 2, bounds.top, bounds.bottom),
            right: to(at + 3, bounds.left, bounds.right),
        }
    }

    /// DECCRA.
    fn copy_rectangle(&mut self, csi: &Csi) {
        let bounds = self.counted_area();
        let (row, col) = (csi.or(5, 1) - 1, csi.or(6, 1) - 1);
        if let Some(area) = self.area(csi, 0) {
            self.canvas.copy_area(area, row.saturating_add(bounds.top), col.saturating_add(bounds.left));
        }
    }

    /// DECFRA: accepts any visible character.
    fn fill_rectangle(&mut self, csi: &Csi) {
        let filler = u8::try_from(csi.get(0)).ok().filter(|c| matches!(*c, 0x20..=0x7e | 0xa0..));
        if let (Some(filler), Some(area)) = (filler, self.area(csi, 1)) {
            let filler = self.charsets.map(char::from(filler));
            self.canvas.fill_area(area, filler);
        }
    }

    /// DECERA and DECSERA.
    fn erase_rectangle(&mut self, csi: &Csi, selective: bool) {
        if let Some(area) = self.area(csi, 0) {
            self.canvas.erase_area(area, selective);
        }
    }

    /// DECCARA and DECRARA.
    fn restyle_rectangle(&mut self, csi: &Csi, change: fn(&mut Style, u16)) {
        let areas = match self.settings.extent {
            RECTANGLE => self.area(csi, 0).into_iter().collect(),
            _ => self.stream(self.corners(csi, 0)),
        };
        // No attributes mean the same as 0.
        let numbers = csi.parameters().get(4..).filter(|numbers| !numbers.is_empty()).unwrap_or(&[0]);
        self.canvas.restyle(&areas, |style| numbers.iter().for_each(|number| change(style, *number)));
    }

    /// The area from its first place to its last in reading order, as rectangles.
    fn stream(&self, area: Area) -> Vec<Area> {
        let all = self.canvas.everything();
        if area.top >= area.bottom || area.left > all.right {
            let whole = area.top == area.bottom && area.left <= area.right;
            return if whole { vec![area] } else { Vec::new() };
        }
        let mut areas = vec![Area { bottom: area.top, right: all.right, ..area }];
        if area.top + 1 < area.bottom {
            areas.push(Area { top: area.top + 1, bottom: area.bottom - 1, ..all });
        }
        areas.push(Area { top: area.bottom, left: all.left, ..area });
        areas
    }

    /// DECRQCRA.
    pub(crate) fn report_checksum(&mut self, csi: &Csi, fed: &mut Fed) {
        let sum = self.area(csi, 2).map_or(0, |area| self.canvas.checksum(area));
        fed.dcs(format_args!("{}!~{sum:04X}", csi.get(0)));
    }
}

fn set_attribute(style: &mut Style, number: u16) {
    for (set, flag) in ATTRIBUTES {
        if number == 0 || number == set + 20 || number == 22 && set == 1 {
            style.flags.remove(like(flag));
        } else if number == set {
            style.flags.remove(like(flag));
            style.flags.insert(flag);
        }
    }
}

fn reverse_attribute(style: &mut Style, number: u16) {
    for (set, flag) in ATTRIBUTES {
        if number == set || number == 0 {
            let on = style.flags.intersects(like(flag));
            style.flags.remove(like(flag));
            style.flags.set(flag, !on);
        }
    }
}

/// Treats all kinds of underline as one, and all kinds of blinking.
fn like(flag: StyleFlags) -> StyleFlags {
    [StyleFlags::ALL_UNDERLINES, StyleFlags::ALL_BLINK]
        .into_iter()
        .find(|all| all.contains(flag))
        .unwrap_or(flag)
}
