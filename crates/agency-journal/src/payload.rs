//! Reads fields one after another from the front of a byte slice.
//!
//! Never panics: a slice that is too short gives `None`.

pub(crate) struct Payload<'a> {
    left: &'a [u8],
}

impl<'a> Payload<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Payload { left: bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, left) = self.left.split_first_chunk::<N>()?;
        self.left = left;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub(crate) fn text(&mut self, len: u64) -> Option<String> {
        let (taken, left) = self.left.split_at_checked(usize::try_from(len).ok()?)?;
        self.left = left;
        String::from_utf8(taken.to_vec()).ok()
    }

    pub(crate) fn rest(self) -> Vec<u8> {
        self.left.to_vec()
    }
}
