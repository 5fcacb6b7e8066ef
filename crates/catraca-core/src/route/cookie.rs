//! Cookies of a request.

use std::borrow::Cow;

use super::decode;

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

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in "\\PC{0,100}", name in "[a-z]{1,3}") {
            let read = values(&format!("{line};{name}=x"), &name);
            prop_assert_eq!(read.last().map(String::as_str), Some("x"));
            prop_assert!(read.iter().map(String::len).sum::<usize>() <= line.len() + 1);
        }
    }
}
