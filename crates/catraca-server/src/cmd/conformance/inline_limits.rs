//! Finds limits that code states itself, in place of naming a policy.
//!
//! Such a limit is an object with two or more of the fields of a config, of which one is a number.
//! So types, and configs that are taken apart, are none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cmd::import::FIELDS;
use crate::cmd::import::tokens::{Place, SourceToken, TokenKind, tokenize};

const ENDINGS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];
/// Folders with code that is not the application's own.
const LEFT_OUT: [&str; 2] = ["node_modules", ".git"];

/// What was found in the code of an application.
pub struct CodeSearch {
    /// The files that were read.
    pub files: usize,
    /// `FILE:LINE:COLUMN` of each limit.
    pub places: Vec<String>,
}

impl CodeSearch {
    /// Reads all files below some paths, except for some.
    pub fn run(paths: &[PathBuf], except: &[PathBuf]) -> Result<Self> {
        let mut files = BTreeSet::new();
        for path in paths {
            let metadata = fs::metadata(path);
            let metadata = metadata.with_context(|| format!("cannot read {}", path.display()))?;
            match metadata.is_dir() {
                true => add_files(path, &mut files)?,
                false => drop(files.insert(path.clone())),
            }
        }
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let except: BTreeSet<PathBuf> = except.iter().map(real).collect();
        files.retain(|file| !except.contains(&real(file)));
        let mut places = Vec::new();
        for file in &files {
            let name = file.display();
            let bytes = fs::read(file).with_context(|| format!("cannot read {name}"))?;
            let found = inline_limits(&String::from_utf8_lossy(&bytes));
            places.extend(found.into_iter().map(|place| format!("{name}:{place}")));
        }
        Ok(Self { files: files.len(), places })
    }
}

/// Links to folders are not followed, so that the search ends.
fn add_files(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let place = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(place)? {
        let entry = entry.with_context(place)?;
        let path = entry.path();
        let kind = entry.file_type().with_context(place)?;
        let name = entry.file_name();
        let is_left_out = LEFT_OUT.iter().any(|own| name == *own);
        if kind.is_dir() && !is_left_out {
            add_files(&path, files)?;
        }
        let ending = path.extension().unwrap_or_default();
        if kind.is_file() && ENDINGS.iter().any(|own| ending == *own) {
            files.insert(path);
        }
    }
    Ok(())
}

/// An open brace, and what was found between it and its end.
struct OpenObject {
    place: Place,
    fields: usize,
    has_number: bool,
}

/// Where limits start, in the order of the source.
fn inline_limits(source: &str) -> Vec<Place> {
    let tokens = tokenize(source);
    let tokens: Vec<SourceToken<'_>> =
        tokens.into_iter().filter(|token| !matches!(token.kind, TokenKind::Comment(_))).collect();
    let mut open: Vec<OpenObject> = Vec::new();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let following = |offset: usize| tokens.get(index + offset).map(|token| token.kind);
        match (token.kind, open.last_mut()) {
            (TokenKind::Mark('{'), _) => {
                open.push(OpenObject { place: token.place, fields: 0, has_number: false });
            }
            (TokenKind::Mark('}'), Some(_)) => {
                let ended = open.pop();
                let limits = ended.filter(|object| object.fields > 1 && object.has_number);
                found.extend(limits.map(|object| object.place));
            }
            (TokenKind::Word(name) | TokenKind::Text(name), Some(object))
                if FIELDS.contains(&name) && following(1) == Some(TokenKind::Mark(':')) =>
            {
                object.fields += 1;
                object.has_number |= matches!(following(2), Some(TokenKind::Number(_)));
            }
            _ => {}
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(source: &str) -> Vec<String> {
        inline_limits(source).iter().map(Place::to_string).collect()
    }

    /// covers: 003-06
    #[test]
    fn literals_of_limits_are_found_and_types_and_names_are_not() {
        let forbidden = "const MY_RATE_LIMIT = {\n  action: \"my_action\",\n  maxAttempts: 5,\n  \
                         windowMinutes: 60,\n  blockDurationMinutes: 60\n};";
        assert_eq!(places(forbidden), ["1:23"]);
        assert_eq!(places("f(x, { maxAttempts: 5 * 2, 'windowMinutes': 1 })"), ["1:6"]);
        assert_eq!(places("const a = { b: { windowMinutes: 1, action: 'x' } };"), ["1:16"]);
        for allowed in [
            "interface C { action: string; maxAttempts: number; windowMinutes: number }",
            "f(x, RATE_LIMIT_CONFIGS.GDPR_FORGET, { action: 'x', page: 1 })",
            "const { maxAttempts: most, windowMinutes: minutes } = config;",
            "// { maxAttempts: 5, windowMinutes: 1 }\n/* { maxAttempts: 5, windowMinutes: 1 } */",
            "'{ maxAttempts: 5, windowMinutes: 1 }'; `{ maxAttempts: 5, windowMinutes: 1 }`",
            "{ maxAttempts: 5 } { windowMinutes: 1 }",
        ] {
            assert_eq!(places(allowed), [""; 0], "{allowed}");
        }
    }
}
