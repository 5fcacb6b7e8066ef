//! What can go wrong, by its code: read from the document that people read, so that there is one.
//!
//! Must hold every code that an answer can carry; tests compare it with the program text.

use std::sync::OnceLock;

/// The document: a heading per code, its status and what happened, why, and how to fix it.
const TEXT: &str = include_str!("../../../../../docs/errors.md");

/// One thing that can go wrong.
#[derive(Debug)]
pub struct Code {
    /// Its code.
    pub name: &'static str,
    /// The status that it is answered with.
    pub status: u16,
    /// What happened.
    pub what: &'static str,
    /// Why, and how to fix it, as the document's paragraphs.
    pub rest: &'static str,
}

/// Every code, in the document's order.
pub fn all() -> &'static [Code] {
    static ALL: OnceLock<Vec<Code>> = OnceLock::new();
    ALL.get_or_init(|| TEXT.split("\n## ").skip(1).filter_map(read).collect())
}

/// One code.
pub fn code(name: &str) -> Option<&'static Code> {
    all().iter().find(|code| code.name == name)
}

fn read(text: &'static str) -> Option<Code> {
    let (name, text) = text.split_once("\n\n")?;
    let (head, rest) = text.split_once("\n\n")?;
    let (status, what) = head.strip_prefix("**")?.split_once(".** ")?;
    let status = status.split(' ').next()?.parse().ok()?;
    Some(Code { name, status, what, rest: rest.trim_end() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// What begins a problem, with its code as the first text that follows.
    const MAKERS: [&str; 8] = [
        "Problem::bad(",
        "Problem::new(",
        "Self::bad(",
        "Self::new(",
        "missing(",
        "forbidden(",
        "unauthorized(",
        "unsupported(",
    ];

    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.push(fs::read_to_string(&path).unwrap());
            }
        }
    }

    fn is_code(text: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        text.bytes().all(plain) && (text.contains('-') || text == "internal")
    }

    fn first_text(source: &str) -> Option<&str> {
        let (_, rest) = source.split_once('"')?;
        rest.split_once('"').map(|(text, _)| text)
    }

    /// Codes as the program makes them.
    fn made() -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut texts = Vec::new();
        sources(&root.join("src/http"), &mut texts);
        let mut made = BTreeSet::new();
        for text in &texts {
            for maker in MAKERS {
                let after = text.split(maker).skip(1).filter_map(first_text);
                made.extend(after.filter(|code| is_code(code)).map(str::to_owned));
            }
            let quoted =
                text.split("\"code\":\"").skip(1).filter_map(|rest| rest.split('"').next());
            made.extend(quoted.filter(|code| is_code(code)).map(str::to_owned));
        }
        made.extend(["bad-json", "bad-field"].map(str::to_owned));
        let core = root.join("../catraca-core/src/refusal.rs");
        let core = fs::read_to_string(core).unwrap();
        let refusals = core.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next());
        made.extend(refusals.map(str::to_owned));
        made
    }

    #[test]
    fn every_code_has_an_entry_and_every_entry_a_code() {
        let listed: BTreeSet<String> = all().iter().map(|code| code.name.to_owned()).collect();
        assert_eq!(listed, made());
        assert_eq!(listed.len(), all().len(), "a code has two entries");
        assert_eq!(all().len(), TEXT.matches("\n## ").count(), "an entry cannot be read");
    }

    #[test]
    fn every_entry_says_what_why_and_how_to_fix_it() {
        for code in all() {
            assert!((400..600).contains(&code.status), "{code:?}");
            assert!(code.what.ends_with('.'), "{code:?}");
            assert!(code.rest.contains("**Why:** ") && code.rest.contains("**Fix:** "), "{code:?}");
        }
        assert!(all().is_sorted_by_key(|code| code.name), "keep the entries in order");
    }
}
