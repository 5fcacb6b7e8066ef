//! Parses the combined log format of Apache and nginx, and the common format, which ends before
//! the referrer.
//!
//! `ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES "REFERRER" "AGENT"`; further fields are
//! ignored. Other layouts are not guessed: a JSON log can describe them.

use std::borrow::Cow;

use catraca::core::request::STATUSES;

use super::time::{self, LastTime};
use super::{LogHeaders, LogRequest, request_line};

/// The layout, for errors.
const LAYOUT: &str = "ADDRESS - USER [TIME] \"REQUEST\" STATUS BYTES";

/// The request headers of the combined format, in their order.
pub const HEADERS: [&str; 2] = ["referer", "user-agent"];

/// The unparsed rest of a line.
struct Rest<'a>(&'a str);

/// Parses a line.
pub fn read<'a>(
    line: &'a [u8],
    reads_headers: bool,
    times: &mut LastTime,
) -> Result<LogRequest<'a>, String> {
    // Servers escape non-ASCII bytes of a request in the log, so other bytes mean another format.
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(_) => return Err("not UTF-8: servers escape other bytes in a log".to_owned()),
    };
    let mut rest = Rest(text);
    let ip = rest.read_word("an address")?;
    rest.skip_to_time()?;
    let time = rest.read_time(times)?;
    let request = rest.read_quoted("the request")?;
    let status = rest.read_word("a status")?;
    let status: u16 = status.parse().map_err(|_| missing_part("a status of three digits"))?;
    // nginx logs 000 when no response was sent.
    let status = Some(status).filter(|status| STATUSES.contains(status));
    let headers = if reads_headers { rest.headers() } else { LogHeaders::new() };
    let request = match request {
        Cow::Borrowed(text) => request_line(text).map(|(m, t)| (m.into(), t.into())),
        Cow::Owned(text) => {
            request_line(&text).map(|(m, t)| (m.to_owned().into(), t.to_owned().into()))
        }
    };
    Ok(LogRequest { time, ip: ip.into(), request, status, headers })
}

impl<'a> Rest<'a> {
    fn read_word(&mut self, what: &str) -> Result<&'a str, String> {
        let text = self.0.trim_start_matches(' ');
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if word.is_empty() {
            return Err(missing_part(what));
        }
        self.0 = rest;
        Ok(word)
    }

    /// Skips identity and user up to the time. A user name may contain blanks and brackets, so the
    /// time is found by its form.
    fn skip_to_time(&mut self) -> Result<(), String> {
        let mut from = 0;
        while let Some(found) = find_bracket(&self.0.as_bytes()[from..]) {
            let start = from + found;
            if time::is_common(&self.0.as_bytes()[start + 1..]) {
                self.0 = &self.0[start + 1..];
                return Ok(());
            }
            from = start + 1;
        }
        Err(missing_part("a time such as [06/Jan/2026:09:00:00 +0000]"))
    }

    fn read_time(&mut self, times: &mut LastTime) -> Result<catraca::Time, String> {
        let (time, rest) = self.0.split_once(']').ok_or_else(|| missing_part("a `]`"))?;
        self.0 = rest;
        times.common(time)
    }

    /// A quoted text, in which quotes are escaped with a backslash.
    fn read_quoted(&mut self, what: &str) -> Result<Cow<'a, str>, String> {
        let missing = || missing_part(&format!("{what} in quotes"));
        let text = self.0.trim_start_matches(' ').strip_prefix('"').ok_or_else(missing)?;
        let end = closing_quote(text.as_bytes()).ok_or_else(missing)?;
        self.0 = &text[end + 1..];
        let inside = &text[..end];
        Ok(if inside.contains('\\') { unescape(inside).into() } else { inside.into() })
    }

    /// Referrer and user agent of the combined format; `-` and a missing field are the same.
    fn headers(mut self) -> LogHeaders<'a> {
        let mut headers = LogHeaders::new();
        if self.read_word("bytes").is_err() {
            return headers;
        }
        for name in HEADERS {
            let Ok(value) = self.read_quoted(name) else { break };
            if value != "-" {
                headers.push((name.into(), value));
            }
        }
        headers
    }
}

/// Prefers a bracket after a blank: a user name is less likely to contain that.
fn find_bracket(text: &[u8]) -> Option<usize> {
    let after_blank = text.windows(2).position(|pair| pair == b" [").map(|blank| blank + 1);
    after_blank.or_else(|| text.iter().position(|byte| *byte == b'['))
}

fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut index = 0;
    loop {
        match text.get(index)? {
            b'"' => return Some(index),
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
}

/// Decodes `\xHH` of nginx and Apache, and the letters `\n` and `\t` of Apache.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, more)) = rest.split_first() {
        let (byte, more) = match (byte, more) {
            (b'\\', [b'x', high, low, more @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, more),
                _ => (b'\\', more),
            },
            (b'\\', [b'n', more @ ..]) => (b'\n', more),
            (b'\\', [b't', more @ ..]) => (b'\t', more),
            (b'\\', [other, more @ ..]) => (*other, more),
            _ => (byte, more),
        };
        bytes.push(byte);
        rest = more;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

fn missing_part(what: &str) -> String {
    format!("not a combined log line: {what} is missing; the layout is {LAYOUT}")
}
