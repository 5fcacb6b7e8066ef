//! Reads and writes instants as RFC 3339 texts.
//!
//! Days are counted in the Gregorian calendar, in years that begin in March: a leap day is then the
//! last day of its year.

use super::Time;

const SECS_PER_DAY: i64 = 86_400;
/// Days of four centuries, after which the calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from the first of March of the year 0 to the Unix epoch.
const DAYS_TO_EPOCH: i64 = 719_468;
/// The most digits of a fraction of a second that are read.
const FRACTION_DIGITS_MAX: usize = 9;

/// Microseconds since the Unix epoch, negative before it; `None` if the text is not an instant.
/// Besides RFC 3339, the variants of ISO 8601 are read that other programs write: no separators, no
/// seconds, a comma before the fraction, an offset in whole hours.
pub(super) fn parse(text: &str) -> Option<i64> {
    let mut rest = Remainder(text.as_bytes());
    let days = rest.date()?;
    rest.take(b"Tt ")?;
    let (seconds, micros) = rest.time()?;
    let offset = rest.offset()?;
    let seconds = days * SECS_PER_DAY + seconds - offset;
    rest.0.is_empty().then_some(seconds * 1_000_000 + micros)
}

/// Writes an instant in UTC, with no fraction, three or six digits, as many as needed.
pub(super) fn write(time: Time) -> String {
    let seconds = time.micros() / 1_000_000;
    let fraction = time.micros() % 1_000_000;
    let (year, month, day) = date_of(seconds / SECS_PER_DAY);
    let of_day = seconds % SECS_PER_DAY;
    let hour = of_day / 3_600;
    let minute = of_day / 60 % 60;
    let second = of_day % 60;
    let fraction = match fraction {
        0 => String::new(),
        _ if fraction % 1_000 == 0 => format!(".{:03}", fraction / 1_000),
        _ => format!(".{fraction:06}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The bytes of a text that are not read yet.
struct Remainder<'a>(&'a [u8]);

impl Remainder<'_> {
    /// The next byte, if it is one of `wanted`.
    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        let found = wanted.contains(first).then_some(*first)?;
        self.0 = rest;
        Some(found)
    }

    /// A number of exactly `digits` digits within a range.
    fn number(&mut self, digits: usize, least: i64, most: i64) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        let number = decimal(number)?;
        self.0 = rest;
        (least..=most).contains(&number).then_some(number)
    }

    /// Days since the Unix epoch.
    fn date(&mut self) -> Option<i64> {
        let year = self.number(4, 0, 9_999)?;
        let separator = self.take(b"-");
        let month = self.number(2, 1, 12)?;
        if separator.is_some() {
            self.take(b"-")?;
        }
        let day = self.number(2, 1, days_in(year, month))?;
        Some(days_since_epoch(year, month, day))
    }

    /// Seconds of the day, and microseconds.
    fn time(&mut self) -> Option<(i64, i64)> {
        let (hour, minute, second) = self.sexagesimal(23, 60)?;
        // A leap second is the second before it, as in Unix time.
        let seconds = hour * 3_600 + minute * 60 + second.min(59);
        Some((seconds, self.fraction()?))
    }

    /// Hours, and minutes and seconds if they are there, separated by colons or not at all.
    fn sexagesimal(&mut self, hours_max: i64, seconds_max: i64) -> Option<(i64, i64, i64)> {
        let hour = self.number(2, 0, hours_max)?;
        let separator = self.take(b":");
        let has_digit = |rest: &Self| rest.0.first().is_some_and(u8::is_ascii_digit);
        if separator.is_none() && !has_digit(self) {
            return Some((hour, 0, 0));
        }
        let minute = self.number(2, 0, 59)?;
        let has_seconds = match separator {
            Some(_) => self.take(b":").is_some(),
            None => has_digit(self),
        };
        let second = if has_seconds { self.number(2, 0, seconds_max)? } else { 0 };
        Some((hour, minute, second))
    }

    /// Microseconds of a fraction; digits below are dropped.
    fn fraction(&mut self) -> Option<i64> {
        if self.take(b".,").is_none() {
            return Some(0);
        }
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=FRACTION_DIGITS_MAX).contains(&count) {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        let nanos = decimal(digits)? * 10_i64.pow((FRACTION_DIGITS_MAX - count) as u32);
        Some(nanos / 1_000)
    }

    /// Seconds by which the zone is ahead of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.take(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let (hours, minutes, seconds) = self.sexagesimal(25, 59)?;
        Some(sign * (hours * 3_600 + minutes * 60 + seconds))
    }
}

fn decimal(digits: &[u8]) -> Option<i64> {
    let add =
        |sum: i64, byte: &u8| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'));
    digits.iter().try_fold(0, add)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - DAYS_TO_EPOCH
}

/// The year, month and day of a number of days since the Unix epoch, which is not negative.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_EPOCH;
    let era = days / DAYS_PER_ERA;
    let day_of_era = days % DAYS_PER_ERA;
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era + i64::from(month >= 10);
    (year, (month + 2) % 12 + 1, day)
}
