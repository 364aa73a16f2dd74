//! Parses times that users type: a time span ago, a time of day, or a date and time.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// Parses a time in the past.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    let now = Zoned::now();
    if let Ok(ago) = parse_span(text.strip_prefix('-').unwrap_or(text)) {
        let ago = jiff::SignedDuration::try_from(ago).map_err(|err| err.to_string())?;
        return now.timestamp().checked_sub(ago).map_err(|err| err.to_string());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Some(time) = parse_time_of_day(text) {
        let today = now.with().time(time).build().map_err(|err| err.to_string())?;
        let past =
            if today > now { today.checked_sub(1.day()).map_err(|err| err.to_string())? } else { today };
        return Ok(past.timestamp());
    }
    let here =
        text.parse::<jiff::civil::DateTime>().ok().and_then(|time| time.to_zoned(TimeZone::system()).ok());
    here.map(|time| time.timestamp())
        .ok_or_else(|| "it is not a time: try `10m` (ago), `14:05` or `2026-01-31 14:05`".to_owned())
}

/// Parses a number of seconds, or a time span.
pub(crate) fn parse_seconds_or_span(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => parse_span(text),
    }
}

/// Parses a time in the future: a time of day means its next occurrence.
pub(crate) fn parse_future(text: &str) -> Result<Timestamp, String> {
    let now = Zoned::now();
    let at = match parse_time_of_day(text) {
        Some(time) => {
            let today = now.with().time(time).build().map_err(|err| err.to_string())?;
            let next = if today > now { Ok(today) } else { today.checked_add(1.day()) };
            next.map_err(|err| err.to_string())?.timestamp()
        }
        None => parse_date(text)
            .ok_or_else(|| "it is not a time: try `14:05` or `2026-01-31 14:05`, or --for 2h".to_owned())?,
    };
    if at > now.timestamp() { Ok(at) } else { Err("it is in the past".to_owned()) }
}

/// The time after this span.
pub(crate) fn after(span: Duration) -> Result<Timestamp, String> {
    let span = jiff::SignedDuration::try_from(span).map_err(|err| err.to_string())?;
    Timestamp::now().checked_add(span).map_err(|err| err.to_string())
}

/// A text with a date also contains a time of day, but means another day.
fn parse_time_of_day(text: &str) -> Option<jiff::civil::Time> {
    text.parse().ok().filter(|_| text.contains(':') && !text.contains('-'))
}

fn parse_date(text: &str) -> Option<Timestamp> {
    let local = || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(TimeZone::system()).ok();
    text.parse().ok().or_else(|| local().map(|time| time.timestamp()))
}

/// Parses `90s`, `10m`, `2h` or `1d`.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let wrong = || "it is not a duration: try `90s`, `10m`, `2h` or `1d`".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match &text[digits..] {
        "ms" => return Ok(Duration::from_millis(number)),
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).map(Duration::from_secs).ok_or_else(wrong)
}

/// The local time of day to the minute, with the date if it is not today.
pub(crate) fn format_minute(time: &str) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return time.to_owned() };
    let (time, now) = (time.to_zoned(TimeZone::system()), Zoned::now());
    let form = if time.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    time.strftime(form).to_string()
}

/// The local time of day, with the date if it is not today.
pub(crate) fn format_local(time: &str) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return time.to_owned() };
    let (time, now) = (time.to_zoned(TimeZone::system()), Zoned::now());
    let form = if time.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    time.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_the_future_is_the_next_one() {
        let ahead = |text: &str| parse_future(text).expect(text).duration_since(Timestamp::now()).as_secs();
        assert!((0..=86_400).contains(&ahead("14:05")) && ahead("2999-01-31 14:05") > 0);
        assert!((3_598..=3_600).contains(
            &after(Duration::from_secs(3_600)).expect("soon").duration_since(Timestamp::now()).as_secs()
        ));
        for wrong in ["", "soon", "2001-01-31 14:05", "25:00", "2h"] {
            assert!(parse_future(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_can_be_written_as_a_span_a_time_of_day_or_a_date() {
        let ago = |text: &str| Timestamp::now().duration_since(parse(text).expect(text)).as_secs();
        assert!((599..=601).contains(&ago("10m")));
        assert!((599..=601).contains(&ago("-10m")));
        assert!((0..=86_400).contains(&ago("14:05")));
        assert_eq!(parse("2026-01-31T14:05:00Z").expect("a time").to_string(), "2026-01-31T14:05:00Z");
        let date = parse("2026-01-31 14:05").expect("a time").to_zoned(TimeZone::system()).date();
        assert_eq!(date.to_string(), "2026-01-31");
        for wrong in ["", "10", "m", "soon", "25:00", "99999999999999999999d"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_span("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_span("250ms"), Ok(Duration::from_millis(250)));
    }
}
