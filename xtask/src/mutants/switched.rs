//! A source file with several mutants, each in a branch of its function.
//!
//! A function becomes `if enabled(1) { mutated } else if enabled(2) { mutated } else { body }`, so
//! that all mutants are built at once. Must not parse Rust beyond braces.

use std::ops::Range;

use anyhow::{Context, Result, ensure};

use super::mutant::{Mutant, Position};
use crate::change_switch;
use crate::tidy::mask;

/// The text with all mutants, and where in it each of them is.
#[derive(Debug, Default)]
pub(super) struct SwitchedText {
    pub(super) text: String,
    /// The number of a mutant and the bytes of its branch.
    pub(super) branches: Vec<(usize, Range<usize>)>,
}

/// Adds mutants to the text of their file. The number of a mutant is what enables it.
pub(super) fn switch(original: &str, mutants: &[(usize, &Mutant)]) -> Result<SwitchedText> {
    let text = SourceText::new(original);
    let mut mutants = mutants.to_vec();
    mutants.sort_by_key(|(_, mutant)| mutant.function.start);
    let mut switched = SwitchedText::default();
    let mut written = 0;
    for group in mutants.chunk_by(|(_, one), (_, next)| one.function == next.function) {
        let body = text.body(group[0].1)?;
        ensure!(written <= body.start, "{}: functions overlap", group[0].1.name);
        switched.text.push_str(&text.slice(written..body.start));
        for (number, mutant) in group {
            let start = switched.text.len();
            let condition = change_switch::condition(*number);
            let mutated = text.mutate(body.clone(), mutant)?;
            switched.text.push_str(&format!("if {condition} {{ {mutated}\n}}"));
            switched.branches.push((*number, start..switched.text.len()));
            switched.text.push_str(" else ");
        }
        switched.text.push_str(&format!("{{ {}\n}}\n", text.slice(body.clone())));
        written = body.end;
    }
    switched.text.push_str(&text.slice(written..text.characters.len()));
    Ok(switched)
}

/// A text by characters, as columns count.
struct SourceText {
    characters: Vec<char>,
    /// The same characters, those in strings and comments blanked out.
    code: Vec<char>,
    /// The index of the first character of each line.
    lines: Vec<usize>,
}

impl SourceText {
    fn new(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let after_breaks = characters.iter().enumerate().filter(|(_, c)| **c == '\n');
        let lines = std::iter::once(0).chain(after_breaks.map(|(index, _)| index + 1)).collect();
        Self { code: mask::mask(text).chars().collect(), characters, lines }
    }

    fn slice(&self, range: Range<usize>) -> String {
        self.characters[range].iter().collect()
    }

    fn index(&self, position: Position) -> Result<usize> {
        let line = position.line.checked_sub(1).and_then(|line| self.lines.get(line));
        Ok(line.context("a position outside the file")? + position.column - 1)
    }

    /// The body of the function, without its braces.
    fn body(&self, mutant: &Mutant) -> Result<Range<usize>> {
        let end = self.index(mutant.function.end)? - 1;
        ensure!(self.code[end] == '}', "{}: the function has no body", mutant.name);
        let mut depth = 0;
        for index in (0..end).rev() {
            match self.code[index] {
                '}' => depth += 1,
                '{' if depth == 0 => return Ok(index + 1..end),
                '{' => depth -= 1,
                _ => {}
            }
        }
        anyhow::bail!("{}: the function has no opening brace", mutant.name)
    }

    /// The body with the replacement.
    fn mutate(&self, body: Range<usize>, mutant: &Mutant) -> Result<String> {
        let start = self.index(mutant.span.start)?;
        let end = self.index(mutant.span.end)?;
        let is_inside = body.start <= start && start <= end && end <= body.end;
        ensure!(is_inside, "{}: the change is outside the function", mutant.name);
        let before = self.slice(body.start..start);
        let after = self.slice(end..body.end);
        Ok(format!("{before}{}{after}", mutant.replacement))
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutant::Span;
    use super::*;

    const TEXT: &str = "/// A } in a comment.\nfn f(a: i64) -> bool {\n    a < 1\n}\nfn g() {}\n";

    fn span(from: (usize, usize), to: (usize, usize)) -> Span {
        let position = |(line, column)| Position { line, column };
        Span { start: position(from), end: position(to) }
    }

    fn mutant(replacement: &str) -> Mutant {
        Mutant {
            name: "f".into(),
            file: "a.rs".into(),
            function: span((1, 1), (4, 2)),
            span: span((3, 7), (3, 8)),
            replacement: replacement.into(),
        }
    }

    #[test]
    fn every_mutant_has_a_branch_beside_the_unchanged_body() {
        let less = mutant("<=");
        let greater = mutant(">");
        let switched = switch(TEXT, &[(4, &less), (7, &greater)]).unwrap();
        let condition = |number| format!("if ::catraca_core::is_change_enabled({number})");
        let lines = [
            "/// A } in a comment.".to_owned(),
            format!("fn f(a: i64) -> bool {{{} {{ ", condition(4)),
            "    a <= 1\n".to_owned(),
            format!("}} else {} {{ ", condition(7)),
            "    a > 1\n".to_owned(),
            "} else { ".to_owned(),
            "    a < 1\n".to_owned(),
            "}\n}\nfn g() {}\n".to_owned(),
        ];
        let expected = lines.join("\n");
        assert_eq!(switched.text, expected);
        let (number, branch) = &switched.branches[1];
        assert_eq!(*number, 7);
        assert!(switched.text[branch.clone()].starts_with(&condition(7)));
    }

    #[test]
    fn a_change_outside_its_function_is_an_error() {
        let mut wrong = mutant("x");
        wrong.span = span((5, 1), (5, 2));
        assert!(switch(TEXT, &[(0, &wrong)]).is_err());
    }
}
