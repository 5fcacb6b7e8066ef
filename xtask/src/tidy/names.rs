//! Names of types, functions and files: nouns, verbs, and one meaning each.
//!
//! Each crate has a ceiling in `tidy-allow.txt` that may only fall. Test code is left out: a test
//! may call a value `kept` without a reader being misled.

use std::collections::BTreeMap;

use super::Finding;
use super::mask::mask;
use super::source::code_lines;

/// Type names that every crate may define in several modules, as the standard library does.
const MAY_REPEAT: [&str; 2] = ["Error", "Options"];
/// A file name may stand for the same part of so many folders.
const FILE_NAME_USES: usize = 3;
/// Participles without `-ed`, one per line.
const IRREGULAR: &str = include_str!("../../tidy/participles.txt");
/// Words that end in `-ed` and are no participles.
const NO_PARTICIPLE: [&str; 7] = ["need", "feed", "seed", "embed", "speed", "shed", "exceed"];

/// One definition: what it is called, and where.
struct Definition {
    name: String,
    file: String,
}

/// What the crates of the project define.
#[derive(Default)]
pub(crate) struct Names {
    types: BTreeMap<String, Vec<Definition>>,
    functions: BTreeMap<String, Vec<Definition>>,
    files: BTreeMap<(String, String), Vec<String>>,
}

impl Names {
    /// Notes the definitions of a file that belongs to the sources of a crate.
    pub(crate) fn add(&mut self, file: &str, text: &str) {
        let Some((root, path)) = file.split_once("/src/") else { return };
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == "tests.rs" || path.contains("/tests/") {
            return;
        }
        let same = self.files.entry((root.to_owned(), name.to_owned())).or_default();
        same.push(file.to_owned());
        let masked = mask(text);
        for line in masked.lines().take(code_lines(text)) {
            let definition = |name: &str| Definition { name: name.to_owned(), file: file.into() };
            if let Some(name) = type_name(line) {
                self.types.entry(root.to_owned()).or_default().push(definition(name));
            }
            if let Some(name) = function_name(line) {
                self.functions.entry(root.to_owned()).or_default().push(definition(name));
            }
        }
    }

    /// Every name that breaks a rule.
    pub(crate) fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (root, types) in &self.types {
            findings.extend(participles("participle-type", root, types));
            findings.extend(repeated_types(root, types));
        }
        for (root, functions) in &self.functions {
            findings.extend(participles("participle-function", root, functions));
        }
        for ((root, name), files) in &self.files {
            if files.len() > FILE_NAME_USES {
                let message = format!("{root}: {} files are called {name}", files.len());
                findings.push(Finding::new("file-name", &format!("{root}/{name}"), 1, message));
            }
        }
        findings
    }
}

/// The name that a line defines as a type. An associated type is indented and does not count.
fn type_name(line: &str) -> Option<&str> {
    if line.starts_with("type ") || line.starts_with("pub type ") {
        return word_after(line, "type ");
    }
    let line = without_visibility(line.trim_start());
    ["struct ", "enum ", "trait ", "union "].iter().find_map(|kind| word_after_start(line, kind))
}

fn function_name(line: &str) -> Option<&str> {
    let line = without_visibility(line.trim_start());
    let line = line.strip_prefix("const ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    word_after_start(line, "fn ")
}

fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    let rest = match rest.strip_prefix('(') {
        Some(inside) => inside.split_once(')').map_or(inside, |(_, after)| after),
        None => rest,
    };
    rest.trim_start()
}

fn word_after<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    line.split_once(keyword).and_then(|(_, rest)| first_word(rest))
}

fn word_after_start<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    line.strip_prefix(keyword).and_then(first_word)
}

fn first_word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

fn participles(rule: &'static str, root: &str, names: &[Definition]) -> Vec<Finding> {
    let bare = names.iter().filter(|definition| is_participle(&definition.name));
    bare.map(|Definition { name, file }| {
        let message = format!("{file}: `{name}` is a participle: name the thing or the action");
        Finding::new(rule, root, 1, message)
    })
    .collect()
}

/// Whether the name is one word, and that word a participle.
fn is_participle(name: &str) -> bool {
    let word = name.to_ascii_lowercase();
    let is_one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let is_regular = word.len() > 3 && word.ends_with("ed");
    let is_irregular = IRREGULAR.lines().any(|known| known == word);
    is_one_word && (is_irregular || is_regular && !NO_PARTICIPLE.contains(&word.as_str()))
}

fn repeated_types(root: &str, types: &[Definition]) -> Vec<Finding> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Definition { name, file } in types {
        files.entry(name).or_default().push(file);
    }
    files.retain(|name, files| files.len() > 1 && !MAY_REPEAT.contains(name));
    let repeated = files.iter().map(|(name, files)| {
        let message = format!("{root}: `{name}` is defined in {}", files.join(", "));
        Finding::new("repeated-type", root, 1, message)
    });
    repeated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &str)]) -> Vec<&'static str> {
        let mut names = Names::default();
        for (file, text) in files {
            names.add(file, text);
        }
        names.check().into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_bare_participle_is_no_name() {
        assert_eq!(rules(&[("a/src/b.rs", "pub(crate) struct Asked {\n")]), ["participle-type"]);
        assert_eq!(rules(&[("a/src/b.rs", "    fn settled(&self) {\n")]), ["participle-function"]);
        assert_eq!(rules(&[("a/src/b.rs", "enum Kept {\n")]), ["participle-type"]);
        assert!(rules(&[("a/src/b.rs", "enum Feed {}\nfn need() {}\n")]).is_empty());
        assert!(rules(&[("a/src/b.rs", "struct SettledMarker;\nfn is_settled() {}\n")]).is_empty());
    }

    #[test]
    fn a_type_name_is_defined_once_in_a_crate() {
        let row = "struct Row;\n";
        assert_eq!(rules(&[("a/src/b.rs", row), ("a/src/c.rs", row)]), ["repeated-type"]);
        assert!(rules(&[("a/src/b.rs", row), ("d/src/c.rs", row)]).is_empty());
        let associated = "impl A for B {\n    type Row = u8;\n}\n";
        assert!(rules(&[("a/src/b.rs", row), ("a/src/c.rs", associated)]).is_empty());
    }

    #[test]
    fn comments_strings_and_tests_define_nothing() {
        let text = concat!(
            "// struct Asked\nlet a = \"\nstruct Kept\n\";\n",
            "#[cfg(test)]\nmod tests {\nfn asked() {}\n}\n",
        );
        assert!(rules(&[("a/src/b.rs", text), ("a/src/b/tests.rs", "struct Asked;\n")]).is_empty());
    }

    #[test]
    fn a_file_name_may_stand_in_three_folders() {
        let files = ["a/src/x/l.rs", "a/src/y/l.rs", "a/src/z/l.rs", "a/src/l.rs"];
        let texts: Vec<(&str, &str)> = files.iter().map(|file| (*file, "")).collect();
        assert!(rules(&texts[..3]).is_empty());
        assert_eq!(rules(&texts), ["file-name"]);
    }
}
