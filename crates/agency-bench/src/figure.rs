//! Figures: the values that each round measured of each peer, and their medians and ranges.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "KB")]
    Kilobytes,
    #[serde(rename = "%")]
    Percent,
    #[serde(rename = "")]
    Count,
}

impl Unit {
    /// In the unit that needs about three digits.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Seconds if value >= 0.9995 => format!("{value:.2} s"),
            Unit::Seconds if value >= 0.000_999_5 => format!("{} ms", three_digits(value * 1e3)),
            Unit::Seconds => format!("{:.0} µs", value * 1e6),
            Unit::Kilobytes if value >= 9999.5 => format!("{} MB", three_digits(value / 1024.0)),
            Unit::Kilobytes => format!("{value:.0} KB"),
            Unit::Percent => format!("{value:.2} %"),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

fn three_digits(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// One value of one round.
#[derive(Clone, Debug)]
pub struct Sample {
    pub name: String,
    pub unit: Unit,
    pub value: f64,
}

impl Sample {
    pub fn new(name: impl Into<String>, unit: Unit, value: f64) -> Sample {
        Sample { name: name.into(), unit, value }
    }

    pub fn seconds(name: impl Into<String>, duration: std::time::Duration) -> Sample {
        Sample::new(name, Unit::Seconds, duration.as_secs_f64())
    }
}

/// The values of all rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    pub measure: String,
    pub name: String,
    pub unit: Unit,
    pub peer: String,
    pub values: Vec<f64>,
}

impl Figure {
    pub fn median(&self) -> f64 {
        quantile(&self.values, 0.5)
    }

    pub fn range(&self) -> (f64, f64) {
        (quantile(&self.values, 0.0), quantile(&self.values, 1.0))
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(pub Vec<Figure>);

impl Figures {
    pub fn add(&mut self, measure: &str, peer: &str, sample: Sample) {
        let Sample { name, unit, value } = sample;
        match self.0.iter_mut().find(|figure| is(figure, measure, &name, peer)) {
            Some(figure) => figure.values.push(value),
            None => self.0.push(Figure {
                measure: measure.to_owned(),
                name,
                unit,
                peer: peer.to_owned(),
                values: vec![value],
            }),
        }
    }

    pub fn median(&self, measure: &str, name: &str, peer: &str) -> Option<f64> {
        self.0.iter().find(|figure| is(figure, measure, name, peer)).map(Figure::median)
    }
}

fn is(figure: &Figure, measure: &str, name: &str, peer: &str) -> bool {
    figure.measure == measure && figure.name == name && figure.peer == peer
}

/// The value below which this share of all values lies, interpolated; NaN if there are no values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = share * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_two_lies_between_them() {
        assert_eq!(quantile(&[4.0, 1.0], 0.5), 2.5);
        assert_eq!(quantile(&[9.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[9.0, 1.0, 2.0], 1.0), 9.0);
        assert_eq!(quantile(&[3.0], 0.99), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn values_of_all_rounds_come_together() {
        let mut figures = Figures::default();
        for value in [3.0, 1.0, 2.0] {
            figures.add("echo", "tmux", Sample::new("p50", Unit::Seconds, value));
        }
        figures.add("echo", "agency", Sample::new("p50", Unit::Seconds, 7.0));
        assert_eq!(figures.median("echo", "p50", "tmux"), Some(2.0));
        assert_eq!(figures.0[0].range(), (1.0, 3.0));
        assert_eq!(figures.median("echo", "p99", "tmux"), None);
    }

    #[test]
    fn units_fit_the_value() {
        let shown = [0.000_380_4, 0.0085, 0.0404, 0.95, 2.311].map(|value| Unit::Seconds.show(value));
        assert_eq!(shown, ["380 µs", "8.50 ms", "40.4 ms", "950 ms", "2.31 s"]);
        assert_eq!(Unit::Kilobytes.show(282.2), "282 KB");
        assert_eq!(Unit::Kilobytes.show(40_960.0), "40.0 MB");
    }
}
