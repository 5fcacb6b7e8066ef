//! Texts that must not be in the tree: stubs, ignored tests, paths of a developer's machine.
//!
//! Every needle is put together from pieces, so that this file passes its own check. Must not ban
//! a matter of taste.

use super::Finding;

/// Unfinished work, in code.
const STUBS: [&str; 6] = [
    concat!("to", "do!"),
    concat!("TO", "DO"),
    concat!("unimpl", "emented!"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("#[ign", "ore"),
];
const CODE: [&str; 3] = [".rs", ".ts", ".lua"];

/// Top directories that only a developer's machine has.
const MACHINE: [&str; 4] = ["work", "farm", "root", "home"];
/// Machine-made, full of addresses.
const GENERATED: &str = ".lock";

pub(crate) fn check(file: &str, text: &str) -> Vec<Finding> {
    let code = CODE.iter().any(|ending| file.ends_with(ending));
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{file}:{}", index + 1);
        for word in STUBS.iter().filter(|word| code && line.contains(**word)) {
            let message = format!("{place}: `{word}` in the tree");
            findings.push(Finding::new("stub", file, 1, message));
        }
        if !file.ends_with(GENERATED) && MACHINE.iter().any(|top| names_machine(line, top)) {
            findings.push(Finding::new("machine-path", file, 1, format!("{place}: machine path")));
        }
    }
    findings
}

/// Whether the line has `/top/` as the start of a path, and not inside a longer one.
fn names_machine(line: &str, top: &str) -> bool {
    let needle = format!("/{top}/");
    line.match_indices(&needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(file: &str, text: &str) -> Vec<&'static str> {
        check(file, text).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn every_stub_is_found_in_code_and_left_alone_in_prose() {
        for word in STUBS {
            assert_eq!(rules("a.rs", &format!("fn a() {{ {word} }}")), ["stub"], "{word}");
            assert!(rules("a.md", word).is_empty());
        }
    }

    #[test]
    fn machine_paths_are_found_in_any_text() {
        for top in MACHINE {
            assert_eq!(rules("a.md", &format!("see /{top}/x")), ["machine-path"]);
            assert_eq!(rules("a.sh", &format!("/{top}/x")), ["machine-path"]);
            assert!(rules("a.lock", &format!("/{top}/x")).is_empty());
        }
    }

    #[test]
    fn the_same_word_inside_a_longer_path_is_fine() {
        assert!(rules("a.md", &format!("example.org/{}/x and a/{0}/x", MACHINE[0])).is_empty());
    }
}
