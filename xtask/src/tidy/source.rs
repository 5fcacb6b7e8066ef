//! What a Rust file must look like: module docs, and sizes that fit a reader's head.
//!
//! Must not repeat rustfmt or clippy.

use super::Finding;
use super::functions::functions;
use super::mask::mask;

const LINE_CHARS: usize = 100;
const FILE_LINES: usize = 400;
const FILE_LINES_WITH_TESTS: usize = 600;
const FUNCTION_LINES: usize = 70;

pub(crate) fn check(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = long_lines(file, text);
    findings.extend(long_functions(file, text));
    findings.extend(file_size(file, text));
    if !text.starts_with("//!") {
        let message = format!("{file}: does not open with `//!` saying why it exists");
        findings.push(Finding::new("module-docs", file, 1, message));
    }
    if file.ends_with("/mod.rs") {
        let message = format!("{file}: name it after its module, beside the folder");
        findings.push(Finding::new("mod-rs", file, 1, message));
    }
    findings
}

pub(crate) fn long_lines(file: &str, text: &str) -> Vec<Finding> {
    let long = |(index, line): (usize, &str)| {
        let chars = line.chars().count();
        let message = format!("{file}:{}: {chars} characters, more than {LINE_CHARS}", index + 1);
        (chars > LINE_CHARS).then(|| Finding::new("line-length", file, 1, message))
    };
    text.lines().enumerate().filter_map(long).collect()
}

fn long_functions(file: &str, text: &str) -> Vec<Finding> {
    let long = functions(&mask(text)).into_iter().filter(|f| f.lines > FUNCTION_LINES);
    long.map(|f| {
        let place = format!("{file}::{}", f.name);
        let message =
            format!("{file}:{}: fn {} has {} lines of {FUNCTION_LINES}", f.line, f.name, f.lines);
        Finding::new("function-lines", &place, f.lines, message)
    })
    .collect()
}

fn file_size(file: &str, text: &str) -> Option<Finding> {
    let all = text.lines().count();
    let code = code_lines(text);
    if code > FILE_LINES {
        let message = format!("{file}: {code} lines of {FILE_LINES}, tests apart");
        return Some(Finding::new("file-lines", file, code, message));
    }
    let message = format!("{file}: {all} lines of {FILE_LINES_WITH_TESTS}, tests included");
    (all > FILE_LINES_WITH_TESTS).then(|| Finding::new("file-lines", file, all, message))
}

/// Lines before the inline test module, or all.
pub(crate) fn code_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests = |at: &usize| {
        let module = lines[at + 1..].iter().find(|line| !line.starts_with("#["));
        lines[*at] == "#[cfg(test)]"
            && module.is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    (0..lines.len()).find(tests).unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        check("a.rs", text).into_iter().map(|finding| finding.rule).collect()
    }

    fn file(code: usize, tests: usize) -> String {
        let tests = "    // b\n".repeat(tests);
        format!("//! Why.\n{}#[cfg(test)]\nmod tests {{\n{tests}}}\n", "// a\n".repeat(code - 1))
    }

    #[test]
    fn a_small_documented_file_is_tidy() {
        assert!(rules("//! Why.\nfn a() {}\n").is_empty());
    }

    #[test]
    fn a_file_without_module_docs_is_not() {
        assert_eq!(rules("use a;\n"), ["module-docs"]);
        assert_eq!(rules(""), ["module-docs"]);
    }

    #[test]
    fn mod_rs_is_refused() {
        assert_eq!(check("src/a/mod.rs", "//! Why.\n")[0].rule, "mod-rs");
    }

    #[test]
    fn a_line_may_have_a_hundred_characters_not_bytes() {
        assert!(rules(&format!("//! {}\n", "é".repeat(96))).is_empty());
        assert_eq!(rules(&format!("//! {}\n", "é".repeat(97))), ["line-length"]);
    }

    #[test]
    fn code_may_have_400_lines_and_its_tests_200_more() {
        assert!(rules(&file(400, 197)).is_empty());
        assert_eq!(rules(&file(401, 0)), ["file-lines"]);
        assert_eq!(rules(&file(400, 198)), ["file-lines"]);
    }

    #[test]
    fn a_function_may_have_70_lines() {
        let function = |inside| format!("//! W.\nfn a() {{\n{}}}\n", "    b();\n".repeat(inside));
        assert!(rules(&function(68)).is_empty());
        assert_eq!(rules(&function(69)), ["function-lines"]);
        assert_eq!(check("a.rs", &function(69))[0].place, "a.rs::a");
    }
}
