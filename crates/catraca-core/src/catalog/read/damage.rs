//! Mends text that is not TOML, so that one slip does not hide every other mistake.
//!
//! The parser alone loses its footing: a bracket left open swallows the rest of the file. So
//! damaged text is cut at its headers, each piece is judged alone, broken pieces are blanked but
//! for their header, and whatever else would be said about them is not. Must not judge what values
//! mean.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::{DeTable, Error};

use super::report::{Place, Report};

/// The text to go on with: as long as the original, position by position.
pub(super) fn mend<'a>(report: &mut Report, file: usize, text: &'a str) -> Cow<'a, str> {
    let Err(first) = DeTable::parse(text) else { return Cow::Borrowed(text) };
    let mut desk = Desk { report, file, text, lines: Lines::of(text), told: false };
    if text.len() > MENDED_MAX {
        return desk.give_up(&first);
    }
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
    if desk.told { Cow::Owned(mended) } else { desk.give_up(&first) }
}

/// What comes before the first header, where a file says what it includes.
pub(super) fn head(text: &str) -> &str {
    let lines = text.split_inclusive('\n').take_while(|line| !is_header(line));
    let end = lines.map(str::len).sum();
    if end > MENDED_MAX { "" } else { &text[..end] }
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
    lines: Lines,
    /// Whether anything was reported: damage must never pass in silence.
    told: bool,
}

impl<'a> Desk<'_, 'a> {
    /// Damage that cannot be mended, or whose echoes would be too many: the first is told.
    fn give_up(&mut self, first: &Error) -> Cow<'a, str> {
        let (at, message) = located(first, 0);
        self.syntax(at, 0..self.text.len(), &message);
        self.report.lose_names();
        Cow::Borrowed("")
    }

    /// Reports what is broken in a piece alone; gives the part to blank.
    fn broken(&mut self, piece: &Piece) -> Option<Range<usize>> {
        let mut errors = errors_in(&self.text[piece.all.clone()], piece.all.start);
        errors.retain(|(_, message)| !is_conflict(message));
        if errors.iter().all(|(_, message)| is_local(message)) {
            errors.dedup_by_key(|(at, _)| self.lines.around(at.start).start);
            for (at, message) in errors {
                let line = self.lines.around(at.start);
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
            let next = pieces.partition_point(|piece| piece.all.start <= at.start);
            let piece = pieces[..next].last().filter(|piece| piece.header.contains(&at.start));
            let shadow = match piece {
                Some(piece) => piece.all.clone(),
                None => self.lines.around(at.start),
            };
            // Below a header that is given twice, every repeated field would be named again.
            closed = piece.map_or(closed, |piece| piece.all.end);
            self.conflict(at, shadow, piece.is_some(), &message);
        }
    }

    fn syntax(&mut self, at: Range<usize>, shadow: Range<usize>, message: &str) {
        let at = if at.is_empty() { self.beside(at.start) } else { at };
        let says = (format!("not TOML: {message}"), fix(message).to_owned());
        self.told = true;
        self.report.damage("syntax", self.place(&at), self.place(&shadow), says);
    }

    fn conflict(&mut self, at: Range<usize>, shadow: Range<usize>, header: bool, message: &str) {
        let name = self.text.get(at.clone()).unwrap_or_default();
        let line = self.text[self.lines.around(at.start)].trim_start();
        let declares = ["[policy.", "[gate."].iter().any(|start| line.starts_with(start));
        let (code, says, fix) = match message.starts_with("duplicate") {
            true if header && declares => {
                ("duplicate-name", "is declared twice", "rename one of them")
            }
            true => ("duplicate-key", "is given twice", "keep one of them"),
            false => ("syntax", message, "a name is either one value or a table of them"),
        };
        let says = (format!("`{name}` {says}"), fix.to_owned());
        self.told = true;
        self.report.damage(code, self.place(&at), self.place(&shadow), says);
    }

    /// What stands where something is missing: the rest of the line, else what comes before.
    fn beside(&self, at: usize) -> Range<usize> {
        let rest = self.text.get(at..self.lines.around(at).end).unwrap_or_default().trim_end();
        if !rest.is_empty() {
            return at..at + rest.len();
        }
        let end = self.text.get(..at).unwrap_or_default().trim_end().len();
        let start = self.lines.around(end).start;
        let line = self.text.get(start..end).unwrap_or_default().trim_start();
        end - line.len()..end
    }

    fn place(&self, range: &Range<usize>) -> Place {
        Place { file: self.file, start: range.start, end: range.end }
    }
}

/// What the parser says about a text that starts at `offset` of its file, in order.
fn errors_in(text: &str, offset: usize) -> Vec<(Range<usize>, String)> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let mut errors: Vec<_> = errors.iter().map(|error| located(error, offset)).collect();
    errors.sort_by_key(|(at, _)| at.start);
    errors
}

fn located(error: &Error, offset: usize) -> (Range<usize>, String) {
    let span = error.span().unwrap_or(0..0);
    (span.start + offset..span.end + offset, error.message().to_owned())
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

/// A line that opens a table, closed or not; an indented one must be closed, to tell it from
/// an item of a list.
fn is_header(line: &str) -> bool {
    let body = line.trim();
    let closed = body.split('#').next().is_some_and(|body| body.trim_end().ends_with(']'));
    let opens = body.starts_with('[') && !body.contains([',', '=']);
    opens && (closed || line.starts_with('['))
}

/// Where the lines of a text are, found once: a line may be as long as the text.
struct Lines {
    starts: Vec<usize>,
    end: usize,
}

impl Lines {
    fn of(text: &str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(after).collect(), end: text.len() }
    }

    /// The line around a position, without its end.
    fn around(&self, at: usize) -> Range<usize> {
        let next = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[..next].last().copied().unwrap_or(0);
        start..self.starts.get(next).map_or(self.end, |next| next - 1)
    }
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

/// The largest text that is mended; a damaged one above it is told its first mistake only.
const MENDED_MAX: usize = 256 * 1024;

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
