//! What an agent has cost so far, though it may count from the beginning again when its process does.

/// Agents tell a total. One that is less than the one before is a new count, which what there was is added to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Meter {
    /// Of the counts that are over.
    before: f64,
    last: Option<f64>,
}

impl Meter {
    /// Goes on from the total of the run before.
    pub(crate) fn after(total: Option<f64>) -> Meter {
        Meter { before: 0.0, last: total }
    }

    pub(crate) fn told(&mut self, total: f64) {
        if !total.is_finite() || total < 0.0 {
            return;
        }
        self.before += self.last.filter(|last| total < *last).unwrap_or(0.0);
        self.last = Some(total);
    }

    /// Absent: it was never told.
    pub(crate) fn total(&self) -> Option<f64> {
        self.last.map(|last| self.before + last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_begins_again_goes_on_from_what_there_was() {
        for (inherited, told, expected) in [
            (None, vec![], None),
            (None, vec![0.5, 0.75], Some(0.75)),
            (Some(2.0), vec![], Some(2.0)),
            (Some(2.0), vec![0.5], Some(2.5)),
            (Some(2.0), vec![0.5, 1.0, 3.0], Some(5.0)),
            (Some(2.0), vec![2.5, 3.0], Some(3.0)),
            (Some(2.0), vec![0.5, 0.25], Some(2.75)),
            (Some(2.0), vec![f64::NAN, -1.0], Some(2.0)),
        ] {
            let mut meter = Meter::after(inherited);
            told.iter().for_each(|total| meter.told(*total));
            assert_eq!(meter.total(), expected, "{inherited:?} {told:?}");
        }
    }
}
