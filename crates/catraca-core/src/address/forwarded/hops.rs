//! The hops in one header line, from right to left, each an address or unreadable.
//!
//! Everything is read from the right, quotes included, so that no text a client put at the left
//! end can change how the proxies' own hops are read. Must not decide whom to trust.

use std::borrow::Cow;

use super::Source;
use crate::address::{Address, is_port, read_with_port};

/// The hops of a line, from right to left; nothing in place of one that cannot be read.
pub fn from_right(line: &str, source: &Source) -> impl Iterator<Item = Option<Address>> {
    let forwarded = *source == Source::Forwarded;
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let comma = if forwarded { last_unquoted_comma(line) } else { line.rfind(',') };
        let hop = comma.map_or(line, |at| &line[at + 1..]).trim();
        rest = comma.map(|at| &line[..at]);
        Some(if forwarded { forwarded_hop(hop) } else { read_with_port(hop, is_port) })
    })
}

/// The last comma outside quotes. A quote after an odd number of backslashes is quoted itself.
fn last_unquoted_comma(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut quoted = false;
    for (at, byte) in bytes.iter().enumerate().rev() {
        match byte {
            b'"' if is_escaped(&bytes[..at]) => {}
            b'"' => quoted = !quoted,
            b',' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether the byte after `before` is escaped.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// The address in one element of `Forwarded`, such as `for="[2001:db8::7]:4711";proto=https`.
fn forwarded_hop(element: &str) -> Option<Address> {
    let mut found = None;
    let mut rest = element;
    while !rest.is_empty() {
        let (pair, after) = split_pair(rest)?;
        rest = after;
        let Some((name, value)) = pair else { continue };
        if name.eq_ignore_ascii_case("for") && found.replace(value).is_some() {
            return None;
        }
    }
    read_with_port(&found?, |port| is_port(port) || port.starts_with('_'))
}

/// A name with its value.
type Pair<'a> = (&'a str, Cow<'a, str>);

/// Splits the first pair, if it is not empty, from an element; nothing if it is malformed.
fn split_pair(text: &str) -> Option<(Option<Pair<'_>>, &str)> {
    let end = text.find([';', '=']).unwrap_or(text.len());
    let (name, tail) = (text[..end].trim(), &text[end..]);
    let Some(value) = tail.strip_prefix('=') else {
        return name.is_empty().then(|| (None, tail.strip_prefix(';').unwrap_or(tail)));
    };
    let (value, after) = match value.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?,
        None => bare(value)?,
    };
    let after = after.trim_start();
    let after = if after.is_empty() { after } else { after.strip_prefix(';')? };
    Some((Some((name, value)), after))
}

/// The value of a quoted string whose first quote is gone, and what follows it.
fn unquote(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Cow::Owned(value), &text[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

/// A value without quotes, and what follows it. Colons and brackets should have been quoted, but
/// proxies leave them bare and they cannot be mistaken for anything else.
fn bare(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(|c: char| c == ';' || c.is_whitespace()).unwrap_or(text.len());
    let value = &text[..end];
    let sound = !value.is_empty() && !value.contains(['"', '\\', '=']);
    sound.then_some((Cow::Borrowed(value), &text[end..]))
}
