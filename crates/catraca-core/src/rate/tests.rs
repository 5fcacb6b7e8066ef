//! Tests of rates and percentages: valid and invalid texts, and exact arithmetic.

use proptest::prelude::*;

use super::*;
use crate::time::LONGEST_DAYS;

fn rate(amount: i64, per: &str) -> Rate {
    Rate { amount, per: parse_span(per).unwrap() }
}

#[test]
fn rates_are_read_as_sentences() {
    let table = [
        ("10 per 15m", rate(10, "15m")),
        ("1 per 1s", rate(1, "1s")),
        ("25_000 per 1m", rate(25_000, "1m")),
        ("0 per 1h", rate(0, "1h")),
        ("9007199254740991 per 1s", rate((1 << 53) - 1, "1s")),
        ("40 per 24h", rate(40, "24h")),
        (" 3  per  1h30m ", rate(3, "1h30m")),
    ];
    for (text, read) in table {
        assert_eq!(Rate::parse(text), Ok(read), "{text}");
    }
    assert_eq!("7 per 90s".parse::<Rate>().unwrap().to_string(), "7 per 1m30s");
}

#[test]
fn common_mistakes_are_reported_with_the_probable_meaning() {
    let table = [
        ("10/15m", "10 per 15m"),
        ("10/minute", "10 per 1m"),
        ("10 / s", "10 per 1s"),
        ("10 per minute", "10 per 1m"),
        ("10 per 15 minutes", "10 per 15m"),
        ("10 per 15mins", "10 per 15m"),
        ("10 requests per hour", "10 per 1h"),
        ("10 every 2 hours", "10 per 2h"),
        ("10 times a day", "10 per 24h"),
        ("10 per week", "10 per 7d"),
        ("10 PER 15M", "10 per 15m"),
        ("10per 15m", ""),
    ];
    for (text, meant) in table {
        let refused = Rate::parse(text).unwrap_err().to_string();
        let fix =
            if meant.is_empty() { "such as `10 per 15m`" } else { &format!("write `{meant}`") };
        assert!(refused.starts_with(&format!("`{text}`")) && refused.ends_with(fix), "{refused}");
    }
}

#[test]
fn every_other_mistake_has_its_own_error() {
    let table = [
        ("", "`` is not a rate: write an amount per a duration, such as `10 per 15m`"),
        ("ten per 1m", "`ten per 1m` is not a rate: write an amount"),
        ("_1 per 1m", "`_1 per 1m` is not a rate: write `1 per 1m`"),
        ("10", "`10` is not a rate: say per how long, such as `10 per 1m`"),
        ("-1 per 1s", "`-1 per 1s` is negative"),
        ("-1", "`-1` is negative"),
        ("2.5 per 1s", "`2.5 per 1s` has a fraction: amounts are whole numbers"),
        ("1,000 per 1m", "or group digits with underscores (`25_000 per 1m`)"),
        ("10 per 0s", "`10 per 0s` has no usable duration: a rate needs one above zero"),
        ("10 per forever", "`10 per forever` has no usable duration"),
        ("10 per 5x", "in the rate `10 per 5x`, `5x` is not a duration: write a number and a unit"),
        ("10 per 15", "in the rate `10 per 15`, `15` has no unit: write 15s for seconds"),
        ("9007199254740992 per 1s", "is too much: the largest amount is 9007199254740991"),
        ("99999999999999999999 per 1s", "is too much"),
    ];
    for (text, message) in table {
        let refused = Rate::parse(text).unwrap_err().to_string();
        assert!(refused.contains(message), "{text}: {refused}");
    }
}

#[test]
fn the_lowest_terms_have_no_common_divisor() {
    assert_eq!(rate(25_000, "1m").in_lowest_terms(), (1, 2_400));
    assert_eq!(rate(40, "24h").in_lowest_terms(), (1, 2_160_000_000));
    assert_eq!(rate(7, "1us").in_lowest_terms(), (7, 1));
    assert_eq!(rate(0, "1m").in_lowest_terms(), (0, 1));
}

#[test]
fn shares_are_read_and_shown() {
    let table = [
        ("20%", 2_000, "20%"),
        ("7.5%", 750, "7.5%"),
        ("7.05%", 705, "7.05%"),
        ("0.25 %", 25, "0.25%"),
        ("0%", 0, "0%"),
        ("100.00%", 10_000, "100%"),
    ];
    for (text, hundredths, shown) in table {
        let share = Percent::parse(text).unwrap();
        assert_eq!((share.hundredths(), share.to_string().as_str()), (hundredths, shown));
    }
    assert_eq!(Percent::from_hundredths(12_345).to_string(), "100%");
}

#[test]
fn invalid_percentages_are_refused_with_a_fix() {
    let table = [
        ("20", "`20` is not a percentage: write a number and a percent sign, such as 20%"),
        ("0.2", "is not a percentage"),
        ("7,5%", "is not a percentage"),
        ("-5%", "is not a percentage"),
        (".5%", "is not a percentage"),
        ("5.%", "is not a percentage"),
        ("7.125%", "`7.125%` is too fine: write at most two digits after the point"),
        ("100.01%", "`100.01%` is more than the whole: write at most 100%"),
        ("99999999999%", "is more than the whole"),
    ];
    for (text, message) in table {
        let refused = text.parse::<Percent>().unwrap_err().to_string();
        assert!(refused.contains(message), "{text}: {refused}");
    }
}

#[test]
fn shares_are_exact() {
    let fifth = Percent::parse("20%").unwrap();
    assert!(!fifth.is_exceeded_by(20, 100) && fifth.is_exceeded_by(21, 100));
    assert!(!fifth.is_exceeded_by(0, 0) && fifth.is_exceeded_by(1, 0));
    assert!(Percent::parse("7.5%").unwrap().is_exceeded_by(i64::MAX, i64::MAX));
    assert_eq!((fifth.of(100), fifth.of(4), fifth.of(5), fifth.of(-1)), (20, 0, 1, -1));
    assert_eq!(Percent::parse("100%").unwrap().of(i64::MAX), i64::MAX);
    assert_eq!(Percent::parse("100%").unwrap().of(i64::MIN), i64::MIN);
}

proptest! {
    #[test]
    fn a_rate_shown_is_the_rate_read_back(
        amount in 0..1_i64 << 53,
        micros in 1..=LONGEST_DAYS * 86_400_000_000,
    ) {
        let rate = Rate { amount, per: Span::from_micros(micros) };
        prop_assert_eq!(Rate::parse(&rate.to_string()), Ok(rate));
    }

    #[test]
    fn the_lowest_terms_are_the_same_rate(amount in 0..1_i64 << 40, micros in 1..1_i64 << 53) {
        let (n, p) = Rate { amount, per: Span::from_micros(micros) }.in_lowest_terms();
        prop_assert_eq!(i128::from(n) * i128::from(micros), i128::from(p) * i128::from(amount));
        prop_assert_eq!(gcd(n, p), 1);
    }

    #[test]
    fn reading_never_panics(text in "[0-9a-z _./,%-]{0,16}|\\PC{0,20}") {
        let _ = (Rate::parse(&text), Percent::parse(&text));
    }
}
