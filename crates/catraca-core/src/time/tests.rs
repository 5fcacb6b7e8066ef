//! Tests of instants and spans: range, arithmetic, and their texts.

#![expect(clippy::disallowed_types, reason = "users of the library have the types of std")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;

#[test]
fn instants_stay_in_the_range_that_every_store_counts() {
    assert_eq!(Time::from_micros(-1), Time::ZERO);
    assert_eq!(Time::from_micros(i64::MAX), Time::FOREVER);
    assert_eq!(Time::from_millis(i64::MAX), Time::FOREVER);
    assert_eq!(Time::MAX.micros(), 9_007_199_254_740_991);
    assert_eq!(Span::from_secs(i64::MAX), Span::FOREVER);
    assert_eq!(Span::from_millis(-7), Span::ZERO);
    assert_eq!(Time::from_millis(3).micros(), 3_000);
}

#[test]
fn forever_is_never_left() {
    let minute = Span::from_secs(60);
    assert_eq!(Time::FOREVER.after(minute), Time::FOREVER);
    assert_eq!(Time::FOREVER.before(minute), Time::FOREVER);
    assert_eq!(Time::FOREVER.since(Time::from_millis(5)), Span::FOREVER);
    assert_eq!(Time::from_millis(5).after(Span::FOREVER), Time::FOREVER);
    assert_eq!(Time::from_millis(5).before(Span::FOREVER), Time::ZERO);
    assert_eq!(Span::FOREVER.plus(minute), Span::FOREVER);
    assert_eq!(minute.plus(Span::FOREVER), Span::FOREVER);
    assert_eq!(minute.times(i64::MAX), Span::FOREVER);
    assert!(Time::FOREVER.is_forever() && Span::FOREVER.is_forever());
    assert!(!Time::from_micros(LARGEST - 1).is_forever());
}

#[test]
fn since_never_goes_below_zero() {
    let early = Time::from_millis(1);
    let late = Time::from_millis(3);
    assert_eq!(late.since(early), Span::from_millis(2));
    assert_eq!(early.since(late), Span::ZERO);
    assert_eq!(Time::FOREVER.since(Time::FOREVER), Span::ZERO);
}

#[test]
fn rounding_is_up() {
    let table = [(0, 0, 0), (1, 1, 1), (1_000, 1, 1), (1_001, 2, 1), (1_000_000, 1_000, 1)];
    for (micros, millis, secs) in table {
        let span = Span::from_micros(micros);
        assert_eq!((span.ceil_millis(), span.ceil_secs()), (millis, secs), "{micros}");
    }
    assert_eq!(Span::from_micros(1_000_001).ceil_secs(), 2);
}

#[test]
fn instants_are_written_with_the_fraction_they_need() {
    let table = [
        (0, "1970-01-01T00:00:00Z"),
        (1_767_227_400_000_000, "2026-01-01T00:30:00Z"),
        (1_767_227_400_250_000, "2026-01-01T00:30:00.250Z"),
        (1_767_227_400_250_001, "2026-01-01T00:30:00.250001Z"),
        (LARGEST, "2255-06-05T23:47:34.740991Z"),
    ];
    for (micros, text) in table {
        assert_eq!(Time::from_micros(micros).to_rfc3339(), text);
        assert_eq!(Time::parse_rfc3339(text), Ok(Time::from_micros(micros)));
    }
}

#[test]
fn instants_are_read_in_any_zone() {
    let read = |text| Time::parse_rfc3339(text);
    assert_eq!(read("2025-12-31T21:30:00-03:00"), read("2026-01-01T00:30:00Z"));
    assert_eq!(read("9999-12-31T23:59:59Z"), Ok(Time::FOREVER));
    assert_eq!(read("9999-12-31T23:59:59-03:00"), Ok(Time::FOREVER));
    assert_eq!(read("2255-06-05T23:47:35Z"), Ok(Time::FOREVER));
    assert_eq!(read("1970-01-01T00:00:00.0000019Z"), Ok(Time::from_micros(1)));
}

#[test]
fn invalid_instants_are_refused_with_a_fix() {
    for text in ["", "tomorrow", "2026-01-01", "2026-01-01T00:30:00", "9999-12-31", "1767227400"] {
        let refused = Time::parse_rfc3339(text).unwrap_err().to_string();
        assert!(refused.contains(text) && refused.contains("2026-01-01T00:30:00Z"), "{refused}");
    }
    let early = Time::parse_rfc3339("1969-12-31T23:59:59.999Z").unwrap_err();
    assert!(matches!(early, TimeError::TooEarly { .. }));
}

#[test]
fn instants_are_read_as_other_programs_write_them() {
    let table = [
        ("2026-01-01t00:30:00z", "2026-01-01T00:30:00Z"),
        ("2026-01-01 00:30:00Z", "2026-01-01T00:30:00Z"),
        ("20260101T003000Z", "2026-01-01T00:30:00Z"),
        ("2026-01-01T00:30Z", "2026-01-01T00:30:00Z"),
        ("2026-01-01T00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:30:00,5Z", "2026-01-01T00:30:00.500Z"),
        ("2026-01-01T00:30:00.123456789Z", "2026-01-01T00:30:00.123456Z"),
        ("2026-01-01T05:30:00+0530", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:30:00+00", "2026-01-01T00:30:00Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
        ("2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"),
        ("2000-02-29T12:00:00Z", "2000-02-29T12:00:00Z"),
        ("1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00Z"),
    ];
    for (text, normal) in table {
        let read = Time::parse_rfc3339(text).map(Time::to_rfc3339);
        assert_eq!(read.as_deref(), Ok(normal), "{text}");
    }
    let invalid = [
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z",
        "2026-01-01T00:00:00+26:00",
        "2026-01-01T00:00:00+01:60",
        "2026-0101T00:00:00Z",
        "2026-01-01T00:30:00Zx",
        "2026-01-01T00:30:00ZZ",
        "+2026-01-01T00:30:00Z",
        "26-01-01T00:30:00Z",
    ];
    for text in invalid {
        let refused = Time::parse_rfc3339(text);
        assert!(matches!(refused, Err(TimeError::Malformed { .. })), "{text}: {refused:?}");
    }
}

#[test]
fn every_day_of_the_range_is_read_back() {
    let days = LARGEST / 86_400_000_000;
    for day in 0..=days {
        let noon = Time::from_micros(day * 86_400_000_000 + 43_200_000_000);
        assert_eq!(Time::parse_rfc3339(&noon.to_rfc3339()), Ok(noon));
    }
    assert_eq!(Time::from_micros(days * 86_400_000_000).to_rfc3339(), "2255-06-05T00:00:00Z");
}

#[test]
fn std_durations_are_rounded_up_and_clamped() {
    assert_eq!(Span::from(Duration::from_nanos(1_001)), Span::from_micros(2));
    assert_eq!(Span::from(Duration::from_secs(60)), Span::from_secs(60));
    assert_eq!(Span::from(Duration::MAX), Span::FOREVER);
    assert_eq!(Duration::from(Span::FOREVER), Duration::MAX);
    assert_eq!(Duration::from(Span::from_millis(1_500)), Duration::from_millis(1_500));
}

#[test]
fn std_instants_are_cut_and_clamped() {
    let at = UNIX_EPOCH + Duration::from_nanos(1_767_227_400_000_001_999);
    assert_eq!(Time::from(at), Time::from_micros(1_767_227_400_000_001));
    assert_eq!(Time::from(UNIX_EPOCH - Duration::from_secs(1)), Time::ZERO);
    assert_eq!(Time::from(UNIX_EPOCH + Duration::from_secs(1 << 40)), Time::FOREVER);
    let back = SystemTime::from(Time::from_micros(1_767_227_400_000_001));
    assert_eq!(Time::from(back), Time::from_micros(1_767_227_400_000_001));
    assert_eq!(Time::from(SystemTime::from(Time::FOREVER)), Time::FOREVER);
}

#[test]
fn spans_are_read_as_they_are_written_in_a_catalog() {
    let table = [
        ("500ms", 500_000),
        ("10s", 10_000_000),
        ("15m", 900_000_000),
        ("24h", 86_400_000_000),
        ("7d", 604_800_000_000),
        ("1h30m", 5_400_000_000),
        ("1d2h3m4s5ms6us", 93_784_005_006),
        ("6µs", 6),
        ("0s", 0),
        (" 10s ", 10_000_000),
        ("forever", LARGEST),
    ];
    for (text, micros) in table {
        assert_eq!(parse_span(text), Ok(Span::from_micros(micros)), "{text}");
    }
}

#[test]
fn invalid_spans_are_refused_with_a_fix() {
    let table = [
        (
            "10 mins",
            "`10 mins` is not a duration: write a number and a unit, such as 500ms, 10s, 15m, \
             24h or 7d",
        ),
        ("", "`` is not a duration"),
        ("-5s", "`-5s` is not a duration"),
        ("s", "`s` is not a duration"),
        ("10S", "`10S` is not a duration"),
        ("2w", "`2w` is not a duration"),
        ("never", "`never` is not a duration"),
        ("10", "`10` has no unit: write 10s for seconds"),
        ("1.5h", "`1.5h` has a fraction: write whole numbers in smaller units, such as 1h30m"),
        ("30m1h", "`30m1h` has its units out of order"),
        ("1h1h", "`1h1h` has its units out of order"),
        ("36501d", "`36501d` is too long: the longest duration is 36500d; write forever"),
        ("99999d", "`99999d` is too long: the longest duration is 36500d; write forever"),
        ("99999999999999999999s", "is too long"),
        ("9007199254740991us", "is too long"),
    ];
    for (text, message) in table {
        let refused = parse_span(text).unwrap_err().to_string();
        assert!(refused.contains(message), "{text}: {refused}");
    }
}

/// Regression: 99999d from now on is past the last instant, and was forever without saying so.
#[test]
fn the_longest_span_from_now_on_has_an_end() {
    let longest = parse_span("36500d").unwrap();
    let late = Time::parse_rfc3339("2150-01-01T00:00:00Z").unwrap();
    assert!(!late.after(longest).is_forever());
}

#[test]
fn spans_are_shown_in_the_units_people_use() {
    let table = [
        ("0ms", "0s"),
        ("1500ms", "1s500ms"),
        ("90s", "1m30s"),
        ("900s", "15m"),
        ("90m", "1h30m"),
        ("1d", "24h"),
        ("36h", "36h"),
        ("48h", "2d"),
        ("169h", "7d1h"),
        ("1us", "1us"),
        ("forever", "forever"),
    ];
    for (text, shown) in table {
        assert_eq!(parse_span(text).unwrap().to_string(), shown);
    }
}

proptest! {
    #[test]
    fn a_span_shown_is_the_span_read_back(micros in 0..=LONGEST_DAYS * 86_400_000_000) {
        let span = Span::from_micros(micros);
        prop_assert_eq!(parse_span(&span.to_string()), Ok(span));
    }

    #[test]
    fn an_instant_shown_is_the_instant_read_back(micros in 0..=LARGEST) {
        let time = Time::from_micros(micros);
        prop_assert_eq!(Time::parse_rfc3339(&time.to_string()), Ok(time));
    }

    #[test]
    fn reading_never_panics(text in "\\PC{0,20}") {
        let _ = (parse_span(&text), Time::parse_rfc3339(&text));
    }

    #[test]
    fn after_and_since_are_inverse_within_the_range(at in 0..LARGEST / 2, span in 0..LARGEST / 2) {
        let at = Time::from_micros(at);
        let span = Span::from_micros(span);
        prop_assert_eq!(at.after(span).since(at), span);
        prop_assert_eq!(at.after(span).before(span), at);
    }
}
