//! Renders catalog diagnostics with their source: file, line, column, underlined text, and fix.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use catraca_core::catalog::diagnostic::{Diagnostic, Severity};

use super::Paint;

/// Renders one diagnostic over several lines, without a newline at the end.
pub fn render(diagnostic: &Diagnostic, paint: Paint) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let snippet = Snippet::source(diagnostic.line_text.as_str())
        .line_start(diagnostic.line)
        .path(diagnostic.file.as_str())
        .annotation(AnnotationKind::Primary.span(underlined_range(diagnostic)));
    let fix = diagnostic.fix.as_deref().map(|fix| Level::HELP.with_name("fix").message(fix));
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code);
    let renderer = if paint.is_on() { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[title.element(snippet).elements(fix)])
}

/// The offending bytes of the first line; a span over several lines is cut at its end.
fn underlined_range(diagnostic: &Diagnostic) -> Range<usize> {
    let line = &diagnostic.line_text;
    // `column` counts characters from one; the renderer needs byte offsets in the line.
    let start = line.char_indices().nth(diagnostic.column.saturating_sub(1));
    let start = start.map_or(line.len(), |(at, _)| at);
    let end = start.saturating_add(diagnostic.end.saturating_sub(diagnostic.start)).min(line.len());
    start..line.ceil_char_boundary(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(line_text: &str, column: usize, bytes: usize) -> Diagnostic {
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
    fn position_text_and_fix_are_rendered() {
        let text = render(&diagnostic("windw = \"10 per 1m\"", 1, 5), Paint { colour: false });
        let expected = "\
error[unknown-field]: `windw` is not known here
 --> shop.toml:7:1
  |
7 | windw = \"10 per 1m\"
  | ^^^^^
  |
  = fix: write `window`";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_count_characters_and_never_leave_the_line() {
        let in_accents = diagnostic("ação = 1", 6, 100);
        assert_eq!(underlined_range(&in_accents), 7..10);
        assert_eq!(underlined_range(&diagnostic("", 1, 3)), 0..0);
        assert_eq!(underlined_range(&diagnostic("a", 9, 0)), 1..1);
        assert_eq!(underlined_range(&diagnostic("é", 1, 1)), 0..2);
        let text = render(&diagnostic("", 1, 0), Paint { colour: true });
        assert!(text.contains("windw"), "{text}");
    }
}
