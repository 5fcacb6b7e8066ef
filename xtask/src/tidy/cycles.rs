//! Modules of the server that use each other in a circle.
//!
//! A module is what the first part of its path names, such as `http`, and what the first two parts
//! name, such as `http::auth`: a file and its folder are one. Uses between a module and the one
//! that contains it are left out, because a parent names its parts and a part may use its parent's
//! types.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::mask::mask;
use super::source::code_lines;

const SOURCES: &str = "crates/catraca-server/src/";
/// The parts of a path that name a module: folders by themselves, and then what is in them.
const DEPTHS: [usize; 2] = [1, 2];

/// The paths that each file uses.
#[derive(Default)]
pub(crate) struct Uses {
    files: Vec<(Vec<String>, Vec<Vec<String>>)>,
}

impl Uses {
    pub(crate) fn add(&mut self, file: &str, text: &str) {
        let Some(path) = file.strip_prefix(SOURCES) else { return };
        if path.contains("tests") {
            return;
        }
        let path = module_path(path);
        let masked: Vec<String> =
            mask(text).lines().take(code_lines(text)).map(str::to_owned).collect();
        let used = paths(&masked.join("\n"), &path);
        self.files.push((path, used));
    }

    /// One finding for each module that can reach itself.
    pub(crate) fn check(&self) -> Vec<Finding> {
        let in_cycles: BTreeSet<String> =
            DEPTHS.iter().flat_map(|depth| self.graph(*depth).modules_in_cycles()).collect();
        let findings = in_cycles.iter().map(|module| {
            let message = format!("{SOURCES}: module `{module}` uses itself through others");
            Finding::new("module-cycle", SOURCES.trim_end_matches('/'), 1, message)
        });
        findings.collect()
    }

    fn graph(&self, depth: usize) -> ModuleGraph {
        let mut graph = ModuleGraph::default();
        for (path, used) in &self.files {
            let here = cut(path, depth);
            let edges = graph.edges.entry(here.clone()).or_default();
            edges.extend(used.iter().map(|used| cut(used, depth)));
            graph.modules.insert(here);
        }
        graph
    }
}

/// The modules that each module uses.
#[derive(Default)]
struct ModuleGraph {
    edges: BTreeMap<String, BTreeSet<String>>,
    modules: BTreeSet<String>,
}

impl ModuleGraph {
    fn modules_in_cycles(&self) -> Vec<String> {
        let modules = self.modules.iter();
        modules.filter(|module| self.reaches_itself(module)).cloned().collect()
    }

    fn reaches_itself(&self, start: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&str> = self.used_by(start).collect();
        while let Some(module) = next.pop() {
            if module == start {
                return true;
            }
            if seen.insert(module) {
                next.extend(self.used_by(module));
            }
        }
        false
    }

    fn used_by<'a>(&'a self, module: &'a str) -> impl Iterator<Item = &'a str> {
        let used = self.edges.get(module).into_iter().flatten();
        used.filter_map(move |used| {
            // The path may name an item of the module: the module itself is what is known.
            let known = self.known_module(used)?;
            (!is_related(module, known)).then_some(known)
        })
    }

    fn known_module<'a>(&'a self, path: &'a str) -> Option<&'a str> {
        if self.modules.contains(path) {
            return Some(path);
        }
        let (parent, _) = path.rsplit_once("::")?;
        self.modules.contains(parent).then_some(parent)
    }
}

/// Whether one module contains the other, or they are the same.
fn is_related(a: &str, b: &str) -> bool {
    let contains = |outer: &str, inner: &str| inner.starts_with(&format!("{outer}::"));
    a == b || contains(a, b) || contains(b, a)
}

/// `http/auth/keys.rs` is `[http, auth, keys]`.
fn module_path(file: &str) -> Vec<String> {
    file.trim_end_matches(".rs").split('/').map(str::to_owned).collect()
}

fn cut(path: &[String], depth: usize) -> String {
    path.iter().take(depth).cloned().collect::<Vec<_>>().join("::")
}

/// Every path that begins with `crate::` or `super::`, from the root. Groups in braces name each
/// of their first words.
fn paths(code: &str, here: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        found.extend(expand(&code[at + "crate::".len()..], &[]));
    }
    for (at, _) in code.match_indices("super::") {
        let mut base = here[..here.len().saturating_sub(1)].to_vec();
        let mut rest = &code[at + "super::".len()..];
        // `super::super::x` matches twice; the inner match alone would begin one level too low.
        if code[..at].ends_with("super::") {
            continue;
        }
        while let Some(after) = rest.strip_prefix("super::") {
            base.pop();
            rest = after;
        }
        found.extend(expand(rest, &base));
    }
    found
}

fn expand(rest: &str, base: &[String]) -> Vec<Vec<String>> {
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let (names, after) = rest.split_at(end.unwrap_or(rest.len()));
    let path: Vec<String> = base.iter().cloned().chain(words(names)).collect();
    let Some(group) = after.strip_prefix('{') else { return vec![path] };
    let inside = group.split('}').next().unwrap_or("");
    inside.split(',').flat_map(|part| expand(part.trim(), &path)).collect()
}

fn words(path: &str) -> impl Iterator<Item = String> {
    path.split("::").filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(files: &[(&str, &str)]) -> usize {
        let mut uses = Uses::default();
        for (file, text) in files {
            uses.add(&format!("{SOURCES}{file}"), text);
        }
        uses.check().len()
    }

    #[test]
    fn two_modules_that_use_each_other_are_a_cycle() {
        let a = ("http/a.rs", "use super::b::B;\n");
        let b = ("http/b.rs", "use crate::http::{a::A, c};\n");
        assert_eq!(cycles(&[a, b, ("http/c.rs", "")]), 2);
        assert_eq!(cycles(&[a, ("http/b.rs", "use std::fmt;\n")]), 0);
    }

    #[test]
    fn parents_folders_and_comments_do_not_count() {
        let parent = ("http.rs", "use crate::http::a::A;\n");
        assert_eq!(cycles(&[parent, ("http/a.rs", "use super::Front;\n")]), 0);
        let inside = [("http/a.rs", "use self::b::B;\n"), ("http/a/b.rs", "use super::A;\n")];
        assert_eq!(cycles(&inside), 0);
        assert_eq!(
            cycles(&[("http/a.rs", "// use super::b;\n"), ("http/b.rs", "use super::a;\n")]),
            0
        );
    }

    #[test]
    fn a_longer_way_round_is_a_cycle_too() {
        let files = [
            ("http/a/x.rs", "use super::super::b::B;\n"),
            ("http/a.rs", ""),
            ("http/b.rs", "fn f() { crate::c::g() }\n"),
            ("c.rs", "use crate::http::a::A;\n"),
        ];
        // `http` and `c`, and inside `http` both `a` and `b`.
        assert_eq!(cycles(&files), 4);
    }

    #[test]
    fn folders_that_use_each_other_are_a_cycle_although_their_files_are_not() {
        let files = [
            ("http/a.rs", "use crate::log::x::X;\n"),
            ("log/x.rs", ""),
            ("log/y.rs", "use crate::http::b::B;\n"),
            ("http/b.rs", ""),
        ];
        assert_eq!(cycles(&files), 2);
    }
}
