//! How results look on a terminal: colour, tables, numbers, and diagnostics with their source.
//!
//! Colour only on a terminal and never with `NO_COLOR`. Must not decide what is shown.

pub mod diagnostic;
mod outlet;

use std::fmt;
use std::io::{IsTerminal, Write, stderr, stdout};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

pub use outlet::{Outlet, Untold};

/// A table without walls: a rule below the head is enough.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Whether and how colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    colour: bool,
}

/// A text in a style, or plain.
pub struct Painted<'a> {
    style: Option<Style>,
    text: &'a str,
}

impl Paint {
    /// As standard output wants it.
    pub fn for_stdout() -> Self {
        Self { colour: stdout().is_terminal() && is_wanted() }
    }

    /// As standard error wants it.
    pub fn for_stderr() -> Self {
        Self { colour: stderr().is_terminal() && is_wanted() }
    }

    /// Whether there is colour.
    pub const fn is_on(self) -> bool {
        self.colour
    }

    /// A heading, or a name that the eye should find.
    pub fn strong(self, text: &str) -> Painted<'_> {
        self.painted(Style::new().bold(), text)
    }

    /// What is fine.
    pub fn good(self, text: &str) -> Painted<'_> {
        self.painted(AnsiColor::Green.on_default().bold(), text)
    }

    /// What is not.
    pub fn bad(self, text: &str) -> Painted<'_> {
        self.painted(AnsiColor::Red.on_default().bold(), text)
    }

    /// What is there to be looked up, not read.
    pub fn faint(self, text: &str) -> Painted<'_> {
        self.painted(Style::new().dimmed(), text)
    }

    fn painted(self, style: Style, text: &str) -> Painted<'_> {
        Painted { style: self.colour.then_some(style), text }
    }
}

impl fmt::Display for Painted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(f, "{style}{}{style:#}", self.text),
            None => f.write_str(self.text),
        }
    }
}

/// Any text but an empty one asks for no colour.
fn is_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A line on standard error. Nobody may read it, and a server must not end for that, so unlike
/// `eprintln!` it never panics.
pub fn tell(line: fmt::Arguments<'_>) {
    let _ = stderr().lock().write_fmt(format_args!("{line}\n"));
}

/// A table with these heads; numbers go right from the given column on, up to the next text.
pub fn table(heads: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(PLAIN).set_header(heads.to_vec());
    for column in numbers {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A count with its thousands apart: `1,204`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A text from a stranger, without what would move the cursor or turn the line around.
pub fn plain(text: &str) -> String {
    const TURNS: [std::ops::RangeInclusive<char>; 3] =
        ['\u{200e}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    let turns = |c: char| TURNS.iter().any(|range| range.contains(&c));
    text.chars().map(|c| if c.is_control() || turns(c) { '\u{fffd}' } else { c }).collect()
}

/// A count and its noun, in singular or plural: `1 policy`, `3 policies`.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number as u64), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_thousands_apart() {
        let shown = [0, 7, 999, 1_000, 12_345, 1_234_567].map(count);
        assert_eq!(shown, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!(counted(1, "policy", "policies"), "1 policy");
        assert_eq!(counted(1_200, "policy", "policies"), "1,200 policies");
    }

    #[test]
    fn a_strangers_text_cannot_move_the_cursor() {
        assert_eq!(plain("a\u{1b}[2J\n\u{202e}b ç <b>"), "a\u{fffd}[2J\u{fffd}\u{fffd}b ç <b>");
    }

    #[test]
    fn plain_text_has_no_escapes_and_painted_text_ends_its_style() {
        assert_eq!(Paint { colour: false }.bad("no").to_string(), "no");
        let painted = Paint { colour: true }.bad("no").to_string();
        assert!(painted.contains("no") && painted.ends_with("\u{1b}[0m"), "{painted:?}");
    }
}
