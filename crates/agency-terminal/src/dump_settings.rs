//! The part of a dump that few programs change: settings, side margins, protection.
//!
//! It comes last, because it is applied to a terminal that is otherwise restored.

use crate::canvas::Canvas;
use crate::cells::{PROTECTED, is_protected};
use crate::encoding::{DumpError, Reader, Writer};
use crate::settings::Protection;
use crate::terminal::Terminal;

pub(crate) fn write_settings(out: &mut Writer, terminal: &Terminal) {
    let settings = &terminal.settings;
    out.byte(settings.level);
    out.flag(settings.eight_bit);
    out.byte(settings.extent);
    out.byte(settings.protection as u8);
    out.len(settings.on.len());
    settings.on.iter().for_each(|mode| out.number(*mode));
    out.len(settings.put_away.len());
    for (mode, on) in &settings.put_away {
        out.number(*mode);
        out.flag(*on);
    }
    let (left, right) = terminal.canvas.columns();
    out.number(left);
    out.number(right);
    out.flag(terminal.saved.primary.protecting);
    out.flag(terminal.saved.alternate.protecting);
    out.flag(terminal.canvas.protecting());
    out.flag(is_protected(terminal.canvas.primary().cursor.template));
}

pub(crate) fn read_settings(from: &mut Reader<'_>, terminal: &mut Terminal) -> Result<(), DumpError> {
    let settings = &mut terminal.settings;
    settings.level = from.byte()?;
    settings.eight_bit = from.flag()?;
    settings.extent = from.byte()?;
    settings.protection = match from.byte()? {
        0 => Protection::Unused,
        1 => Protection::Dec,
        2 => Protection::Iso,
        _ => return Err(DumpError::Damaged),
    };
    for _ in 0..from.len()? {
        let mode = from.number()?;
        if !settings.set(mode, true) {
            return Err(DumpError::Damaged);
        }
    }
    for _ in 0..from.len()? {
        settings.put_away.insert(from.number()?, from.flag()?);
    }
    read_columns(from, &mut terminal.canvas)?;
    terminal.saved.primary.protecting = from.flag()?;
    terminal.saved.alternate.protecting = from.flag()?;
    terminal.canvas.set_protecting(from.flag()?);
    if from.flag()? {
        terminal.canvas.primary_mut().cursor.template.insert_cell_flag(PROTECTED);
    }
    Ok(())
}

fn read_columns(from: &mut Reader<'_>, canvas: &mut Canvas) -> Result<(), DumpError> {
    let (left, right) = (from.number()?, from.number::<u16>()?);
    let fits = right < canvas.cols() && canvas.set_columns(left, right);
    if fits { Ok(()) } else { Err(DumpError::Damaged) }
}
