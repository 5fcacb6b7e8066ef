//! `docs/diagnostics.md`: each code with its meaning, an example catalog and its diagnostics. The
//! test writes the page with `CATRACA_BLESS=1`, and compares it otherwise.

use std::fmt::Write as _;
use std::fs;

use catraca_core::catalog::diagnostic::{CODES, Diagnostic};

use crate::cli::codes::{code_fixtures, generated_texts};
use crate::cli::helpers::{diagnostics_of, fixtures};
use crate::cli::process_sections::{generated_text, process_codes, process_fixtures};

/// The end of the hand-written head of the page.
const HEAD_ENDS: &str = "|---|---|---|\n";
/// The part of an example that is printed: some examples are as large as a limit.
const LINES_SHOWN: usize = 30;
const COLUMNS_SHOWN: usize = 100;

#[test]
fn the_page_of_codes_shows_each_with_an_example_that_gives_it() {
    let path = fixtures().join("../../../../../docs/diagnostics.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, _) = page.split_once(HEAD_ENDS).unwrap();
    // The examples of the server come first: they show the mistakes of all sections.
    let examples: Vec<_> = process_fixtures()
        .into_iter()
        .chain([generated_text()])
        .chain(code_fixtures())
        .chain(generated_texts().into_iter().map(|(code, text)| (code.to_owned(), text)))
        .map(|(code, text)| {
            let found = diagnostics_of(&text);
            (code, text, found)
        })
        .collect();
    let mut rows = String::new();
    let mut sections = String::new();
    let mut codes: Vec<_> = CODES.iter().chain(process_codes()).copied().collect();
    codes.sort_unstable();
    for (code, meaning) in codes {
        let of = |example: &&(String, String, Vec<Diagnostic>)| example.0 == code;
        let (_, text, found) = examples.iter().find(of).unwrap_or_else(|| panic!("{code}"));
        let kind = kind(code, found);
        writeln!(rows, "| [`{code}`](#{code}) | {kind} | {meaning} |").unwrap();
        section(&mut sections, code, meaning, kind, text, found);
    }
    let wanted = format!("{head}{HEAD_ENDS}{rows}{sections}");
    if std::env::var_os("CATRACA_BLESS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), wanted);
}

fn kind(code: &str, found: &[Diagnostic]) -> &'static str {
    let found = found.iter().find(|found| found.code == code);
    found.unwrap_or_else(|| panic!("the example of {code} does not give it")).severity.as_str()
}

fn section(
    page: &mut String,
    code: &str,
    meaning: &str,
    kind: &str,
    text: &str,
    found: &[Diagnostic],
) {
    write!(page, "\n## {code}\n\n{meaning} *({kind})*\n\n```toml\n").unwrap();
    let lines = text.lines().count();
    for line in text.lines().take(LINES_SHOWN) {
        writeln!(page, "{}", cut(line)).unwrap();
    }
    if lines > LINES_SHOWN {
        writeln!(page, "# … and so on: {lines} lines").unwrap();
    }
    page.push_str("```\n\n```text\n");
    for found in found.iter().filter(|found| found.code == code) {
        found.to_string().lines().for_each(|line| writeln!(page, "{}", cut_at(line, 400)).unwrap());
    }
    page.push_str("```\n");
}

fn cut(line: &str) -> String {
    cut_at(line, COLUMNS_SHOWN)
}

fn cut_at(line: &str, shown: usize) -> String {
    match line.char_indices().nth(shown) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
