//! Cookies of a request.

use std::borrow::Cow;

use super::{decode, is_read_as};

/// The values of all cookies with this name in one line of the header `Cookie`.
///
/// Applications read `"a"`, `%61` and `a` as the same value or as different ones. All are `a` here,
/// so that a caller cannot have a counter for each spelling of one session.
pub fn cookie_values<'l>(line: &'l str, name: &str) -> impl Iterator<Item = Cow<'l, str>> {
    line.split(';').filter_map(move |pair| {
        let (own, value) = pair.split_once('=')?;
        (own.trim() == name).then(|| plain_value(value.trim()))
    })
}

/// Servers read different values of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmbiguousCookie;

/// The value of a cookie in one line of the header `Cookie`, which every server reads alike.
///
/// Some servers also begin a cookie after a space or a comma, so that `a=1 s=2` has `s`. Some read
/// names in letters of any case.
pub fn cookie_once<'l>(line: &'l str, name: &str) -> Result<Option<Cow<'l, str>>, AmbiguousCookie> {
    let mut found = None;
    for pair in line.split(';').map(str::trim) {
        let has_gap = pair.contains(is_gap);
        if has_gap && pair.split(is_gap).skip(1).any(|piece| is_named(piece, name)) {
            return Err(AmbiguousCookie);
        }
        let Some((own, value)) = pair.split_once('=').filter(|_| is_named(pair, name)) else {
            continue;
        };
        let value = value.trim();
        if own.trim() != name || value.contains(is_gap) {
            return Err(AmbiguousCookie);
        }
        if found.replace(plain_value(value)).is_some() {
            return Err(AmbiguousCookie);
        }
    }
    Ok(found)
}

fn is_gap(letter: char) -> bool {
    letter == ',' || letter.is_whitespace()
}

/// Whether some servers read this as a cookie with this name.
fn is_named(pair: &str, name: &str) -> bool {
    let Some((own, _)) = pair.split_once('=') else { return false };
    let own = own.trim();
    is_read_as(own, name) || decode(own).is_ok_and(|own| is_read_as(&own, name))
}

fn plain_value(value: &str) -> Cow<'_, str> {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let value = inner.unwrap_or(value);
    // A value with a broken escape has only one spelling.
    decode(value).unwrap_or(Cow::Borrowed(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(line: &str, name: &str) -> Vec<String> {
        cookie_values(line, name).map(Cow::into_owned).collect()
    }

    #[test]
    fn spellings_of_one_value_are_one() {
        for line in ["s=abc", "a=1; s=abc", "s=\"abc\"", " s = abc ;", "s=%61b%63", "xs=1;s=abc"] {
            assert_eq!(values(line, "s"), ["abc"], "{line}");
        }
        assert_eq!(values("s=a=b==", "s"), ["a=b=="]);
        assert_eq!(values("s=1; s=2", "s"), ["1", "2"]);
        assert_eq!(values("s=%zz", "s"), ["%zz"]);
        assert_eq!(values("s; S=1; ss=2; =3", "s"), [""; 0]);
        assert_eq!(values("s=", "s"), [""]);
        assert_eq!(values("s=\"", "s"), ["\""]);
    }

    #[test]
    fn a_cookie_that_servers_split_in_different_ways_is_ambiguous() {
        let once = |line| cookie_once(line, "s").map(|value| value.map(Cow::into_owned));
        for (line, value) in [
            ("a=1; s=abc", Some("abc")),
            (" s = abc ;", Some("abc")),
            ("a=x y, z; s=\"abc\"", Some("abc")),
            ("a=s=1; s=%61bc", Some("abc")),
            ("ss=1; xs=2; s", None),
        ] {
            assert_eq!(once(line), Ok(value.map(str::to_owned)), "{line}");
        }
        for line in [
            "s=1; s=2",
            "s=1; S=2",
            "S=1",
            "%73=1",
            "s[]=1",
            "s=1; a=1 s=2",
            "s=1; a=1,s=2",
            "a=1\ts=2",
            "a s=2",
            "s=1 2",
            "s=1,2",
        ] {
            assert_eq!(once(line), Err(AmbiguousCookie), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in "\\PC{0,100}", name in "[a-z]{1,3}") {
            let read = values(&format!("{line};{name}=x"), &name);
            prop_assert_eq!(read.last().map(String::as_str), Some("x"));
            if let Ok(once) = cookie_once(&format!("{line};{name}=x"), &name) {
                prop_assert_eq!(once.as_deref(), Some("x"));
            }
            prop_assert!(read.iter().map(String::len).sum::<usize>() <= line.len() + 1);
        }
    }
}
