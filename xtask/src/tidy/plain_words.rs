//! Words that make a sentence vague, because they name neither a thing nor a person.
//!
//! The rule covers comments, string literals and documents. Each crate and folder of documents has
//! a ceiling in `tidy-allow.txt` that may only fall; some uses are plain English.

use super::Finding;
use super::mask::mask;

/// One word, or a few that belong together, per line.
const VAGUE: &str = include_str!("../../tidy/vague-words.txt");

pub(crate) fn check(file: &str, text: &str) -> Vec<Finding> {
    let Some(place) = place(file) else { return Vec::new() };
    let prose = match file.rsplit('.').next() {
        Some("rs") => outside_code(text),
        Some("lua") => lua_comments(text),
        _ => text.to_owned(),
    };
    let mut findings = Vec::new();
    for (index, line) in prose.lines().enumerate() {
        for word in VAGUE.lines().filter(|word| has_word(line, word)) {
            let message = format!("{file}:{}: `{word}` is vague: name who or what", index + 1);
            findings.push(Finding::new("plain-words", &place, 1, message));
        }
    }
    findings
}

/// What the ceiling is for: a crate, its tests, or a folder of documents.
fn place(file: &str) -> Option<String> {
    let folder = |end: &str| file.split_once(end).map(|(root, _)| format!("{root}{end}"));
    match file.rsplit('.').next()? {
        "rs" | "lua" => folder("/src").or_else(|| folder("/tests")),
        "md" if file.starts_with("docs/") => Some("docs".to_owned()),
        "md" if !file.contains('/') && file != "CHANGELOG.md" => Some(file.to_owned()),
        _ => None,
    }
}

/// The comments and literals of Rust text, each in its line.
fn outside_code(text: &str) -> String {
    let masked = mask(text);
    let kept = text.chars().zip(masked.chars());
    kept.map(|(c, code)| if c == code && c != '\n' { ' ' } else { c }).collect()
}

fn lua_comments(text: &str) -> String {
    let comment = |line: &str| line.split_once("--").map_or("", |(_, comment)| comment).to_owned();
    text.lines().map(comment).collect::<Vec<_>>().join("\n")
}

fn has_word(line: &str, word: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> usize {
        check(file, text).len()
    }

    #[test]
    fn every_word_of_the_list_is_found_in_comments_literals_and_documents() {
        for word in VAGUE.lines() {
            assert_eq!(found("crates/a/src/b.rs", &format!("/// A {word}.\n")), 1, "{word}");
            assert_eq!(found("crates/a/tests/b.rs", &format!("warn!(\"{word} x\");\n")), 1);
            assert_eq!(found("crates/a/src/b.lua", &format!("local x = 1 -- {word}\n")), 1);
            assert_eq!(found("docs/guide/a.md", &format!("The {word} case.")), 1);
        }
        assert_eq!(VAGUE.lines().count(), 21);
    }

    #[test]
    fn code_parts_of_words_and_other_files_are_left_alone() {
        for word in VAGUE.lines().filter(|word| !word.contains(' ')) {
            assert_eq!(found("crates/a/src/b.rs", &format!("let {word} = 1;\n")), 0, "{word}");
            assert_eq!(found("crates/a/src/b.rs", &format!("// x{word} {word}x\n")), 0);
            assert_eq!(found("CHANGELOG.md", word), 0);
            assert_eq!(found("deploy/a.json", word), 0);
        }
    }
}
