//! Rust text with everything that is not code blanked out.
//!
//! Braces in strings and comments would fool a brace counter. The mask keeps every line break and
//! every other character's place. Must not try to parse Rust beyond that.

/// The same lines, with the contents of comments, strings and character literals as spaces.
pub(crate) fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = ' ';
    while let Some(next) = rest.chars().next() {
        let hidden = if is_word(previous) && next != '"' { 0 } else { hidden_length(rest) };
        let length = if hidden > 0 { hidden } else { next.len_utf8() };
        let (piece, remainder) = rest.split_at(length);
        if hidden > 0 {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            out.push_str(piece);
        }
        previous = piece.chars().next_back().unwrap_or(' ');
        rest = remainder;
    }
    out
}

/// Bytes of the comment or literal that starts here; 0 when code does.
fn hidden_length(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    let unprefixed = text.trim_start_matches(['b', 'c', 'r']);
    let prefix = text.len() - unprefixed.len();
    if prefix <= 2 && unprefixed.starts_with(['"', '#']) {
        let raw = text[..prefix].ends_with('r');
        let length = if raw { raw_string(unprefixed) } else { string(unprefixed) };
        return if length > 0 { prefix + length } else { 0 };
    }
    let byte = usize::from(text.starts_with("b'"));
    match character(&text[byte..]) {
        0 => 0,
        length => byte + length,
    }
}

/// Block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn string(text: &str) -> usize {
    if !text.starts_with('"') {
        return 0;
    }
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `#"…"#` with any number of marks, after its `r`; a raw identifier is no string.
fn raw_string(text: &str) -> usize {
    let marks = text.len() - text.trim_start_matches('#').len();
    if !text[marks..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", &text[..marks]);
    text[marks + 1..].find(&end).map_or(text.len(), |at| marks + 1 + at + end.len())
}

/// `'x'` or `'\n'`, and not the lifetime `'x`.
fn character(text: &str) -> usize {
    let Some(inner) = text.strip_prefix('\'') else { return 0 };
    if let Some(escape) = inner.strip_prefix('\\') {
        let first = escape.chars().next().map_or(0, char::len_utf8);
        return escape[first..].find('\'').map_or(0, |at| 2 + first + at + 1);
    }
    let length = inner.chars().next().map_or(0, char::len_utf8);
    if inner[length..].starts_with('\'') { 1 + length + 1 } else { 0 }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blanked(text: &str) -> String {
        mask(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_disappear_and_lines_stay() {
        let text = "a // {\nb /* { /* } */ { */ c\n";
        assert_eq!(blanked(text), "a b c");
        assert_eq!(mask(text).find('c'), text.find('c'));
        assert_eq!(mask(text).lines().count(), 2);
    }

    #[test]
    fn strings_of_every_kind_disappear() {
        assert_eq!(blanked(r#"f("{ \" {", b"{", c"{")"#), "f( , , )");
        assert_eq!(blanked("g(r\"\\\", r#\"{ \" {\"#, br##\"\"# {\"##)"), "g( , , )");
        assert_eq!(blanked("\"a\nb\""), "");
        assert_eq!(mask("\"a\nb\"").lines().count(), 2);
    }

    #[test]
    fn characters_disappear_and_lifetimes_stay() {
        assert_eq!(blanked(r"('{', '\'', '\u{7b}', b'{', 'é')"), "( , , , , )");
        assert_eq!(blanked("fn f<'a>(x: &'a str, y: &'static str) {}").matches('\'').count(), 3);
    }

    #[test]
    fn raw_identifiers_and_words_ending_in_a_prefix_stay_code() {
        assert_eq!(mask("r#type { for b in c {} }"), "r#type { for b in c {} }");
        assert_eq!(blanked("concat!(\"{\") attr\"{\""), "concat!( ) attr");
    }
}
