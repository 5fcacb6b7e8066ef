//! The tokens of TypeScript and JavaScript, as far as literals of limits need them.
//!
//! Comments, texts, templates and regular expressions are recognised, so that a brace inside one is
//! no brace of the program. Nothing is evaluated, and any input has tokens: what is unfinished ends
//! with the line or the file.

use std::fmt;

/// A token and where it starts.
#[derive(Clone, Copy, Debug)]
pub struct SourceToken<'a> {
    pub kind: TokenKind<'a>,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind<'a> {
    /// A name or keyword.
    Word(&'a str),
    /// A number as it is written.
    Number(&'a str),
    /// A text between quotes, without them.
    Text(&'a str),
    /// A comment with its marks.
    Comment(&'a str),
    /// A template or a regular expression.
    Opaque,
    /// Any other character.
    Mark(char),
}

/// A line and a column, both from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// All tokens of a source.
pub fn tokenize(source: &str) -> Vec<SourceToken<'_>> {
    let mut lexer = Lexer { rest: source, place: Place { line: 1, column: 1 }, tokens: Vec::new() };
    while let Some(first) = lexer.rest.chars().next() {
        let place = lexer.place;
        let length = lexer.length(first);
        let text = lexer.advance(length);
        if let Some(kind) = kind_of(first, text) {
            lexer.tokens.push(SourceToken { kind, place });
        }
    }
    lexer.tokens
}

struct Lexer<'a> {
    rest: &'a str,
    place: Place,
    tokens: Vec<SourceToken<'a>>,
}

impl<'a> Lexer<'a> {
    /// The bytes of the token that starts here.
    fn length(&self, first: char) -> usize {
        let rest = self.rest;
        match first {
            '"' | '\'' => quoted_length(rest, first),
            '`' => template_length(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '/' if self.may_be_pattern() => pattern_length(rest),
            _ if is_word(first) => rest.find(|one| !is_word(one)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        }
    }

    /// After a value, `/` divides; elsewhere it starts a regular expression.
    fn may_be_pattern(&self) -> bool {
        let before = self.tokens.iter().rev().map(|token| token.kind);
        match before.into_iter().find(|kind| !matches!(kind, TokenKind::Comment(_))) {
            None => true,
            Some(TokenKind::Mark(mark)) => !matches!(mark, ')' | ']' | '}'),
            Some(TokenKind::Word(word)) => matches!(word, "return" | "typeof" | "case"),
            Some(_) => false,
        }
    }

    fn advance(&mut self, length: usize) -> &'a str {
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        for one in token.chars() {
            match one {
                '\n' => self.place = Place { line: self.place.line + 1, column: 1 },
                _ => self.place.column += 1,
            }
        }
        token
    }
}

fn kind_of(first: char, text: &str) -> Option<TokenKind<'_>> {
    match first {
        _ if first.is_whitespace() => None,
        '"' | '\'' => {
            let inside = &text[1..];
            Some(TokenKind::Text(inside.strip_suffix(first).unwrap_or(inside)))
        }
        '`' => Some(TokenKind::Opaque),
        '/' if text.starts_with("//") || text.starts_with("/*") => Some(TokenKind::Comment(text)),
        '/' if text.len() > 1 => Some(TokenKind::Opaque),
        _ if first.is_ascii_digit() => Some(TokenKind::Number(text)),
        _ if is_word(first) => Some(TokenKind::Word(text)),
        other => Some(TokenKind::Mark(other)),
    }
}

/// Letters and digits of names and numbers. A decimal point is a mark of its own.
fn is_word(one: char) -> bool {
    one.is_alphanumeric() || matches!(one, '_' | '$')
}

/// A text ends with its quote, or with the line.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, one) in rest.char_indices().skip(1) {
        match one {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if one == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A template ends with its backtick. Between `${` and `}` there may be another template.
fn template_length(rest: &str) -> usize {
    /// What is open: a template, or an expression inside one with its open braces.
    enum Open {
        Template,
        Expression(usize),
    }
    let mut open = vec![Open::Template];
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, one)) = chars.next() {
        match (open.last_mut(), one) {
            (Some(Open::Template), '\\') => drop(chars.next()),
            (Some(Open::Template), '`') => drop(open.pop()),
            (Some(Open::Template), '$') if chars.peek().is_some_and(|(_, next)| *next == '{') => {
                chars.next();
                open.push(Open::Expression(0));
            }
            (Some(Open::Expression(_)), '`') => open.push(Open::Template),
            (Some(Open::Expression(braces)), '{') => *braces += 1,
            (Some(Open::Expression(0)), '}') => drop(open.pop()),
            (Some(Open::Expression(braces)), '}') => *braces -= 1,
            _ => {}
        }
        if open.is_empty() {
            return at + one.len_utf8();
        }
    }
    rest.len()
}

/// A regular expression ends with `/` outside of `[…]`. Without one in its line, it is a division.
fn pattern_length(rest: &str) -> usize {
    // A bundle is one long line, which must not be searched again for every `/`.
    const CHARS_MAX: usize = 4_096;
    let mut escaped = false;
    let mut in_class = false;
    for (at, one) in rest.char_indices().skip(1).take(CHARS_MAX) {
        match one {
            '\n' => return 1,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return at + 1,
            _ => {}
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(source: &str) -> String {
        let marks = tokenize(source).into_iter().filter_map(|token| match token.kind {
            TokenKind::Mark(mark) => Some(mark),
            _ => None,
        });
        marks.collect()
    }

    #[test]
    fn braces_in_texts_comments_templates_and_patterns_are_none() {
        assert_eq!(marks("{ '{' \"}\" /* { */ // {\n }"), "{}");
        assert_eq!(marks("`{ ${ `}` + {} } {`;"), ";");
        assert_eq!(marks("a = /[/{\"]{2}/; b / c / d"), "=;//");
        assert_eq!(marks("'it\\'s {'{ \"open\n}"), "{}");
        assert_eq!(marks("`never closed {"), "");
    }

    #[test]
    fn places_count_lines_and_characters() {
        let tokens = tokenize("é = 1;\n  maxAttempts: 15_000");
        let places: Vec<String> = tokens.iter().map(|token| token.place.to_string()).collect();
        assert_eq!(places, ["1:1", "1:3", "1:5", "1:6", "2:3", "2:14", "2:16"]);
        assert_eq!(tokens[6].kind, TokenKind::Number("15_000"));
    }
}
