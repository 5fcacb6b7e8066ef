//! Mends text that is not TOML, so that one slip does not hide every other mistake.
//!
//! The parser alone loses its footing: a bracket left open swallows the rest of the file. So damaged
//! text is cut at its headers, each piece is judged alone, broken pieces are blanked but for their
//! header, and whatever else would be said about them is not. Must not judge what values mean.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::{DeTable, Error};

use super::report::{Place, Report};

/// The text to go on with: as long as the original, position by position.
pub(super) fn mend<'a>(report: &mut Report, file: usize, text: &'a str) -> Cow<'a, str> {
    if DeTable::parse(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let mut desk = Desk { report, file, text };
    let pieces = pieces(text);
    let mut mended = text.as_bytes().to_vec();
    for piece in &pieces {
        if let Some(lost) = desk.broken(piece) {
            blank(&mut mended[lost]);
        }
    }
    // Blanking replaces whole pieces, which start and end at lines.
    let mended = String::from_utf8(mended).unwrap_or_default();
    desk.conflicts(&mended, &pieces);
    Cow::Owned(mended)
}

/// A header line and what follows it; the first piece of a file may have no header.
struct Piece {
    header: Range<usize>,
    all: Range<usize>,
}

struct Desk<'r, 'a> {
    report: &'r mut Report,
    file: usize,
    text: &'a str,
}

impl Desk<'_, '_> {
    /// Reports what is broken in a piece alone; gives the part to blank.
    fn broken(&mut self, piece: &Piece) -> Option<Range<usize>> {
        let mut errors = errors_in(&self.text[piece.all.clone()], piece.all.start);
        errors.retain(|(_, message)| !is_conflict(message));
        if errors.iter().all(|(_, message)| is_local(message)) {
            errors.dedup_by_key(|(at, _)| line_of(self.text, at.start).start);
            for (at, message) in errors {
                let line = line_of(self.text, at.start);
                self.syntax(at, line, &message);
            }
            return None;
        }
        let (at, message) = errors.into_iter().next()?;
        self.syntax(at, piece.all.clone(), &message);
        let named = DeTable::parse(&self.text[piece.header.clone()]).is_ok();
        if !named {
            self.report.lose_names();
            return Some(piece.all.clone());
        }
        Some(piece.header.end..piece.all.end)
    }

    /// Reports names that are given twice, which only the whole text shows.
    fn conflicts(&mut self, mended: &str, pieces: &[Piece]) {
        let mut closed = 0;
        for (at, message) in errors_in(mended, 0) {
            if !is_conflict(&message) || at.start < closed {
                continue;
            }
            let piece = pieces.iter().find(|piece| piece.header.contains(&at.start));
            let shadow = match piece {
                Some(piece) => piece.all.clone(),
                None => line_of(self.text, at.start),
            };
            // Below a header that is given twice, every repeated field would be named again.
            closed = piece.map_or(closed, |piece| piece.all.end);
            self.conflict(at, shadow, piece.is_some(), &message);
        }
    }

    fn syntax(&mut self, at: Range<usize>, shadow: Range<usize>, message: &str) {
        let at = if at.is_empty() { around(self.text, at.start) } else { at };
        let says = (format!("not TOML: {message}"), fix(message).to_owned());
        self.report.damage("syntax", self.place(&at), self.place(&shadow), says);
    }

    fn conflict(&mut self, at: Range<usize>, shadow: Range<usize>, header: bool, message: &str) {
        let name = self.text.get(at.clone()).unwrap_or_default();
        let line = self.text[line_of(self.text, at.start)].trim_start();
        let declares = ["[policy.", "[gate."].iter().any(|start| line.starts_with(start));
        let (code, says, fix) = match message.starts_with("duplicate") {
            true if header && declares => {
                ("duplicate-name", "is declared twice", "rename one of them")
            }
            true => ("duplicate-key", "is given twice", "keep one of them"),
            false => ("syntax", message, "a name is either one value or a table of them"),
        };
        let says = (format!("`{name}` {says}"), fix.to_owned());
        self.report.damage(code, self.place(&at), self.place(&shadow), says);
    }

    fn place(&self, range: &Range<usize>) -> Place {
        Place { file: self.file, start: range.start, end: range.end }
    }
}

/// What the parser says about a text that starts at `offset` of its file, in order.
fn errors_in(text: &str, offset: usize) -> Vec<(Range<usize>, String)> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let located = |error: &Error| {
        let span = error.span().unwrap_or(0..0);
        (span.start + offset..span.end + offset, error.message().to_owned())
    };
    let mut errors: Vec<_> = errors.iter().map(located).collect();
    errors.sort_by_key(|(at, _)| at.start);
    errors
}

/// Cuts a text at the lines that are headers.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = vec![Piece { header: 0..0, all: 0..text.len() }];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if is_header(line) {
            if let Some(last) = pieces.last_mut() {
                last.all.end = start;
            }
            pieces.push(Piece { header: start..start + line.len(), all: start..text.len() });
        }
        start += line.len();
    }
    pieces
}

/// A line that opens a table, closed or not; an indented one must be closed, to tell it from a list's item.
fn is_header(line: &str) -> bool {
    let body = line.trim();
    let closed = body.split('#').next().is_some_and(|body| body.trim_end().ends_with(']'));
    let opens = body.starts_with('[') && !body.contains([',', '=']);
    opens && (closed || line.starts_with('['))
}

fn line_of(text: &str, at: usize) -> Range<usize> {
    let at = at.min(text.len());
    let bytes = text.as_bytes();
    let start = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end =
        bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end);
    start..end
}

/// What stands where something is missing: the rest of the line, else what comes before.
fn around(text: &str, at: usize) -> Range<usize> {
    let rest = text.get(at..line_of(text, at).end).unwrap_or_default().trim_end();
    if !rest.is_empty() {
        return at..at + rest.len();
    }
    let end = text.get(..at).unwrap_or_default().trim_end().len();
    let line = text.get(line_of(text, end).start..end).unwrap_or_default().trim_start();
    end - line.len()..end
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

/// Whether the parser complains of names given twice, and not of the text.
fn is_conflict(message: &str) -> bool {
    message.starts_with("duplicate key") || message.starts_with("cannot extend value")
}

/// Whether a mistake spoils one value alone: the parser goes on after it as if it were right.
fn is_local(message: &str) -> bool {
    LOCAL.iter().any(|start| message.starts_with(start))
}

fn fix(message: &str) -> &'static str {
    let found = FIXES.iter().find(|(part, _)| message.contains(part));
    found.map_or("check quotes, commas and brackets here and in the line above", |(_, fix)| fix)
}

const LOCAL: [&str; 8] = [
    "string values must be quoted",
    "unexpected leading zero",
    "`_` may only go between digits",
    "integers with a radix",
    "radix must be lowercase",
    "redundant",
    "unexpected sign",
    "invalid basic string",
];

const FIXES: [(&str, &str); 9] = [
    ("must be quoted", "put the text in quotes"),
    ("leading zero", "write the number without leading zeros"),
    ("invalid basic string", "close the text with a quote"),
    ("array elements", "close the list with `]`, or put a comma between its items"),
    ("unclosed array table", "close the header with `]]`"),
    ("unclosed array", "close the list with `]`"),
    ("unclosed table", "close the header with `]`"),
    ("inline table", "close the table with `}`, or put a comma between its fields"),
    ("value", "write name = value"),
];
