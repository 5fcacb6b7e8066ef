//! Terminal output: colour, tables, numbers, sanitized text, and diagnostics with their source.
//!
//! Colour is used only on a terminal, and never with `NO_COLOR`.

pub mod diagnostic;
mod stdout_pipe;

use std::fmt;
use std::io::{IsTerminal, Write, stderr, stdout};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

pub use catraca_replay::text::{count, count_noun, sanitize};
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_no_escapes_and_painted_text_ends_its_style() {
        assert_eq!(Paint { colour: false }.bad("no").to_string(), "no");
        let painted = Paint { colour: true }.bad("no").to_string();
        assert!(painted.contains("no") && painted.ends_with("\u{1b}[0m"), "{painted:?}");
    }
}
