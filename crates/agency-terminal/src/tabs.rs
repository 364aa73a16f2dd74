//! Tab stops.
//!
//! Does not move the cursor; the terminal does.

const INTERVAL: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tabs(Vec<bool>);

impl Tabs {
    pub(crate) fn new(cols: u16) -> Tabs {
        let mut tabs = Tabs(Vec::new());
        tabs.resize(cols);
        tabs
    }

    /// New columns get the default stops.
    pub(crate) fn resize(&mut self, cols: u16) {
        let mut col = self.0.len();
        self.0.resize_with(cols.into(), || {
            col += 1;
            (col - 1).is_multiple_of(INTERVAL)
        });
    }

    pub(crate) fn set(&mut self, col: u16, stop: bool) {
        if let Some(tab) = self.0.get_mut(usize::from(col)) {
            *tab = stop;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(false);
    }

    /// The next stop, or the last column.
    pub(crate) fn after(&self, col: u16) -> u16 {
        let stop = (usize::from(col) + 1..self.0.len()).find(|col| self.0[*col]);
        stop.unwrap_or(self.0.len() - 1) as u16
    }

    /// The previous stop, or the first column.
    pub(crate) fn before(&self, col: u16) -> u16 {
        (0..usize::from(col)).rev().find(|col| self.0[*col]).unwrap_or(0) as u16
    }

    pub(crate) fn stops(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.0.len()).filter(|col| self.0[*col]).map(|col| col as u16)
    }
}
