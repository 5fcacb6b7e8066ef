//! Examples of the library: every public module has one that runs, the first programs of the guides
//! have at most ten lines, each example compiles with exactly the features that it requires, and
//! commands in documents that run an example name these features.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use catraca_conformance::TestContext;

const SOURCE: &str = "crates/catraca/src";

/// Modules for the tower layer and the reverse proxy, whose tests run them.
const WITHOUT_EXAMPLE: [&str; 1] = ["http_outcome"];

/// The guides whose first program is the shortest that does something useful.
const FIRST_PROGRAMS: [&str; 2] = ["docs/guide/library.md", "docs/guide/tower.md"];
const LINES_MAX: usize = 10;

pub(super) fn run(context: &TestContext) -> Result<()> {
    let without = modules_without_example(&context.repo.path(SOURCE))?;
    let unexpected = without.iter().filter(|module| !WITHOUT_EXAMPLE.contains(&module.as_str()));
    let unexpected: Vec<_> = unexpected.collect();
    ensure!(unexpected.is_empty(), "no example runs in these public modules: {unexpected:?}");
    let needless = WITHOUT_EXAMPLE.iter().find(|module| !without.iter().any(|it| it == *module));
    ensure!(needless.is_none(), "`{needless:?}` has an example: remove it from the exceptions");
    for page in FIRST_PROGRAMS {
        let lines = first_program(&context.repo.read(page)?);
        println!("{page}: {lines} lines");
        ensure!((1..=LINES_MAX).contains(&lines), "{page}: its first program has {lines} lines");
    }
    check_examples(context)
}

/// The public modules of a library none of whose files has an example that runs.
fn modules_without_example(source: &Path) -> Result<Vec<String>> {
    let library = fs::read_to_string(source.join("lib.rs")).context("cannot read lib.rs")?;
    let names = library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let mut without = Vec::new();
    for name in names {
        let file = fs::read_to_string(source.join(format!("{name}.rs")))?;
        if !has_example(&file) && !folder_has_example(&source.join(name))? {
            without.push(name.to_owned());
        }
    }
    Ok(without)
}

fn folder_has_example(folder: &Path) -> Result<bool> {
    if !folder.is_dir() {
        return Ok(false);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = match path.is_dir() {
            true => folder_has_example(&path)?,
            false => has_example(&fs::read_to_string(&path)?),
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file has a code block in its documentation that is compiled and run.
pub(super) fn has_example(file: &str) -> bool {
    let docs = file.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
    });
    let fences = docs.filter_map(|line| line.trim_start().strip_prefix("```"));
    // Every second fence ends a block.
    fences.step_by(2).any(|tags| tags.is_empty() || tags == "rust")
}

/// The visible lines of the first program of a page.
fn first_program(page: &str) -> usize {
    let mut lines = page.lines().skip_while(|line| !line.starts_with("```rust"));
    lines.next();
    let program = lines.take_while(|line| !line.starts_with("```"));
    let is_hidden = |line: &str| line == "#" || line.starts_with("# ");
    program.filter(|line| !line.trim().is_empty() && !is_hidden(line)).count()
}

/// Compiles each example with the features that its manifest requires, and no others.
fn check_examples(context: &TestContext) -> Result<()> {
    let text = context.repo.read(super::MANIFEST)?;
    let manifest: toml::Table = text.parse().context("cannot parse a manifest")?;
    let examples = manifest.get("example").and_then(toml::Value::as_array);
    let documents = example_documents(context)?;
    for example in examples.context("the library has no examples")? {
        let name = example.get("name").and_then(toml::Value::as_str).context("no name")?;
        let features = example.get("required-features").and_then(toml::Value::as_array);
        let features = features.with_context(|| format!("`{name}` requires no features"))?;
        let features: Vec<&str> = features.iter().filter_map(toml::Value::as_str).collect();
        println!("example {name} with {}", features.join(","));
        for (path, text) in &documents {
            let wrong = wrong_command(text, name, &features);
            ensure!(wrong.is_none(), "{path}: `{}` needs {features:?}", wrong.unwrap_or_default());
        }
        let args = ["--features", &features.join(","), "--example", name, "--profile", "test"];
        context.processes.run(&mut super::cargo(context, "check", &args))?;
    }
    Ok(())
}

/// The files that may show how to run an example.
fn example_documents(context: &TestContext) -> Result<Vec<(String, String)>> {
    let files = context.repo.files()?;
    let is_document =
        |path: &String| path.ends_with(".md") || path.starts_with("crates/catraca/examples/");
    let documents = files.into_iter().filter(is_document);
    documents.map(|path| Ok((path.clone(), context.repo.read(&path)?))).collect()
}

/// The first command of a text that runs the example with other features than it requires.
fn wrong_command(text: &str, example: &str, features: &[&str]) -> Option<String> {
    // A command in a comment may have several lines.
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "//!").collect();
    let text = words.join(" ");
    let commands = text.split("cargo run ").skip(1);
    let of_example = commands.filter_map(|rest| {
        let (options, after) = rest.split_once("--example ")?;
        let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let name = after.split(|character| !is_name(character)).next()?;
        (name == example).then_some(options)
    });
    let expected = format!("-p catraca --features {} ", features.join(","));
    let mut wrong = of_example.filter(|options| *options != expected);
    wrong.next().map(|options| format!("cargo run {options}--example {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_examples_that_run_count() {
        assert!(has_example("/// Text.\n///\n/// ```\n/// f();\n/// ```\nfn f() {}"));
        assert!(has_example("//! ```rust\n//! f();\n//! ```"));
        assert!(!has_example("//! ```no_run\n//! f();\n//! ```"));
        assert!(!has_example("/// ```toml\n/// a = 1\n/// ```\nfn f() { \"```\"; }"));
    }

    #[test]
    fn a_command_names_the_features_that_its_example_requires() {
        let text = "//! `cargo run -p catraca\n//! --features axum,client --example shared`, and\n\
                    $ cargo run -p catraca --features axum --example login\n";
        assert_eq!(wrong_command(text, "shared", &["axum", "client"]), None);
        assert_eq!(wrong_command(text, "other", &["cel"]), None);
        let wrong = "cargo run -p catraca --features axum --example login";
        assert_eq!(wrong_command(text, "login", &["axum", "cel"]).as_deref(), Some(wrong));
    }

    #[test]
    fn hidden_and_empty_lines_of_a_program_do_not_count() {
        let page =
            "text\n```rust,no_run\nuse a;\n\n# hidden\n#[test]\nf();\n```\n```rust\ng();\n```";
        assert_eq!(first_program(page), 3);
    }
}
