//! Parses a control sequence: `CSI`, prefix, parameters, intermediates, final byte.
//!
//! Does not execute it. Skips control characters inside it; they act on their own.

/// No program uses more parameters; xterm keeps 30.
const PARAMETERS_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Csi {
    /// `<`, `=`, `>`, `?` or 0.
    pub(crate) prefix: u8,
    /// The last intermediate byte, or 0.
    pub(crate) intermediate: u8,
    pub(crate) last: u8,
    values: [u16; PARAMETERS_MAX],
    len: usize,
    /// Bit n is set if parameter n follows a colon, so it belongs to the one before.
    subordinate: u32,
}

impl Csi {
    /// `None` for a sequence without a defined meaning.
    pub(crate) fn parse(body: &[u8]) -> Option<Csi> {
        let (&last, rest) = body.split_last()?;
        let mut csi =
            Csi { prefix: 0, intermediate: 0, last, values: [0; PARAMETERS_MAX], len: 1, subordinate: 0 };
        let mut started = false;
        for &byte in rest {
            match byte {
                b'0'..=b'9' if csi.intermediate == 0 => csi.digit(byte - b'0'),
                b':' | b';' if csi.intermediate == 0 => csi.next_parameter(byte == b':'),
                0x20..=0x2f => csi.intermediate = byte,
                b'<'..=b'?' if !started => csi.prefix = byte,
                ..0x20 | 0x7f.. => continue,
                _ => return None,
            }
            started = true;
        }
        csi.len = csi.len.min(PARAMETERS_MAX);
        Some(csi)
    }

    fn digit(&mut self, digit: u8) {
        if let Some(value) = self.values.get_mut(self.len - 1) {
            *value = value.saturating_mul(10).saturating_add(digit.into());
        }
    }

    fn next_parameter(&mut self, subordinate: bool) {
        if self.len < PARAMETERS_MAX && subordinate {
            self.subordinate |= 1 << self.len;
        }
        self.len = (self.len + 1).min(PARAMETERS_MAX + 1);
    }

    /// Parameter `at`, or `default` if it is 0 or missing.
    pub(crate) fn or(&self, at: usize, default: u16) -> u16 {
        match self.get(at) {
            0 => default,
            value => value,
        }
    }

    /// Parameter `at`, or 0.
    pub(crate) fn get(&self, at: usize) -> u16 {
        self.values[..self.len].get(at).copied().unwrap_or(0)
    }

    /// All parameters; there is always at least one.
    pub(crate) fn parameters(&self) -> &[u16] {
        &self.values[..self.len]
    }

    /// The number of parameters from `at` on that belong together.
    pub(crate) fn group_len(&self, at: usize) -> usize {
        1 + (at + 1..self.len).take_while(|next| self.subordinate & (1 << next) != 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_comes_apart() {
        let csi = Csi::parse(b"?25;1$p").unwrap();
        assert_eq!((csi.prefix, csi.intermediate, csi.last), (b'?', b'$', b'p'));
        assert_eq!(csi.parameters(), [25, 1]);
        assert_eq!(Csi::parse(b"m").unwrap().parameters(), [0]);
        assert_eq!(Csi::parse(b";5H").unwrap().parameters(), [0, 5]);
        assert_eq!(Csi::parse(b"1\n2m").unwrap().parameters(), [12]);
    }

    #[test]
    fn colons_bind_parameters_together() {
        let csi = Csi::parse(b"1;4:3;38:2::1:2:3m").unwrap();
        assert_eq!([0, 1, 3].map(|at| csi.group_len(at)), [1, 2, 6]);
    }

    #[test]
    fn nonsense_is_refused_and_excess_is_cut() {
        assert_eq!(Csi::parse(b"1?m"), None);
        assert_eq!(Csi::parse(b"!1p"), None);
        let many = [b"1;".repeat(100), b"m".to_vec()].concat();
        assert_eq!(Csi::parse(&many).unwrap().parameters().len(), PARAMETERS_MAX);
        assert_eq!(Csi::parse(b"99999999m").unwrap().get(0), u16::MAX);
    }
}
