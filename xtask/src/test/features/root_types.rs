//! Every type that the crate `catraca` exports at its root has an example of its own that runs: at
//! its declaration, or at the `pub use` that exports it.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use catraca_conformance::TestContext;

use super::examples::has_example;

const ROOT: &str = "crates/catraca/src/lib.rs";

/// The sources of the library and of the crate whose types it exports too.
const SOURCES: [&str; 2] = ["crates/catraca/src/", "crates/catraca-core/src/"];

/// The programs of the workspace use these; they are hidden from the documentation.
const HIDDEN: &str = "#[doc(hidden)]";

pub(super) fn run(context: &TestContext) -> Result<()> {
    let mut documented = BTreeSet::new();
    for path in context.repo.files()? {
        if path.ends_with(".rs") && SOURCES.iter().any(|source| path.starts_with(source)) {
            let items = public_items(&context.repo.read(&path)?);
            documented
                .extend(items.into_iter().filter(PublicItem::has_example).flat_map(|it| it.names));
        }
    }
    let root = public_items(&context.repo.read(ROOT)?);
    let types: Vec<_> =
        root.iter().filter(|item| !item.is_hidden).flat_map(|it| &it.names).collect();
    println!("{} types at the root of the library", types.len());
    ensure!(types.len() > 40, "{ROOT} exports only {types:?}");
    let without: Vec<_> = types.into_iter().filter(|name| !documented.contains(*name)).collect();
    ensure!(without.is_empty(), "no example runs for these types at the root: {without:?}");
    Ok(())
}

/// A public type, or several that one `pub use` exports.
#[derive(Debug, Default, PartialEq)]
struct PublicItem {
    docs: String,
    names: Vec<String>,
    is_hidden: bool,
}

impl PublicItem {
    /// An example above several types is an example of none.
    fn has_example(&self) -> bool {
        self.names.len() == 1 && has_example(&self.docs)
    }
}

/// The types that a file declares or exports with `pub`, outside of blocks.
fn public_items(text: &str) -> Vec<PublicItem> {
    let mut items = Vec::new();
    let mut item = PublicItem::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("///") {
            item.docs += &format!("{line}\n");
        } else if line.starts_with('#') {
            item.is_hidden |= line == HIDDEN;
        } else if let Some(exported) = line.strip_prefix("pub use ") {
            let mut exported = exported.to_owned();
            while !exported.ends_with(';') {
                let Some(line) = lines.next() else { break };
                exported += line;
            }
            item.names = exported_types(&exported);
            items.push(std::mem::take(&mut item));
        } else {
            item.names.extend(declared_type(line));
            let item = std::mem::take(&mut item);
            items.extend(Some(item).filter(|item| !item.names.is_empty()));
        }
    }
    items
}

/// The type of a declaration such as `pub struct Lock<S>`.
fn declared_type(line: &str) -> Option<String> {
    let rest = line.strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    name.split(|it: char| !it.is_alphanumeric()).next().map(str::to_owned)
}

/// The types of a path such as `load::{Includes, load};`: names in lower case are functions and
/// modules, names in capitals are constants.
fn exported_types(path: &str) -> Vec<String> {
    let path = path.trim_end_matches(';');
    let names = match path.split_once('{') {
        Some((_, names)) => names.trim_end_matches('}').split(',').collect(),
        None => vec![path.rsplit("::").next().unwrap_or(path)],
    };
    let names = names.into_iter().map(|name| name.rsplit(" as ").next().unwrap_or(name).trim());
    let is_type =
        |name: &&str| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    names.filter(is_type).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_counts_for_the_one_type_below_it() {
        let text = "/// Text.\n///\n/// ```\n/// f();\n/// ```\n#[derive(Clone)]\n\
                    pub struct Lock<S> {\n    a: S,\n}\n\n/// Text.\npub enum Reason {\n";
        let items = public_items(text);
        let names: Vec<_> =
            items.iter().map(|item| (&*item.names[0], item.has_example())).collect();
        assert_eq!(names, [("Lock", true), ("Reason", false)]);
    }

    #[test]
    fn an_example_above_several_types_counts_for_none() {
        let example = "/// ```\n/// f();\n/// ```\n";
        let one = public_items(&format!("{example}pub use a::b::LimitBuilder as Limit;\n"));
        assert!(one[0].has_example());
        assert_eq!(one[0].names, ["Limit"]);
        let several = public_items(&format!("{example}pub use a::{{\n    Aa, Bb,\n    c,\n}};"));
        assert!(!several[0].has_example());
    }

    #[test]
    fn functions_constants_and_hidden_types_are_no_types_of_the_root() {
        let text = "pub use load::{Includes, LIMIT_MAX, load as read};\n\
                    #[doc(hidden)]\npub use core::{Span, Time};\npub use core as rules;\n";
        let items = public_items(text);
        assert_eq!(items[0].names, ["Includes"]);
        assert!(!items[0].is_hidden && items[1].is_hidden);
        assert!(items[2].names.is_empty());
    }
}
