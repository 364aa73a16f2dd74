//! The flags of the kitty keyboard protocol of one screen, with the stack of earlier flags.
//!
//! Does not encode keys; the viewer's terminal does.

/// kitty's own limit. Without one, a program could push for ever.
const DEPTH_MAX: usize = 16;

/// The flags that the protocol defines.
const FLAGS: u16 = 0b1_1111;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keyboard {
    pub(crate) flags: u8,
    /// Flags to return to, the oldest first.
    pub(crate) covered: Vec<u8>,
}

impl Keyboard {
    pub(crate) fn push(&mut self, flags: u16) {
        if self.covered.len() == DEPTH_MAX {
            self.covered.remove(0);
        }
        self.covered.push(self.flags);
        self.flags = (flags & FLAGS) as u8;
    }

    pub(crate) fn pop(&mut self, count: u16) {
        for _ in 0..usize::from(count).min(DEPTH_MAX + 1) {
            self.flags = self.covered.pop().unwrap_or(0);
        }
    }

    /// `how`: 1 replaces, 2 adds, 3 removes.
    pub(crate) fn set(&mut self, flags: u16, how: u16) {
        let flags = (flags & FLAGS) as u8;
        self.flags = match how {
            2 => self.flags | flags,
            3 => self.flags & !flags,
            _ => flags,
        };
    }

    /// Restores flags and the stack below them. `None` if they are not valid.
    pub(crate) fn from_parts(flags: u8, covered: Vec<u8>) -> Option<Keyboard> {
        let known = |flags: &u8| u16::from(*flags) & !FLAGS == 0;
        let fits = covered.len() <= DEPTH_MAX && known(&flags) && covered.iter().all(known);
        fits.then_some(Keyboard { flags, covered })
    }
}
