//! What a Lua file must look like: a comment that says what it does, and sizes as for Rust.
//!
//! Must not judge the code: the differential tests do.

use super::Finding;
use super::source::long_lines;

const FILE_LINES: usize = 400;

pub(crate) fn check(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = long_lines(file, text);
    if !text.starts_with("--") {
        let message = format!("{file}: does not open with a comment saying what it does");
        findings.push(Finding::new("lua-head", file, 1, message));
    }
    let lines = text.lines().count();
    if lines > FILE_LINES {
        let message = format!("{file}: {lines} lines of {FILE_LINES}");
        findings.push(Finding::new("file-lines", file, lines, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        check("a.lua", text).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_lua_file_opens_with_a_comment_and_fits() {
        assert!(rules("-- Takes a slot.\nlocal x = 1\n").is_empty());
        assert_eq!(rules("local x = 1\n"), ["lua-head"]);
        assert_eq!(rules(&format!("-- {}\n", "a".repeat(98))), ["line-length"]);
        assert_eq!(rules(&format!("-- a\n{}", "x()\n".repeat(400))), ["file-lines"]);
    }
}
