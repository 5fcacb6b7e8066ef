//! Terminal output: colour, tables, numbers, sanitized text, and diagnostics with their source.
//!
//! Colour is used only on a terminal, and never with `NO_COLOR`.

pub mod diagnostic;
mod stdout_pipe;

use std::fmt;
use std::io::{IsTerminal, Write, stderr, stdout};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

pub use stdout_pipe::{StdoutError, StdoutPipe};

/// A table without borders, with a rule below the head.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Whether and how colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    colour: bool,
}

/// A text with an optional style.
pub struct StyledText<'a> {
    style: Option<Style>,
    text: &'a str,
}

impl Paint {
    /// Colours for standard output.
    pub fn for_stdout() -> Self {
        Self { colour: stdout().is_terminal() && is_colour_allowed() }
    }

    /// Colours for standard error.
    pub fn for_stderr() -> Self {
        Self { colour: stderr().is_terminal() && is_colour_allowed() }
    }

    /// Whether colours are used.
    pub const fn is_on(self) -> bool {
        self.colour
    }

    /// A heading, or an important name.
    pub fn strong(self, text: &str) -> StyledText<'_> {
        self.with_style(Style::new().bold(), text)
    }

    /// A good result.
    pub fn good(self, text: &str) -> StyledText<'_> {
        self.with_style(AnsiColor::Green.on_default().bold(), text)
    }

    /// A bad result.
    pub fn bad(self, text: &str) -> StyledText<'_> {
        self.with_style(AnsiColor::Red.on_default().bold(), text)
    }

    /// Secondary text.
    pub fn faint(self, text: &str) -> StyledText<'_> {
        self.with_style(Style::new().dimmed(), text)
    }

    fn with_style(self, style: Style, text: &str) -> StyledText<'_> {
        StyledText { style: self.colour.then_some(style), text }
    }
}

impl fmt::Display for StyledText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(f, "{style}{}{style:#}", self.text),
            None => f.write_str(self.text),
        }
    }
}

/// `NO_COLOR` with any value but the empty one disables colour (no-color.org).
fn is_colour_allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes a line to standard error. Unlike `eprintln!` it does not panic when standard error is
/// closed, because a server must not stop for that.
pub fn eprint_line(line: fmt::Arguments<'_>) {
    let _ = stderr().lock().write_fmt(format_args!("{line}\n"));
}

/// A table with these heads; the columns in `numbers` are aligned to the right.
pub fn new_table(heads: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(PLAIN).set_header(heads.to_vec());
    for column in numbers {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A number with thousands separators: `1,204`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Replaces control characters and bidirectional overrides in untrusted text, which could move
/// the cursor or reorder the line.
pub fn sanitize(text: &str) -> String {
    const BIDI_CONTROLS: [std::ops::RangeInclusive<char>; 3] =
        ['\u{200e}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    let is_bidi_control = |c: char| BIDI_CONTROLS.iter().any(|range| range.contains(&c));
    text.chars()
        .map(|c| if c.is_control() || is_bidi_control(c) { '\u{fffd}' } else { c })
        .collect()
}

/// A number and its noun, in singular or plural: `1 policy`, `3 policies`.
pub fn count_noun(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number as u64), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_thousands_separators() {
        let texts = [0, 7, 999, 1_000, 12_345, 1_234_567].map(count);
        assert_eq!(texts, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!(count_noun(1, "policy", "policies"), "1 policy");
        assert_eq!(count_noun(1_200, "policy", "policies"), "1,200 policies");
    }

    #[test]
    fn untrusted_text_cannot_move_the_cursor() {
        assert_eq!(sanitize("a\u{1b}[2J\n\u{202e}b ç <b>"), "a\u{fffd}[2J\u{fffd}\u{fffd}b ç <b>");
    }

    #[test]
    fn plain_text_has_no_escapes_and_painted_text_ends_its_style() {
        assert_eq!(Paint { colour: false }.bad("no").to_string(), "no");
        let painted = Paint { colour: true }.bad("no").to_string();
        assert!(painted.contains("no") && painted.ends_with("\u{1b}[0m"), "{painted:?}");
    }
}
