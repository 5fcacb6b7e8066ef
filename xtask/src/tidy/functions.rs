//! How long every function is.
//!
//! Counted from the line with `fn` to the closing brace. Must not care what a function does.

/// One function with a body.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of its `fn`, from 1.
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// Finds the functions in masked text; nested ones count on their own too.
pub(crate) fn functions(masked: &str) -> Vec<Function> {
    let bytes = masked.as_bytes();
    let starts = masked.match_indices("fn ").filter(|(at, _)| *at == 0 || !is_word(bytes[at - 1]));
    starts.filter_map(|(at, _)| function(masked, at)).collect()
}

/// Function pointers have no name and trait signatures no body: neither counts.
fn function(masked: &str, at: usize) -> Option<Function> {
    let after = &masked[at + 3..];
    let name: String = after.trim_start().chars().take_while(|c| is_word_char(*c)).collect();
    if name.is_empty() {
        return None;
    }
    let open = at + 3 + body(after)?;
    let end = open + closing(&masked[open..])?;
    let line = masked[..at].matches('\n').count() + 1;
    Some(Function { name, line, lines: masked[at..end].matches('\n').count() + 1 })
}

/// Where the body opens: the first brace outside parentheses and brackets, before any semicolon.
fn body(signature: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in signature.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(at),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Where the brace that opens `text` is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn is_word(byte: u8) -> bool {
    is_word_char(char::from(byte))
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, usize, usize)> {
        functions(text).into_iter().map(|f| (f.name, f.line, f.lines)).collect()
    }

    #[test]
    fn a_function_runs_from_its_name_to_its_brace() {
        let text = "\npub fn a(x: [u8; 2]) -> u8\nwhere\n{\n    if x {}\n}\nfn b() {}\n";
        assert_eq!(shown(text), [("a".to_owned(), 2, 5), ("b".to_owned(), 7, 1)]);
    }

    #[test]
    fn nested_functions_count_twice() {
        let text = "fn outer() {\n    fn inner() {\n    }\n}\n";
        assert_eq!(shown(text), [("outer".to_owned(), 1, 4), ("inner".to_owned(), 2, 2)]);
    }

    #[test]
    fn pointers_and_signatures_are_no_functions() {
        assert!(shown("type F = fn (u8); trait T { fn a(&self); } struct Bfn {}").is_empty());
    }
}
