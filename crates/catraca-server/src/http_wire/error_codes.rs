//! The error codes of problems, parsed from `docs/errors.md`, which is also what people read.
//!
//! A test compares the file with every code that appears in the source.

use std::sync::OnceLock;

/// One section per code: the status and what happened, then why, then how to fix it.
const TEXT: &str = include_str!("../../../../docs/errors.md");

/// One error code.
#[derive(Debug)]
pub struct ErrorCode {
    /// The code itself.
    pub name: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What happened.
    pub summary: &'static str,
    /// Why, and how to fix it, as Markdown paragraphs.
    pub explanation: &'static str,
}

/// Every code, in the order of the file.
pub fn all_error_codes() -> &'static [ErrorCode] {
    static ALL: OnceLock<Vec<ErrorCode>> = OnceLock::new();
    ALL.get_or_init(|| TEXT.split("\n## ").skip(1).filter_map(parse).collect())
}

/// Finds a code by its name.
pub fn find_error_code(name: &str) -> Option<&'static ErrorCode> {
    all_error_codes().iter().find(|code| code.name == name)
}

fn parse(text: &'static str) -> Option<ErrorCode> {
    let (name, text) = text.split_once("\n\n")?;
    let (head, rest) = text.split_once("\n\n")?;
    let (status, summary) = head.strip_prefix("**")?.split_once(".** ")?;
    let status = status.split(' ').next()?.parse().ok()?;
    Some(ErrorCode { name, status, summary, explanation: rest.trim_end() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Calls that make a problem; the first string literal after each is the code.
    const MAKERS: [&str; 9] = [
        "AppError::invalid(",
        "Problem::bad(",
        "Problem::new(",
        "Self::bad(",
        "Self::new(",
        "not_found(",
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

    /// Every code in the source of this crate's HTTP front ends and of the application, of core's
    /// refusals, of requests that routes cannot read, and of tokens.
    fn codes_in_source() -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut texts = Vec::new();
        for folder in ["src/http", "src/http_wire", "src/proxy"] {
            sources(&root.join(folder), &mut texts);
        }
        sources(&root.join("../catraca/src/app"), &mut texts);
        let mut codes = BTreeSet::new();
        for text in &texts {
            for maker in MAKERS {
                let after = text.split(maker).skip(1).filter_map(first_text);
                codes.extend(after.filter(|code| is_code(code)).map(str::to_owned));
            }
            let quoted =
                text.split("\"code\":\"").skip(1).filter_map(|rest| rest.split('"').next());
            codes.extend(quoted.filter(|code| is_code(code)).map(str::to_owned));
        }
        codes.extend(["bad-json", "bad-field"].map(str::to_owned));
        for file in [
            "catraca-core/src/refusal.rs",
            "catraca/src/http_request/request_error.rs",
            "catraca-server/src/jwt/error.rs",
        ] {
            let text = fs::read_to_string(root.join("..").join(file)).unwrap();
            let mapped = text.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next());
            codes.extend(mapped.filter(|text| is_code(text)).map(str::to_owned));
        }
        // Of the library's client: no server answers with it.
        codes.remove("refused-by-server");
        codes
    }

    #[test]
    fn every_code_has_an_entry_and_every_entry_a_code() {
        let listed: BTreeSet<String> =
            all_error_codes().iter().map(|code| code.name.to_owned()).collect();
        assert_eq!(listed, codes_in_source());
        assert_eq!(listed.len(), all_error_codes().len(), "a code has two entries");
        assert_eq!(
            all_error_codes().len(),
            TEXT.matches("\n## ").count(),
            "an entry cannot be read"
        );
    }

    #[test]
    fn every_entry_says_what_why_and_how_to_fix_it() {
        for code in all_error_codes() {
            assert!((400..600).contains(&code.status), "{code:?}");
            assert!(code.summary.ends_with('.'), "{code:?}");
            assert!(
                code.explanation.contains("**Why:** ") && code.explanation.contains("**Fix:** "),
                "{code:?}"
            );
        }
        assert!(all_error_codes().is_sorted_by_key(|code| code.name), "keep the entries in order");
    }
}
