//! Parses the hops of one line of `X-Forwarded-For` or `Forwarded`, from right to left.
//!
//! Quotes are matched from the right too: otherwise a client could put an opening quote at the left
//! end and change how the hops that proxies appended are read.

use std::borrow::Cow;

use super::AddressSource;
use crate::address::{Address, is_port, read_with_port};

/// The hops of a line, from right to left; `None` for a hop that is not an address.
pub fn hops_from_right(
    line: &str,
    source: &AddressSource,
) -> impl Iterator<Item = Option<Address>> {
    let forwarded = *source == AddressSource::Forwarded;
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let comma = if forwarded { last_unquoted_comma(line) } else { line.rfind(',') };
        let hop = comma.map_or(line, |at| &line[at + 1..]).trim();
        rest = comma.map(|at| &line[..at]);
        Some(if forwarded { forwarded_hop(hop) } else { read_with_port(hop, is_port) })
    })
}

/// The last comma outside of quotes. A quote after an odd number of backslashes is escaped.
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
/// `None` if `for` is missing, given twice or not an address.
fn forwarded_hop(element: &str) -> Option<Address> {
    let mut hop = None;
    let mut rest = element;
    while !rest.is_empty() {
        let (pair, after) = split_pair(rest)?;
        rest = after;
        let Some((name, value)) = pair else { continue };
        if name.eq_ignore_ascii_case("for") && hop.replace(value).is_some() {
            return None;
        }
    }
    // RFC 7239 allows an obfuscated port, which starts with an underscore.
    read_with_port(&hop?, |port| is_port(port) || port.starts_with('_'))
}

/// A parameter's name and value.
type Pair<'a> = (&'a str, Cow<'a, str>);

/// Splits the first pair from an element; the pair is `None` if it is empty, as in `;;`. Returns
/// `None` if the element is malformed.
fn split_pair(text: &str) -> Option<(Option<Pair<'_>>, &str)> {
    let end = text.find([';', '=']).unwrap_or(text.len());
    let name = text[..end].trim();
    let tail = &text[end..];
    let Some(value) = tail.strip_prefix('=') else {
        return name.is_empty().then(|| (None, tail.strip_prefix(';').unwrap_or(tail)));
    };
    let (value, after) = match value.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?,
        None => split_unquoted(value)?,
    };
    let after = after.trim_start();
    let after = if after.is_empty() { after } else { after.strip_prefix(';')? };
    Some((Some((name, value)), after))
}

/// The value of a quoted string, given the text after its opening quote, and the rest of the text.
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

/// A value without quotes, and the rest of the text. Colons and brackets should be quoted, but some
/// proxies do not quote them, and they are not ambiguous here.
fn split_unquoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(|c: char| c == ';' || c.is_whitespace()).unwrap_or(text.len());
    let value = &text[..end];
    let is_valid = !value.is_empty() && !value.contains(['"', '\\', '=']);
    is_valid.then_some((Cow::Borrowed(value), &text[end..]))
}
