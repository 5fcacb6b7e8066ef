//! The combined log format of Apache and nginx, and the common one, which ends before the referrer.
//!
//! `ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES "REFERRER" "AGENT"`; whatever a server adds
//! behind it is left alone. Must not guess at other layouts: those are written as JSON.

use std::borrow::Cow;

use catraca::core::request::STATUSES;

use super::{Headers, Logged, request_line, time};

/// What the layout is, for errors.
const LAYOUT: &str = "ADDRESS - USER [TIME] \"REQUEST\" STATUS BYTES";

/// What is left to read of a line.
struct Rest<'a>(&'a str);

/// Reads a line.
pub fn read(line: &[u8]) -> Result<Logged<'_>, String> {
    // An address and a time are ASCII, and what is not in a request is an odd request.
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(_) => return Err("not UTF-8: servers escape other bytes in a log".to_owned()),
    };
    let mut rest = Rest(text);
    let ip = rest.word("an address")?;
    rest.skip_to_time()?;
    let time = rest.time()?;
    let request = rest.quoted("the request")?;
    let status = rest.word("a status")?;
    let status: u16 = status.parse().map_err(|_| expected("a status of three digits"))?;
    // A server that never answered writes 000.
    let status = Some(status).filter(|status| STATUSES.contains(status));
    let headers = rest.headers();
    let request = match request {
        Cow::Borrowed(text) => request_line(text).map(|(m, t)| (m.into(), t.into())),
        Cow::Owned(text) => {
            request_line(&text).map(|(m, t)| (m.to_owned().into(), t.to_owned().into()))
        }
    };
    Ok(Logged { time, ip: ip.into(), request, status, headers })
}

impl<'a> Rest<'a> {
    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        let text = self.0.trim_start_matches(' ');
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if word.is_empty() {
            return Err(expected(what));
        }
        self.0 = rest;
        Ok(word)
    }

    /// A user may have any name, so what stands before the time is not counted in words.
    fn skip_to_time(&mut self) -> Result<(), String> {
        let mut from = 0;
        while let Some(found) = self.0[from..].find(" [").or(self.0[from..].find('[')) {
            let start = from + found + usize::from(self.0[from + found..].starts_with(' '));
            if time::is_common(&self.0.as_bytes()[start + 1..]) {
                self.0 = &self.0[start + 1..];
                return Ok(());
            }
            from = start + 1;
        }
        Err(expected("a time such as [06/Jan/2026:09:00:00 +0000]"))
    }

    fn time(&mut self) -> Result<catraca::Time, String> {
        let (time, rest) = self.0.split_once(']').ok_or_else(|| expected("a `]`"))?;
        self.0 = rest;
        time::common(time)
    }

    /// A quoted text; a quote in it is escaped.
    fn quoted(&mut self, what: &str) -> Result<Cow<'a, str>, String> {
        let wanted = || expected(&format!("{what} in quotes"));
        let text = self.0.trim_start_matches(' ').strip_prefix('"').ok_or_else(wanted)?;
        let end = closing(text.as_bytes()).ok_or_else(wanted)?;
        self.0 = &text[end + 1..];
        let inside = &text[..end];
        Ok(if inside.contains('\\') { unescaped(inside).into() } else { inside.into() })
    }

    /// What the combined format has beyond the common one; absent is as good as `-`.
    fn headers(mut self) -> Headers<'a> {
        let mut headers = Headers::new();
        if self.word("bytes").is_err() {
            return headers;
        }
        for name in ["referer", "user-agent"] {
            let Ok(value) = self.quoted(name) else { break };
            if value != "-" {
                headers.push((name.into(), value));
            }
        }
        headers
    }
}

fn closing(text: &[u8]) -> Option<usize> {
    let mut place = 0;
    loop {
        match text.get(place)? {
            b'"' => return Some(place),
            b'\\' => place += 2,
            _ => place += 1,
        }
    }
}

/// `\xHH` of nginx and Apache, and Apache's letters.
fn unescaped(text: &str) -> String {
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

fn expected(what: &str) -> String {
    format!("not a combined log line: {what} is missing; the layout is {LAYOUT}")
}
