//! The canonical form of a request's path.
//!
//! Servers disagree about `//`, `/./`, `/x/..`, `%6c`, `;params` and letter case. Routes are
//! matched against one canonical form, so that a client cannot avoid a limit by another spelling of
//! the path. A spelling that servers read in different ways has no canonical form and is an error:
//! a guess would let the client choose which policy applies.

use std::borrow::Cow;
use std::fmt;

use crate::catalog::{EncodedSlash, Network, PathCase};

/// A path in its canonical form: decoded once, without empty segments, `.` segments and
/// `;parameters`; in lower case if `[network] path_case` is `"insensitive"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalPath {
    /// The segments.
    pub segments: Vec<String>,
}

/// Why a path has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmbiguousPath {
    /// `%` without two hexadecimal digits.
    BrokenEscape,
    /// `%2f`; some servers read it as a separator, others as part of a segment.
    EncodedSlash,
    /// `\` or `%5c`; some servers read it as `/`.
    Backslash,
    /// A control character, plain or encoded, such as `%00`.
    ControlCharacter,
    /// `%25` followed by two hexadecimal digits: a server that decodes twice reads another path.
    EncodedTwice,
    /// `#` in the path or the query: some servers end both there.
    Fragment,
    /// `//` at the beginning: URL parsers read a host name there.
    LeadingSlashes,
    /// `..`: some servers resolve it, others read it as a name.
    ParentSegment,
    /// A space that is not encoded.
    Space,
    /// Bytes that are not UTF-8 after decoding.
    NotUtf8,
}

impl fmt::Display for AmbiguousPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrokenEscape => f.write_str("`%` is not followed by two hexadecimal digits"),
            Self::EncodedSlash => f.write_str(
                "it contains an encoded slash (`%2f`); `[network] encoded_slash` can allow it",
            ),
            Self::Backslash => f.write_str("it contains a backslash"),
            Self::ControlCharacter => f.write_str("it contains a control character"),
            Self::EncodedTwice => f.write_str("it is encoded twice"),
            Self::Fragment => f.write_str("the path or the query contains `#`"),
            Self::LeadingSlashes => f.write_str("it begins with two slashes"),
            Self::ParentSegment => f.write_str("it contains `..`"),
            Self::Space => f.write_str("it contains a space"),
            Self::NotUtf8 => f.write_str("it is not UTF-8 after decoding"),
        }
    }
}

impl std::error::Error for AmbiguousPath {}

impl CanonicalPath {
    /// The canonical form of a target's path, as the catalog's `[network]` section defines it.
    pub fn canonical(target: &str, network: &Network) -> Result<Self, AmbiguousPath> {
        let path = target.split('?').next().unwrap_or_default();
        if target.contains('#') {
            return Err(AmbiguousPath::Fragment);
        }
        if path.starts_with("//") {
            return Err(AmbiguousPath::LeadingSlashes);
        }
        if path.contains(' ') {
            return Err(AmbiguousPath::Space);
        }
        let mut segments = Vec::new();
        for raw in path.split('/') {
            let decoded = decode(raw)?;
            match network.encoded_slash {
                EncodedSlash::Reject if decoded.contains('/') => {
                    return Err(AmbiguousPath::EncodedSlash);
                }
                EncodedSlash::Separator => {
                    for part in decoded.split('/') {
                        push_segment(&mut segments, part)?;
                    }
                }
                EncodedSlash::Reject | EncodedSlash::Literal => {
                    push_segment(&mut segments, &decoded)?
                }
            }
        }
        if network.path_case == PathCase::Insensitive {
            segments.iter_mut().for_each(|segment| *segment = fold_case(segment));
        }
        Ok(Self { segments })
    }
}

/// Adds a decoded segment without its parameters: servers that know them read `login;x` as `login`,
/// and for other servers the longer name is another path, which the same limit may safely cover.
/// `..` is an error, also with parameters, because not all servers resolve it.
fn push_segment(segments: &mut Vec<String>, decoded: &str) -> Result<(), AmbiguousPath> {
    match decoded.split(';').next().unwrap_or_default() {
        "" | "." => {}
        ".." => return Err(AmbiguousPath::ParentSegment),
        name => segments.push(name.to_owned()),
    }
    Ok(())
}

/// One form for all letters that some server considers equal. Converts to upper case first, because
/// only that maps `ſ` to `s` and `ı` to `i`, and removes the dot that the lower case of `İ` leaves.
pub(crate) fn fold_case(text: &str) -> String {
    let folded = text.to_uppercase().to_lowercase();
    folded.chars().filter(|letter| *letter != '\u{307}').collect()
}

/// Decodes a segment once. An encoded slash is decoded too; the caller decides whether it is a
/// separator.
pub fn decode(raw: &str) -> Result<Cow<'_, str>, AmbiguousPath> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'\\');
    if raw.bytes().all(is_plain) {
        return Ok(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' { decode_escape(&mut rest)? } else { byte });
    }
    let text = String::from_utf8(bytes).map_err(|_| AmbiguousPath::NotUtf8)?;
    if text.contains('\\') {
        return Err(AmbiguousPath::Backslash);
    }
    if text.contains(char::is_control) {
        return Err(AmbiguousPath::ControlCharacter);
    }
    // `%252f` has become `%2f` here, which a server that decodes again would read as `/`.
    if text.split('%').skip(1).any(|after| decode_escape(&mut after.bytes()).is_ok()) {
        return Err(AmbiguousPath::EncodedTwice);
    }
    Ok(Cow::Owned(text))
}

/// The byte that is encoded by the two hexadecimal digits after a `%`.
fn decode_escape(rest: &mut impl Iterator<Item = u8>) -> Result<u8, AmbiguousPath> {
    let mut digit = || {
        let digit = rest.next().and_then(|byte| char::from(byte).to_digit(16));
        digit.and_then(|digit| u8::try_from(digit).ok()).ok_or(AmbiguousPath::BrokenEscape)
    };
    let high = digit()?;
    let low = digit()?;
    Ok(high << 4 | low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(target: &str, network: &Network) -> Result<Vec<String>, AmbiguousPath> {
        CanonicalPath::canonical(target, network).map(|path| path.segments)
    }

    #[test]
    fn every_spelling_of_a_path_has_one_canonical_form() {
        let network = Network::default();
        for spelling in [
            "/api/login",
            "/api//login/",
            "/api/./login",
            "/api/%6cogin",
            "/api/login?next=/x/../y",
            "/api/login?next=%2f%00",
            "/api/login;x=1",
            "/api;v=2/login;x=1;y",
            "/api/login%3bx=1",
            "/api/;x/login",
        ] {
            let login = Ok(vec!["api".to_owned(), "login".to_owned()]);
            assert_eq!(segments(spelling, &network), login, "{spelling}");
        }
        assert_eq!(segments("/100%25", &network), Ok(vec!["100%".to_owned()]));
        assert_eq!(segments("/caf%c3%a9", &network), Ok(vec!["café".to_owned()]));
        assert_eq!(segments("/LOGIN", &network), Ok(vec!["LOGIN".to_owned()]));
    }

    #[test]
    fn a_spelling_that_servers_read_differently_is_refused_with_its_reason() {
        for (spelling, reason) in [
            ("/login%2f", AmbiguousPath::EncodedSlash),
            ("/x/..%2Flogin", AmbiguousPath::EncodedSlash),
            ("/\\login", AmbiguousPath::Backslash),
            ("/%5clogin", AmbiguousPath::Backslash),
            ("/x\\..\\login", AmbiguousPath::Backslash),
            ("/login%00", AmbiguousPath::ControlCharacter),
            ("/login%0a", AmbiguousPath::ControlCharacter),
            ("/login\u{7f}", AmbiguousPath::ControlCharacter),
            ("/%zz", AmbiguousPath::BrokenEscape),
            ("/%2", AmbiguousPath::BrokenEscape),
            ("/%", AmbiguousPath::BrokenEscape),
            ("/%252flogin", AmbiguousPath::EncodedTwice),
            ("/%256cogin", AmbiguousPath::EncodedTwice),
            ("/public#/login", AmbiguousPath::Fragment),
            ("/login?tenant=a#1", AmbiguousPath::Fragment),
            ("//x/login", AmbiguousPath::LeadingSlashes),
            ("/api/x/../login", AmbiguousPath::ParentSegment),
            ("/login//..", AmbiguousPath::ParentSegment),
            ("/login/;a/..", AmbiguousPath::ParentSegment),
            ("/login/..;/", AmbiguousPath::ParentSegment),
            ("/login/..%3b/", AmbiguousPath::ParentSegment),
            ("/x/%2e%2e/login", AmbiguousPath::ParentSegment),
            ("/login /x", AmbiguousPath::Space),
            ("/%c0%aflogin", AmbiguousPath::NotUtf8),
            ("/%ff", AmbiguousPath::NotUtf8),
        ] {
            assert_eq!(segments(spelling, &Network::default()), Err(reason), "{spelling}");
        }
    }

    /// Every spelling is either read as the path itself or refused: none is another path.
    #[test]
    fn generated_spellings_are_one_path_or_are_refused() {
        const SLASHES: [(&str, bool); 7] = [
            ("/", true),
            ("//", true),
            ("/;v=2/", true),
            ("%2f", false),
            ("/%2F/", false),
            ("\\", false),
            ("/%5c/", false),
        ];
        const STEPS: [(&str, bool); 13] = [
            ("", true),
            (".", true),
            ("%2e", true),
            ("%2E;x=1", true),
            (".;/.", true),
            ("..", false),
            ("%2e%2E", false),
            (".%2e;x", false),
            ("..;", false),
            ("%252e%252e", false),
            ("%c0%ae%c0%ae", false),
            ("%00", false),
            ("%2", false),
        ];
        const NAMES: [(&str, bool); 6] = [
            ("login", true),
            ("%6cogin", true),
            ("%6Cogi%6e", true),
            ("%6c%6f%67%69%6e", true),
            ("%256cogin", false),
            ("login%0d", false),
        ];
        const ENDS: [(&str, bool); 7] = [
            ("", true),
            ("/", true),
            (";x=1;y", true),
            ("%3bx", true),
            ("?next=/../%2f", true),
            ("/..", false),
            ("#", false),
        ];
        let network = Network::default();
        let login = vec!["api".to_owned(), "login".to_owned()];
        let mut counts = [0, 0];
        let ends = NAMES.iter().flat_map(|name| ENDS.iter().map(move |end| (name, end)));
        let starts = SLASHES.iter().flat_map(|slash| STEPS.iter().map(move |step| (slash, step)));
        let all = starts.flat_map(|start| ends.clone().map(move |end| (start, end)));
        for ((slash, step), (name, end)) in all {
            let spelling = format!("/api{}{}/{}{}", slash.0, step.0, name.0, end.0);
            let is_plain = slash.1 && step.1 && name.1 && end.1;
            let read = segments(&spelling, &network).ok();
            assert_eq!(read, is_plain.then(|| login.clone()), "{spelling}");
            counts[usize::from(is_plain)] += 1;
        }
        assert!(counts.iter().all(|count| *count >= 300), "refused and read: {counts:?}");
    }

    #[test]
    fn the_catalog_says_what_an_encoded_slash_means() {
        let with = |encoded_slash| Network { encoded_slash, ..Network::default() };
        let separator = segments("/x%2flogin%2F", &with(EncodedSlash::Separator));
        assert_eq!(separator, Ok(vec!["x".to_owned(), "login".to_owned()]));
        let climbing = segments("/x/..%2flogin", &with(EncodedSlash::Separator));
        assert_eq!(climbing, Err(AmbiguousPath::ParentSegment));
        let literal = segments("/files/a%2fb", &with(EncodedSlash::Literal));
        assert_eq!(literal, Ok(vec!["files".to_owned(), "a/b".to_owned()]));
    }

    #[test]
    fn an_insensitive_path_is_in_lower_case() {
        let network = Network { path_case: PathCase::Insensitive, ..Network::default() };
        assert_eq!(segments("/LoGiN/%C3%89", &network), Ok(vec!["login".into(), "é".into()]));
        // Letters outside ASCII that servers take for a `k`, an `s` and an `i`.
        for spelling in ["/to\u{212a}en/list", "/token/li\u{17f}t", "/token/l\u{131}st"] {
            assert_eq!(segments(spelling, &network), Ok(vec!["token".into(), "list".into()]));
        }
        assert_eq!(segments("/L\u{130}ST", &network), Ok(vec!["list".to_owned()]));
    }
}
