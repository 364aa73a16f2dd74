//! Encodes numbers, flags and texts as bytes, and decodes them without trusting the input.
//!
//! Does not know their meaning; the dump does. Reading past the end, or invalid text, is an error.

use crate::size::Size;

/// Why a dump cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// The bytes do not start like a dump.
    #[error("not a dump of a screen")]
    Foreign,
    /// The dump is of a version that we cannot read.
    #[error("screen dump of unknown version {0}")]
    Version(u8),
    /// The checksum or a value in the dump is wrong.
    #[error("the screen dump is damaged")]
    Damaged,
}

#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.byte(flag.into());
    }

    /// Seven bits per byte, the lowest first.
    pub(crate) fn number(&mut self, number: impl Into<u64>) {
        let mut number = number.into();
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(crate) fn len(&mut self, len: usize) {
        self.number(len as u64);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
}

pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn byte(&mut self) -> Result<u8, DumpError> {
        let (first, rest) = self.0.split_first().ok_or(DumpError::Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DumpError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DumpError::Damaged),
        }
    }

    pub(crate) fn number<N: TryFrom<u64>>(&mut self) -> Result<N, DumpError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return N::try_from(number).map_err(|_| DumpError::Damaged);
            }
        }
        Err(DumpError::Damaged)
    }

    /// A number of items that follow. Each needs at least one byte, so the rest of the input limits it.
    pub(crate) fn len(&mut self) -> Result<usize, DumpError> {
        let len: usize = self.number()?;
        if len > self.0.len() { Err(DumpError::Damaged) } else { Ok(len) }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], DumpError> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(DumpError::Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DumpError> {
        let len = self.len()?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, DumpError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DumpError::Damaged)
    }
}

/// A row and a column on the screen.
pub(crate) fn read_place(from: &mut Reader<'_>, size: Size) -> Result<(u16, u16), DumpError> {
    let (row, col) = (from.number()?, from.number()?);
    if row < size.rows && col < size.cols { Ok((row, col)) } else { Err(DumpError::Damaged) }
}
