//! The documentation of the library shows `Duration` and `SystemTime`, not the integers that stores
//! count with (ADR 0027), and no numbers of milliseconds except in bodies of the HTTP API.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use catraca_conformance::TestContext;

/// The types of `catraca_core::time`.
const INTEGER_TYPES: [&str; 2] = ["Span", "Time"];

/// Pages that show the value of a constant, which may be a script of a store.
const CONSTANT: &str = "constant.";

/// The bodies of the HTTP API, whose fields are numbers of milliseconds.
const BODIES: &str = "json/";

pub(super) fn run(context: &TestContext) -> Result<()> {
    check(context, "default")?;
    check(context, "full")
}

/// Writes the documentation with these features, and looks for the integers in its pages.
fn check(context: &TestContext, features: &str) -> Result<()> {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let root = context.repo.path("").join(target).join("doc/catraca");
    // Cargo leaves pages of other features.
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let mut doc = super::cargo(context, "doc", &["--no-deps", "--features", features]);
    context.processes.run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    let mut pages = Vec::new();
    find_pages(&root, &mut pages)?;
    ensure!(pages.len() > 50, "{} has only {} pages", root.display(), pages.len());
    let mut found = Vec::new();
    for page in pages {
        let name = page.strip_prefix(&root)?.display().to_string();
        if name.rsplit('/').next().is_some_and(|file| file.starts_with(CONSTANT)) {
            continue;
        }
        let text = without_tags(&fs::read_to_string(&page)?);
        found.extend(integer_types(&text).map(|line| format!("{name}: {line}")));
        if !name.starts_with(BODIES) {
            found.extend(millisecond_fields(&text).map(|line| format!("{name}: {line}")));
        }
    }
    ensure!(
        found.is_empty(),
        "the documentation shows Span, Time or milliseconds:\n{}",
        found.join("\n")
    );
    Ok(())
}

fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            find_pages(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.push(path);
        }
    }
    Ok(())
}

/// The text of a page, up to the traits that other crates implement for all types: `tracing` has a
/// `Span` too.
fn without_tags(page: &str) -> String {
    let own = page.split_once("id=\"blanket-implementations\"").map_or(page, |(own, _)| own);
    let mut text = String::new();
    for part in own.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    text
}

/// The lines that have a type as a whole word, as in `Option<Span>` but not in `TimeRange`.
fn integer_types(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    text.lines().filter(move |line| {
        line.split(|character| !is_name(character)).any(|word| INTEGER_TYPES.contains(&word))
    })
}

/// The lines that declare a field or an argument with milliseconds, as in `ttl_ms: Option<i64>`.
fn millisecond_fields(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.contains("_ms: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_behind_its_tags_and_only_alone() {
        let page = "<a href='x'>at</a>: <a>Option</a>&lt;<a>Time</a>&gt;,\n<p>TimeRange</p>\n\
                    <h2 id=\"blanket-implementations\">fn instrument(self, span: Span)</h2>";
        let text = without_tags(page);
        let found: Vec<&str> = integer_types(&text).collect();
        assert_eq!(found, ["at: Option&lt;Time&gt;,"]);
        let page = "<code>pub ttl_ms: <a>Option</a>&lt;i64&gt;</code>\n<p>`ttl_ms` of the body</p>";
        let text = without_tags(page);
        let found: Vec<&str> = millisecond_fields(&text).collect();
        assert_eq!(found, ["pub ttl_ms: Option&lt;i64&gt;"]);
    }
}
