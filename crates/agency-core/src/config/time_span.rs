//! Times as people write them: `500ms`, `5s`, `2m`, `1h`.

use std::time::Duration;

/// A year. More is a typing error, and adding it to a clock must not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Reads a whole number and a unit.
pub fn parse_time_span(text: &str) -> Result<Duration, TimeSpanError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let millis_per_unit: u64 = match unit {
        _ if number.is_empty() => return Err(TimeSpanError::NotATime(text.to_owned())),
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "" => return Err(TimeSpanError::NoUnit(text.to_owned())),
        _ => return Err(TimeSpanError::NotATime(text.to_owned())),
    };
    let millis = number.parse().ok().and_then(|number: u64| number.checked_mul(millis_per_unit));
    let span = millis.map(Duration::from_millis).filter(|span| *span <= LONGEST);
    span.ok_or_else(|| TimeSpanError::TooLong(text.to_owned()))
}

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeSpanError {
    /// It is not a number and a unit.
    #[error("`{}` is not a time", .0.escape_debug())]
    NotATime(String),
    /// It is a number without a unit.
    #[error("`{0}` has no unit")]
    NoUnit(String),
    /// It is longer than a year.
    #[error("`{0}` is longer than a year")]
    TooLong(String),
}

impl TimeSpanError {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        match self {
            TimeSpanError::NotATime(_) => {
                "write a whole number and one of ms, s, m, h: for example 5s".to_owned()
            }
            TimeSpanError::NoUnit(number) => format!("write {number}s for seconds"),
            TimeSpanError::TooLong(_) => "the longest time is 8760h".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_number_and_a_unit() {
        for (text, millis) in
            [("500ms", 500), ("5s", 5_000), ("2m", 120_000), ("1h", 3_600_000), ("0s", 0), ("007s", 7_000)]
        {
            assert_eq!(parse_time_span(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_time_gives_a_reason() {
        for (text, expected) in [
            ("", "`` is not a time"),
            ("s", "`s` is not a time"),
            ("five", "`five` is not a time"),
            ("-5s", "`-5s` is not a time"),
            ("1.5s", "`1.5s` is not a time"),
            ("5 s", "`5 s` is not a time"),
            ("5S", "`5S` is not a time"),
            ("1m30s", "`1m30s` is not a time"),
            ("٥s", "`٥s` is not a time"),
            ("5", "`5` has no unit"),
            ("8761h", "`8761h` is longer than a year"),
            ("99999999999999999999s", "`99999999999999999999s` is longer than a year"),
            ("18446744073709551615h", "`18446744073709551615h` is longer than a year"),
        ] {
            let error = parse_time_span(text).expect_err(text);
            assert_eq!(error.to_string(), expected);
            assert!(!error.hint().is_empty());
        }
    }
}
