//! Diagnostics with their source: file, line, column, the text underlined, and the fix.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use catraca_core::catalog::diagnostic::{Diagnostic, Severity};

use super::Paint;

/// One diagnostic as people read it, over several lines, without the last line's end.
pub fn render(found: &Diagnostic, paint: Paint) -> String {
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let snippet = Snippet::source(found.line_text.as_str())
        .line_start(found.line)
        .path(found.file.as_str())
        .annotation(AnnotationKind::Primary.span(underlined(found)));
    let fix = found.fix.as_deref().map(|fix| Level::HELP.with_name("fix").message(fix));
    let title = level.primary_title(found.message.as_str()).id(found.code);
    let renderer = if paint.is_on() { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[title.element(snippet).elements(fix)])
}

/// The offending bytes of the line; what goes on below it is left out.
fn underlined(found: &Diagnostic) -> Range<usize> {
    let line = &found.line_text;
    let start = line.char_indices().nth(found.column.saturating_sub(1));
    let start = start.map_or(line.len(), |(at, _)| at);
    let end = start.saturating_add(found.end.saturating_sub(found.start)).min(line.len());
    start..line.ceil_char_boundary(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line_text: &str, column: usize, bytes: usize) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: "unknown-field",
            file: "shop.toml".to_owned(),
            start: 100,
            end: 100 + bytes,
            line: 7,
            column,
            text: "windw".to_owned(),
            message: "`windw` is not known here".to_owned(),
            fix: Some("write `window`".to_owned()),
            line_text: line_text.to_owned(),
        }
    }

    #[test]
    fn place_text_and_fix_are_shown() {
        let shown = render(&found("windw = \"10 per 1m\"", 1, 5), Paint { colour: false });
        let expected = "\
error[unknown-field]: `windw` is not known here
 --> shop.toml:7:1
  |
7 | windw = \"10 per 1m\"
  | ^^^^^
  |
  = fix: write `window`";
        assert_eq!(shown, expected);
    }

    #[test]
    fn columns_count_characters_and_never_leave_the_line() {
        let in_accents = found("ação = 1", 6, 100);
        assert_eq!(underlined(&in_accents), 7..10);
        assert_eq!(underlined(&found("", 1, 3)), 0..0);
        assert_eq!(underlined(&found("a", 9, 0)), 1..1);
        assert_eq!(underlined(&found("é", 1, 1)), 0..2);
        let shown = render(&found("", 1, 0), Paint { colour: true });
        assert!(shown.contains("windw"), "{shown}");
    }
}
