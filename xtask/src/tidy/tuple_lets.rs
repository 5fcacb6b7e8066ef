//! `let (a, b) = (x, y);`: two steps written as one.
//!
//! A reader has to pair names and values by position. Each crate has a ceiling in
//! `tidy-allow.txt` that may only fall.

use super::Finding;
use super::mask::mask;

pub(crate) fn check(file: &str, text: &str) -> Vec<Finding> {
    let Some((root, _)) = file.split_once("/src/") else { return Vec::new() };
    let masked = mask(text);
    let starts = masked.match_indices("let (").filter(|(at, _)| is_tuple_let(&masked[*at..]));
    let findings = starts.map(|(at, _)| {
        let line = masked[..at].matches('\n').count() + 1;
        let message = format!("{file}:{line}: two values in one `let`: write one per line");
        Finding::new("tuple-let", root, 1, message)
    });
    findings.collect()
}

/// Whether both sides are written out as tuples; the answer of a call may be taken apart.
fn is_tuple_let(text: &str) -> bool {
    let Some(names) = text["let (".len()..].split_once(')') else { return false };
    let (names, rest) = names;
    let is_flat = !names.contains(['(', '=', ';']);
    let value = rest.split_once('=').map_or("", |(_, value)| value.trim_start());
    let Some(inside) = value.strip_prefix('(') else { return false };
    is_flat && ends_statement(inside)
}

/// Whether the parenthesis that was opened is closed at the end of the statement and holds a comma.
fn ends_statement(inside: &str) -> bool {
    let mut depth = 1;
    let mut has_comma = false;
    for (at, c) in inside.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 1 => has_comma = true,
            _ => {}
        }
        if depth == 0 {
            return has_comma && inside[at + 1..].trim_start().starts_with(';');
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check("crates/a/src/b.rs", text).len()
    }

    #[test]
    fn two_values_at_once_are_found() {
        assert_eq!(found("let (a, b) = (x(1, 2), y);\n"), 1);
        assert_eq!(found("    let (mut a, b): (u8, u8) =\n        (x, y);\n"), 1);
    }

    #[test]
    fn taking_an_answer_apart_is_fine() {
        assert_eq!(found("let (a, b) = pair();\nlet (a, b) = (x, y).into_parts();\n"), 0);
        assert_eq!(found("let (a, b) = (x + 1).split();\n// let (a, b) = (c, d);\n"), 0);
    }
}
