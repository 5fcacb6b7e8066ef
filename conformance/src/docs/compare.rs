//! Whether a command did what the document shows.
//!
//! Output is compared line by line; `...` alone on a line matches any lines. Must not forgive
//! anything else.

use super::markdown::Command;
use super::session::Reply;

/// Matches any number of lines, also none.
const ANY: &str = "...";

/// What is wrong, beginning with the line number; none when all is as shown.
pub(crate) fn problem(command: &Command, reply: &Reply, announced: bool) -> Option<String> {
    let place = format!("{}: $ {}", command.line, command.text);
    let Some(status) = reply.status else { return Some(format!("{place}\n  did not run")) };
    let expected: Vec<&str> =
        trim_blank_lines(command.expected.iter().map(String::as_str).collect());
    let got: Vec<&str> = trim_blank_lines(reply.output.lines().collect());
    if !matches(&expected, &got) {
        return Some(format!(
            "{place}\n{}{}",
            prefix_lines('-', &expected),
            prefix_lines('+', &got)
        ));
    }
    let hint = "show it with `$ echo $?` in the next line, or make the command succeed";
    (status != 0 && !announced).then(|| format!("{place}\n  exits {status}: {hint}"))
}

fn matches(expected: &[&str], got: &[&str]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((&ANY, rest)) => (0..=got.len()).any(|skip| matches(rest, &got[skip..])),
        Some((line, rest)) => got.first() == Some(line) && matches(rest, &got[1..]),
    }
}

/// Blank lines at the end are layout, not output.
fn trim_blank_lines(mut lines: Vec<&str>) -> Vec<&str> {
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

fn prefix_lines(sign: char, lines: &[&str]) -> String {
    lines.iter().map(|line| format!("  {sign}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(expected: &str, output: &str, status: i32, announced: bool) -> Option<String> {
        let expected = expected.lines().map(str::to_owned).collect();
        let command = Command { line: 7, text: "run".to_owned(), expected };
        problem(&command, &Reply { output: output.to_owned(), status: Some(status) }, announced)
    }

    #[test]
    fn equal_output_is_fine_and_trailing_blank_lines_are_layout() {
        assert_eq!(judge("a\nb\n\n", "a\nb\n", 0, false), None);
        assert_eq!(judge("", "", 0, false), None);
    }

    #[test]
    fn any_difference_is_shown_with_both_sides() {
        let problem = judge("a\nb", "a\nc\n", 0, false).unwrap();
        assert!(problem.starts_with("7: $ run\n"), "{problem}");
        assert!(problem.contains("-b") && problem.contains("+c"), "{problem}");
        assert!(judge("", "a\n", 0, false).is_some());
        assert!(judge("a", "", 0, false).is_some());
        assert!(judge("a\n\nb", "a\nb", 0, false).is_some());
        assert!(judge("a", " a", 0, false).is_some());
    }

    #[test]
    fn dots_alone_stand_for_any_lines() {
        assert_eq!(judge("...", "", 0, false), None);
        assert_eq!(judge("a\n...\nd", "a\nb\nc\nd", 0, false), None);
        assert_eq!(judge("...\nb\n...\nb", "b\na\nb", 0, false), None);
        assert!(judge("a\n...\nd", "a\nb\nc", 0, false).is_some());
        assert!(judge("a ...", "a b", 0, false).is_some());
    }

    #[test]
    fn a_failure_must_be_announced() {
        assert!(judge("a", "a", 1, false).is_some_and(|problem| problem.contains("exits 1")));
        assert_eq!(judge("a", "a", 1, true), None);
    }

    #[test]
    fn a_command_that_never_ran_is_a_problem() {
        let command = Command { line: 1, text: "x".to_owned(), expected: Vec::new() };
        let reply = Reply { output: String::new(), status: None };
        assert!(problem(&command, &reply, true).is_some());
    }
}
