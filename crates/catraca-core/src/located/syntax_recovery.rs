//! Recovery from TOML syntax errors, so that one of them does not hide all other mistakes.
//!
//! The TOML parser cannot recover by itself: after a bracket that is not closed it misreads the
//! rest of the file. So a text with errors is cut at its headers, each piece is parsed alone, and
//! broken pieces are replaced by spaces except for their header. Mistakes within a broken piece are
//! not reported, because they would be consequences of the syntax error.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::{DeTable, Error};

use super::{Report, SourceLocation};

/// Reports syntax errors; returns a text without them in which all positions are unchanged. `named`
/// are the sections whose tables have names of their own, such as `policy` in `[policy.login]`.
pub fn recover<'a>(
    report: &mut Report,
    file: usize,
    text: &'a str,
    named: &[&str],
) -> Cow<'a, str> {
    let Err(first) = DeTable::parse(text) else { return Cow::Borrowed(text) };
    let lines = LineIndex::of(text);
    let mut recovery = SyntaxRecovery { report, file, text, lines, named, has_reported: false };
    if text.len() > RECOVERY_BYTES_MAX {
        return recovery.give_up(&first);
    }
    let pieces = pieces(text);
    let mut recovered = text.as_bytes().to_vec();
    for piece in &pieces {
        if let Some(broken) = recovery.report_errors_in(piece) {
            blank(&mut recovered[broken]);
        }
    }
    // This cannot fail: whole lines were blanked, so no character was cut.
    let recovered = String::from_utf8(recovered).unwrap_or_default();
    recovery.report_conflicts(&recovered, &pieces);
    // A text that fails as a whole, but whose pieces have no error, must not be accepted.
    if recovery.has_reported { Cow::Owned(recovered) } else { recovery.give_up(&first) }
}

/// The part of a text before its first header, which contains `include`.
pub fn head(text: &str) -> &str {
    let lines = text.split_inclusive('\n').take_while(|line| !is_header(line));
    let end = lines.map(str::len).sum();
    if end > RECOVERY_BYTES_MAX { "" } else { &text[..end] }
}

/// A header line and the lines up to the next header. The first piece of a file has no header.
struct Piece {
    header: Range<usize>,
    all: Range<usize>,
}

struct SyntaxRecovery<'r, 'a> {
    report: &'r mut Report,
    file: usize,
    text: &'a str,
    lines: LineIndex,
    /// Sections whose tables have names.
    named: &'r [&'r str],
    /// Whether an error was reported.
    has_reported: bool,
}

impl<'a> SyntaxRecovery<'_, 'a> {
    /// Reports the parser's first error alone, and drops the whole text.
    fn give_up(&mut self, first: &Error) -> Cow<'a, str> {
        let (at, message) = range_and_message(first, 0);
        self.report_syntax_error(at, 0..self.text.len(), &message);
        self.report.mark_names_incomplete();
        Cow::Borrowed("")
    }

    /// Reports the syntax errors of one piece; returns the range to blank, if any.
    fn report_errors_in(&mut self, piece: &Piece) -> Option<Range<usize>> {
        let mut errors = errors_in(&self.text[piece.all.clone()], piece.all.start);
        errors.retain(|(_, message)| !is_conflict(message));
        if errors.iter().all(|(_, message)| is_local(message)) {
            // One error per line: further ones are consequences of the first.
            errors.dedup_by_key(|(at, _)| self.lines.around(at.start).start);
            for (at, message) in errors {
                let line = self.lines.around(at.start);
                self.report_syntax_error(at, line, &message);
            }
            return None;
        }
        let (at, message) = errors.into_iter().next()?;
        self.report_syntax_error(at, piece.all.clone(), &message);
        let is_header_valid = DeTable::parse(&self.text[piece.header.clone()]).is_ok();
        if !is_header_valid {
            self.report.mark_names_incomplete();
            return Some(piece.all.clone());
        }
        Some(piece.header.end..piece.all.end)
    }

    /// Reports names that are given twice. They are found in the whole text, not in single pieces.
    fn report_conflicts(&mut self, recovered: &str, pieces: &[Piece]) {
        let mut skip_until = 0;
        for (at, message) in errors_in(recovered, 0) {
            if !is_conflict(&message) || at.start < skip_until {
                continue;
            }
            let next = pieces.partition_point(|piece| piece.all.start <= at.start);
            let piece = pieces[..next].last().filter(|piece| piece.header.contains(&at.start));
            let hides = match piece {
                Some(piece) => piece.all.clone(),
                None => self.lines.around(at.start),
            };
            // Below a duplicate header each of its fields would be reported as a duplicate too.
            skip_until = piece.map_or(skip_until, |piece| piece.all.end);
            self.report_conflict(at, hides, piece.is_some(), &message);
        }
    }

    fn report_syntax_error(&mut self, at: Range<usize>, hides: Range<usize>, message: &str) {
        let at = if at.is_empty() { self.text_beside(at.start) } else { at };
        let fix = fix(message).to_owned();
        let message = format!("not TOML: {message}");
        self.add_error("syntax", &at, &hides, message, fix);
    }

    fn report_conflict(
        &mut self,
        at: Range<usize>,
        hides: Range<usize>,
        is_header: bool,
        message: &str,
    ) {
        let name = self.text.get(at.clone()).unwrap_or_default();
        let line = self.text[self.lines.around(at.start)].trim_start();
        let declares = self.named.iter().any(|section| line.starts_with(&format!("[{section}.")));
        let (code, problem, fix) = match message.starts_with("duplicate") {
            true if is_header && declares => {
                ("duplicate-name", "is declared twice", "rename one of them")
            }
            true => ("duplicate-key", "is given twice", "keep one of them"),
            false => ("syntax", message, "a name is either one value or a table of them"),
        };
        self.add_error(code, &at, &hides, format!("`{name}` {problem}"), fix.to_owned());
    }

    fn add_error(
        &mut self,
        code: &'static str,
        at: &Range<usize>,
        hides: &Range<usize>,
        message: String,
        fix: String,
    ) {
        self.has_reported = true;
        self.report.error_hiding(code, self.location(at), self.location(hides), message, fix);
    }

    /// The text to show for an empty range, where something is missing: the rest of the line, or
    /// the text before it.
    fn text_beside(&self, at: usize) -> Range<usize> {
        let rest = self.text.get(at..self.lines.around(at).end).unwrap_or_default().trim_end();
        if !rest.is_empty() {
            return at..at + rest.len();
        }
        let end = self.text.get(..at).unwrap_or_default().trim_end().len();
        let start = self.lines.around(end).start;
        let line = self.text.get(start..end).unwrap_or_default().trim_start();
        end - line.len()..end
    }

    fn location(&self, range: &Range<usize>) -> SourceLocation {
        SourceLocation { file: self.file, start: range.start, end: range.end }
    }
}

/// The parser's errors in a text that starts at `offset` of its file, sorted by position.
fn errors_in(text: &str, offset: usize) -> Vec<(Range<usize>, String)> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let mut errors: Vec<_> = errors.iter().map(|error| range_and_message(error, offset)).collect();
    errors.sort_by_key(|(at, _)| at.start);
    errors
}

fn range_and_message(error: &Error, offset: usize) -> (Range<usize>, String) {
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

/// Whether a line is the header of a table, even if its bracket is not closed. An indented header
/// must be closed, to tell it from an item of a list.
fn is_header(line: &str) -> bool {
    let body = line.trim();
    let is_closed = body.split('#').next().is_some_and(|body| body.trim_end().ends_with(']'));
    let opens = body.starts_with('[') && !body.contains([',', '=']);
    opens && (is_closed || line.starts_with('['))
}

/// The starts of the lines of a text, computed once: searching a long line for each error would
/// take quadratic time.
struct LineIndex {
    starts: Vec<usize>,
    end: usize,
}

impl LineIndex {
    fn of(text: &str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(after).collect(), end: text.len() }
    }

    /// The range of the line that contains a position, without its newline.
    fn around(&self, at: usize) -> Range<usize> {
        let next = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[..next].last().copied().unwrap_or(0);
        start..self.starts.get(next).map_or(self.end, |next| next - 1)
    }
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

/// Whether an error is about a name given twice, and not about syntax. Recognised by the texts of
/// the `toml` crate, which has no error codes.
fn is_conflict(message: &str) -> bool {
    message.starts_with("duplicate key") || message.starts_with("cannot extend value")
}

/// Whether an error concerns a single value, after which the parser recovers by itself.
fn is_local(message: &str) -> bool {
    LOCAL.iter().any(|start| message.starts_with(start))
}

fn fix(message: &str) -> &'static str {
    let found = FIXES.iter().find(|(part, _)| message.contains(part));
    found.map_or("check quotes, commas and brackets here and in the line above", |(_, fix)| fix)
}

/// The largest text with recovery. Of a larger one only the first error is reported, which bounds
/// the time that a hostile text takes.
const RECOVERY_BYTES_MAX: usize = 256 * 1024;

/// The beginnings of the parser's messages about a single value.
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

/// Fixes by a part of the parser's message; the first that is contained in it is used.
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
