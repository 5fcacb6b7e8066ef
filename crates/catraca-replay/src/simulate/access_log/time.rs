//! Parses the notations of instants in access logs.
//!
//! A text without a time zone is rejected; the zone is not guessed.

use catraca::Time;

/// Length in bytes of `06/Jan/2026:09:00:00 +0000`.
const COMMON: usize = 26;
const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
/// Numbers below are seconds since 1970, others milliseconds. The limit is the year 5138 in
/// seconds and 1973 in milliseconds, so real logs are never misread.
const SECONDS_BELOW: f64 = 1e11;

/// The time of the line before, as written and as parsed: consecutive lines often have the same.
#[derive(Default)]
pub struct LastTime(Option<([u8; COMMON], Time)>);

impl LastTime {
    /// Parses `06/Jan/2026:09:00:00 +0000`, or returns the last time again.
    pub fn common(&mut self, text: &str) -> Result<Time, String> {
        if let Some((last, time)) = self.0
            && last == *text.as_bytes()
        {
            return Ok(time);
        }
        let time = common(text)?;
        self.0 = text.as_bytes().try_into().ok().map(|bytes| (bytes, time));
        Ok(time)
    }
}

/// Whether a text starts with a time of the common log format.
pub fn is_common(text: &[u8]) -> bool {
    let separators = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    text.len() >= COMMON && separators.iter().all(|(index, byte)| text[*index] == *byte)
}

/// Parses `06/Jan/2026:09:00:00 +0000`.
fn common(text: &str) -> Result<Time, String> {
    let bytes = text.as_bytes();
    let month = (bytes.len() == COMMON && is_common(bytes))
        .then(|| MONTHS.as_chunks::<3>().0.iter().position(|month| *month == bytes[3..6]))
        .flatten();
    let Some(month) = month else { return Err(invalid_time()) };
    let month = (month as u8) + 1;
    // Copies the parts to their places in RFC 3339, which checks their ranges.
    let mut rfc = *b"0000-00-00T00:00:00+00:00";
    rfc[..4].copy_from_slice(&bytes[7..11]);
    rfc[5] += month / 10;
    rfc[6] += month % 10;
    rfc[8..10].copy_from_slice(&bytes[..2]);
    rfc[11..19].copy_from_slice(&bytes[12..20]);
    rfc[19..22].copy_from_slice(&bytes[21..24]);
    rfc[23..].copy_from_slice(&bytes[24..]);
    let rfc = std::str::from_utf8(&rfc).map_err(|_| invalid_time())?;
    in_range(Time::parse_rfc3339(rfc).map_err(|_| invalid_time())?)
}

/// Converts seconds or milliseconds since the epoch.
pub fn number(number: f64) -> Result<Time, String> {
    let micros = if number < SECONDS_BELOW { number * 1e6 } else { number * 1e3 };
    if !(0.0..9e18).contains(&micros) {
        return Err(invalid_time());
    }
    in_range(Time::from_micros(micros.round() as i64))
}

/// Parses RFC 3339, the common log format, or a number.
pub fn text(text: &str) -> Result<Time, String> {
    if is_common(text.as_bytes()) {
        return common(text);
    }
    match text.parse::<f64>() {
        Ok(seconds) => number(seconds),
        Err(_) => in_range(Time::parse_rfc3339(text).map_err(|_| invalid_time())?),
    }
}

fn in_range(time: Time) -> Result<Time, String> {
    if time.is_forever() { Err(invalid_time()) } else { Ok(time) }
}

fn invalid_time() -> String {
    "the time is invalid: it must be RFC 3339, 06/Jan/2026:09:00:00 +0000, or seconds or \
     milliseconds since 1970"
        .to_owned()
}
