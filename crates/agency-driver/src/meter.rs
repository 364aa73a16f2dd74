//! The cost of a conversation so far, although an agent may count from zero again when its process starts again.

/// Agents report a total. A total below the previous one begins a new count, and the old count is added to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Meter {
    /// The sum of the counts that ended.
    before: f64,
    last: Option<f64>,
}

impl Meter {
    /// Continues from the total of the previous run.
    pub(crate) fn after(total: Option<f64>) -> Meter {
        Meter { before: 0.0, last: total }
    }

    pub(crate) fn record(&mut self, total: f64) {
        if !total.is_finite() || total < 0.0 {
            return;
        }
        self.before += self.last.filter(|last| total < *last).unwrap_or(0.0);
        self.last = Some(total);
    }

    /// `None` if no agent has reported a cost.
    pub(crate) fn total(&self) -> Option<f64> {
        self.last.map(|last| self.before + last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_begins_again_is_added_to_the_count_before() {
        for (inherited, reported, expected) in [
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
            reported.iter().for_each(|total| meter.record(*total));
            assert_eq!(meter.total(), expected, "{inherited:?} {reported:?}");
        }
    }
}
