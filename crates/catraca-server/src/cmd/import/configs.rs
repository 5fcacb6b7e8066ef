//! Reads limits that are written as literals in TypeScript:
//!
//! ```text
//! export const NOVA_ACAO: RateLimitConfig = {
//!   action: "nova_acao", maxAttempts: 20, windowMinutes: 5, blockDurationMinutes: 15,
//! };
//! export const RATE_LIMIT_CONFIGS = { NOVA_ACAO, OUTRA: { action: "outra", … } } as const;
//! ```
//!
//! Numbers may be products, such as `24 * 60`. A field with another name is an error.

use std::collections::HashMap;
use std::fmt;

use super::tokens::{Place, SourceToken, TokenKind, tokenize};

/// The fields of a config.
pub const FIELDS: [&str; 4] = ["action", "maxAttempts", "windowMinutes", "blockDurationMinutes"];

/// One limit of the source, in its own units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// The name of the constant, such as `NOVA_ACAO`.
    pub name: String,
    pub action: String,
    pub attempts: u64,
    pub window_minutes: u64,
    /// Zero for none.
    pub block_minutes: u64,
    /// The comment above it, in one line.
    pub about: Option<String>,
    place: Place,
}

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceError {
    pub place: Place,
    pub message: String,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for SourceError {}

type SourceResult<T> = Result<T, SourceError>;

/// All configs of a source, in its order.
pub fn read(source: &str) -> SourceResult<Vec<SourceConfig>> {
    let mut reader = Reader::new(source);
    while let Some(token) = reader.next() {
        if token.kind == TokenKind::Word("const") {
            reader.declaration()?;
        }
    }
    reader.check_references()?;
    refuse_repeated(&reader.configs)?;
    Ok(reader.configs)
}

fn refuse_repeated(configs: &[SourceConfig]) -> SourceResult<()> {
    let mut places = HashMap::new();
    for config in configs {
        if let Some(earlier) = places.insert(&config.action, config.place) {
            let message = format!("the action {:?} is at {earlier} already", config.action);
            return Err(SourceError { place: config.place, message });
        }
    }
    Ok(())
}

struct Reader<'a> {
    tokens: Vec<SourceToken<'a>>,
    at: usize,
    /// The place of the last token.
    end: Place,
    /// The comment after the last other token.
    comment: Option<&'a str>,
    configs: Vec<SourceConfig>,
    /// The names that maps list.
    references: Vec<(&'a str, Place)>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str) -> Self {
        let tokens = tokenize(source);
        let end = tokens.last().map_or(Place { line: 1, column: 1 }, |token| token.place);
        let configs = Vec::new();
        Self { tokens, at: 0, end, comment: None, configs, references: Vec::new() }
    }

    /// The next token that is no comment.
    fn peek(&self) -> Option<SourceToken<'a>> {
        let rest = self.tokens[self.at..].iter();
        rest.copied().find(|token| !matches!(token.kind, TokenKind::Comment(_)))
    }

    fn next(&mut self) -> Option<SourceToken<'a>> {
        while let Some(token) = self.tokens.get(self.at).copied() {
            self.at += 1;
            match token.kind {
                TokenKind::Comment(text) => self.comment = Some(text),
                _ => return Some(token),
            }
        }
        None
    }

    fn next_or_end(&mut self, wanted: &str) -> SourceResult<SourceToken<'a>> {
        let message = || format!("the file ends where {wanted} should be");
        self.next().ok_or_else(|| SourceError { place: self.end, message: message() })
    }

    fn expect(&mut self, mark: char) -> SourceResult<()> {
        let token = self.next_or_end(&format!("`{mark}`"))?;
        match token.kind {
            TokenKind::Mark(found) if found == mark => Ok(()),
            _ => Err(wrong(token, &format!("`{mark}`"))),
        }
    }

    /// Whether the next token is this mark; takes it if so.
    fn takes(&mut self, mark: char) -> bool {
        let is_next = self.peek().is_some_and(|token| token.kind == TokenKind::Mark(mark));
        if is_next {
            self.next();
        }
        is_next
    }

    /// `NAME: Type = { … }` after `const`; other declarations are left out.
    fn declaration(&mut self) -> SourceResult<()> {
        let about = self.comment.take();
        if self.peek().is_some_and(|token| token.kind == TokenKind::Word("const")) {
            // That of `as const`.
            return Ok(());
        }
        let Some(SourceToken { kind: TokenKind::Word(name), place }) = self.next() else {
            return Ok(());
        };
        while let Some(token) = self.peek() {
            match token.kind {
                TokenKind::Mark('=') => break,
                TokenKind::Mark(';' | '{' | '(') | TokenKind::Word("const") => return Ok(()),
                _ => drop(self.next()),
            }
        }
        if !self.takes('=') || !self.takes('{') {
            return Ok(());
        }
        match self.object_kind() {
            ObjectKind::Config => {
                let config = self.config(name, place, about)?;
                self.configs.push(config);
                Ok(())
            }
            ObjectKind::Map => self.map(),
            ObjectKind::Other => Ok(()),
        }
    }

    /// What an object is, by its entries and the names of its fields. Takes no token.
    fn object_kind(&self) -> ObjectKind {
        let mut depth = 0_usize;
        let mut has_name = false;
        let mut has_nested = false;
        let mut is_after_colon = false;
        let mut names_before_marks = Vec::new();
        let mut before = None;
        for token in &self.tokens[self.at..] {
            match token.kind {
                TokenKind::Comment(_) => continue,
                TokenKind::Mark('}') if depth == 0 => break,
                TokenKind::Mark('{' | '[' | '(') => {
                    has_nested |= depth == 0 && is_after_colon;
                    depth += 1;
                }
                TokenKind::Mark('}' | ']' | ')') => depth = depth.saturating_sub(1),
                TokenKind::Mark(mark @ (':' | ',')) if depth == 0 => {
                    names_before_marks.push((before, mark));
                }
                _ => {}
            }
            let name = match token.kind {
                TokenKind::Word(name) | TokenKind::Text(name) => Some(name),
                _ => None,
            };
            has_name |= depth == 0 && name.is_some();
            is_after_colon = token.kind == TokenKind::Mark(':');
            before = name;
        }
        let is_field = |(name, mark): &(Option<&str>, char)| {
            *mark == ':' && name.is_some_and(|name| FIELDS.contains(&name))
        };
        if names_before_marks.iter().any(is_field) {
            return ObjectKind::Config;
        }
        let is_shorthand = names_before_marks.iter().all(|(_, mark)| *mark == ',');
        match has_name && (has_nested || is_shorthand) {
            true => ObjectKind::Map,
            false => ObjectKind::Other,
        }
    }

    /// The entries of a map: `NAME`, `NAME: OTHER` or `NAME: { … }`.
    fn map(&mut self) -> SourceResult<()> {
        while !self.takes('}') {
            let token = self.next_or_end("a name or `}`")?;
            let (TokenKind::Word(name) | TokenKind::Text(name)) = token.kind else {
                return Err(wrong(token, "the name of a config"));
            };
            let about = self.comment.take();
            if !self.takes(':') {
                self.references.push((name, token.place));
            } else if self.takes('{') {
                let config = self.config(name, token.place, about)?;
                self.configs.push(config);
            } else {
                let value = self.next_or_end("a config")?;
                let TokenKind::Word(other) = value.kind else {
                    return Err(wrong(value, "a config, as a name or as `{ … }`"));
                };
                self.references.push((other, value.place));
            }
            if !self.takes(',') {
                return self.expect('}');
            }
        }
        Ok(())
    }

    /// The fields of a config, after its `{`.
    fn config(
        &mut self,
        name: &str,
        place: Place,
        about: Option<&str>,
    ) -> SourceResult<SourceConfig> {
        let mut action = None;
        let mut numbers = [None; 3];
        while !self.takes('}') {
            let field = self.next_or_end("a field or `}`")?;
            let (TokenKind::Word(key) | TokenKind::Text(key)) = field.kind else {
                return Err(wrong(field, "a field"));
            };
            let Some(index) = FIELDS.iter().position(|own| *own == key) else {
                let message = format!("unknown field `{key}`: a config has {}", FIELDS.join(", "));
                return Err(SourceError { place: field.place, message });
            };
            self.expect(':')?;
            let is_second = match index.checked_sub(1) {
                None => action.replace(self.text()?).is_some(),
                Some(number) => numbers[number].replace(self.product()?).is_some(),
            };
            if is_second {
                let message = format!("the field `{key}` is there twice");
                return Err(SourceError { place: field.place, message });
            }
            if !self.takes(',') {
                self.expect('}')?;
                break;
            }
        }
        let missing = |index: usize| {
            let message = format!("{name} has no `{}`", FIELDS[index]);
            SourceError { place, message }
        };
        let [attempts, window, block] = numbers;
        Ok(SourceConfig {
            name: name.to_owned(),
            action: action.ok_or_else(|| missing(0))?.to_owned(),
            attempts: attempts.ok_or_else(|| missing(1))?,
            window_minutes: window.ok_or_else(|| missing(2))?,
            block_minutes: block.ok_or_else(|| missing(3))?,
            about: about.map(comment_text).filter(|text| !text.is_empty()),
            place,
        })
    }

    fn text(&mut self) -> SourceResult<&'a str> {
        let token = self.next_or_end("a text")?;
        match token.kind {
            TokenKind::Text(text) if !text.contains('\\') => Ok(text),
            _ => Err(wrong(token, "a text between quotes")),
        }
    }

    /// A whole number, or a product of whole numbers.
    fn product(&mut self) -> SourceResult<u64> {
        let mut product: u64 = 1;
        loop {
            let token = self.next_or_end("a number")?;
            let TokenKind::Number(digits) = token.kind else {
                return Err(wrong(token, "a number"));
            };
            let is_fraction = self.peek().is_some_and(|token| token.kind == TokenKind::Mark('.'));
            let number = digits.replace('_', "").parse::<u64>().ok().filter(|_| !is_fraction);
            let number = number.and_then(|number| product.checked_mul(number));
            product = number.ok_or_else(|| wrong(token, "a whole number"))?;
            if !self.takes('*') {
                return Ok(product);
            }
        }
    }

    fn check_references(&self) -> SourceResult<()> {
        let is_known = |name: &str| self.configs.iter().any(|config| config.name == name);
        match self.references.iter().find(|(name, _)| !is_known(name)) {
            None => Ok(()),
            Some((name, place)) => {
                let message = format!("there is no config `{name}` in this file");
                Err(SourceError { place: *place, message })
            }
        }
    }
}

enum ObjectKind {
    /// Has a field of a config.
    Config,
    /// Lists configs.
    Map,
    /// Something else of the program.
    Other,
}

fn wrong(token: SourceToken<'_>, wanted: &str) -> SourceError {
    let found = match token.kind {
        TokenKind::Word(text) | TokenKind::Number(text) => format!("`{text}`"),
        TokenKind::Text(text) => format!("{text:?}"),
        TokenKind::Mark(mark) => format!("`{mark}`"),
        TokenKind::Opaque | TokenKind::Comment(_) => "an expression".to_owned(),
    };
    SourceError { place: token.place, message: format!("{found} is not {wanted}") }
}

/// A comment without its marks, in one line.
fn comment_text(comment: &str) -> String {
    let inside = comment.trim_start_matches(['/', '*']).trim_end_matches(['/', '*']);
    let lines = inside.lines().map(|line| line.trim().trim_start_matches('*').trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
