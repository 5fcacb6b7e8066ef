//! From text to scenarios: everything is read and checked before anything runs.
//!
//! Must not run a step, nor read a file other than the catalogs that are named.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use catraca::{Catalog, Includes, LoadError, load_with};
use catraca_core::catalog;
use catraca_core::catalog::diagnostic::{Diagnostic, Diagnostics};
use catraca_core::catalog::read::Reading;
use catraca_core::time::Time;
use toml::de::DeTable;

use super::instant;
use super::node::{Desk, Fields, Node, Place};
use super::step::{self, Step};
use super::{Scenario, Suite};

const ROOT: [&str; 4] = ["catalog", "catalog_text", "variables", "scenario"];
const SCENARIO: [&str; 7] =
    ["name", "covers", "start", "catalog", "catalog_text", "variables", "step"];

/// When a scenario starts unless it says.
const START: &str = "2026-01-01T00:00:00Z";

/// What readers share: the desk for mistakes, and what the scenario has so far.
pub(super) struct Reader<'t> {
    pub desk: Desk<'t>,
    pub folder: &'t Path,
    /// The start of the scenario being read.
    pub start: Time,
    /// The latest instant of its steps so far.
    pub latest: Time,
    /// The tickets that its steps have kept so far.
    pub kept: Vec<String>,
    /// What variables hold in the catalog that is read; those of the process do not count.
    variables: BTreeMap<String, String>,
    warnings: Vec<Diagnostic>,
}

/// Reads a whole file.
pub(super) fn suite(file: &str, text: &str, folder: &Path) -> Result<Suite, Diagnostics> {
    let mut desk = Desk::new(file, text);
    let (tree, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let place = Place { start: span.start, end: span.end };
        let message = format!("not TOML: {}", error.message());
        desk.error("syntax", place, message, "check quotes, commas and brackets".to_owned());
    }
    desk.finish()?;
    let (start, latest) = (Time::ZERO, Time::ZERO);
    let (kept, warnings) = (Vec::new(), Vec::new());
    let variables = BTreeMap::new();
    let mut reader = Reader { desk, folder, start, latest, kept, variables, warnings };
    let scenarios = reader.scenarios(tree.get_ref());
    reader.desk.finish()?;
    Ok(Suite { file: file.to_owned(), scenarios, warnings: reader.warnings })
}

impl Reader<'_> {
    fn scenarios(&mut self, root: &DeTable<'_>) -> Vec<Scenario> {
        let fields = Fields::root(&mut self.desk, root, &ROOT);
        let shared = self.catalog(&fields);
        let list = self.list(&fields, "scenario", "[[scenario]] with a name and its steps");
        let items = list.and_then(|list| list.items(&mut self.desk, "[[scenario]] tables"));
        let items = items.unwrap_or_default().into_iter();
        let scenarios: Vec<_> =
            items.filter_map(|item| self.scenario(item, shared.as_ref())).collect();
        self.refuse_repeated(&scenarios);
        scenarios
    }

    fn scenario(&mut self, item: Node<'_>, shared: Option<&Arc<Catalog>>) -> Option<Scenario> {
        let fields = Fields::read(&mut self.desk, item, "scenario", &SCENARIO)?;
        let name = fields.text(&mut self.desk, "name", "\"what it shows\"");
        let covers = self.covers(&fields);
        let catalog = self.catalog(&fields).or_else(|| shared.cloned());
        let given = ["catalog", "catalog_text"].iter().any(|field| fields.get(field).is_some());
        if catalog.is_none() && !given {
            let message = "there is no catalog to ask".to_owned();
            let fix = "write catalog = \"catalog.toml\" at the top of the file".to_owned();
            self.desk.error("no-catalog", item.place, message, fix);
        }
        let start = self.begin(&fields);
        let steps = self.steps(&fields);
        let line = self.desk.line(item.place);
        let (name, covers, catalog) = (name?, covers?, catalog?);
        Some(Scenario { name, covers, line, catalog, start: start?, steps: steps? })
    }

    /// A list of tables that must be there; `header` says how it is opened.
    fn list<'t>(&mut self, fields: &Fields<'t>, name: &str, header: &str) -> Option<Node<'t>> {
        let found = fields.get(name);
        if found.is_none() {
            let message = format!("there is no {name}");
            self.desk.error("missing-field", fields.place, message, format!("add {header}"));
        }
        found
    }

    fn covers(&mut self, fields: &Fields<'_>) -> Option<Vec<String>> {
        let Some(node) = fields.get("covers") else { return Some(Vec::new()) };
        let items = node.items(&mut self.desk, "a list of requirements such as [\"002-21\"]")?;
        let texts = items.into_iter().map(|item| {
            item.text(&mut self.desk, "a requirement such as \"002-21\"").map(str::to_owned)
        });
        texts.collect::<Vec<_>>().into_iter().collect()
    }

    fn begin(&mut self, fields: &Fields<'_>) -> Option<Time> {
        let node = fields.get("start");
        let text = match node {
            Some(node) => node.moment(&mut self.desk, "an instant such as 2026-01-01T00:00:00Z")?,
            None => START.into(),
        };
        let place = node.map_or(fields.place, |node| node.place);
        let read = Time::parse_rfc3339(&text);
        let start = read.map_err(|error| self.refuse("bad-instant", place, &error.to_string()));
        (self.start, self.kept) = (start.ok()?, Vec::new());
        self.latest = self.start;
        Some(self.start)
    }

    fn steps(&mut self, fields: &Fields<'_>) -> Option<Vec<Step>> {
        let list = self.list(fields, "step", "[[scenario.step]] with a verb such as `check`")?;
        let items = list.items(&mut self.desk, "[[scenario.step]] tables")?;
        let steps: Vec<_> = items.into_iter().map(|item| step::read(self, item)).collect();
        let steps: Option<Vec<Step>> = steps.into_iter().collect();
        if steps.as_ref().is_some_and(|steps| !steps.iter().any(Step::expects)) {
            let message = "no step expects anything, so the scenario cannot fail".to_owned();
            let fix = "add expect = { allowed = true } to a step".to_owned();
            self.desk.error("expects-nothing", fields.place, message, fix);
        }
        steps
    }

    /// An instant of a step, not before those above it.
    pub fn instant(&mut self, node: Node<'_>) -> Option<Time> {
        let text = node.moment(&mut self.desk, "an offset such as \"15m\", or RFC 3339")?;
        let read = instant::instant(self.start, &text);
        read.map_err(|why| self.refuse("bad-instant", node.place, &why)).ok()
    }

    /// A catalog from the field `catalog` or `catalog_text`.
    fn catalog(&mut self, fields: &Fields<'_>) -> Option<Arc<Catalog>> {
        self.variables = self.variables(fields).unwrap_or_default();
        match (fields.get("catalog"), fields.get("catalog_text")) {
            (Some(node), None) => self.catalog_file(node),
            (None, Some(node)) => self.catalog_text(node),
            (Some(_), Some(node)) => {
                let message = "`catalog_text` beside `catalog`".to_owned();
                let fix = "keep one: a file's name, or the text itself".to_owned();
                self.desk.error("two-catalogs", node.place, message, fix);
                None
            }
            (None, None) => None,
        }
    }

    /// Texts by the names of variables, for the catalog that is named beside them.
    fn variables(&mut self, fields: &Fields<'_>) -> Option<BTreeMap<String, String>> {
        let node = fields.get("variables")?;
        if !["catalog", "catalog_text"].iter().any(|field| fields.get(field).is_some()) {
            let message = "`variables` without a catalog beside it".to_owned();
            let fix = "name the catalog that reads them here too".to_owned();
            self.desk.error("no-catalog", node.place, message, fix);
        }
        let texts = node.texts(&mut self.desk, "a table of texts such as { LIMIT = \"20\" }")?;
        Some(texts.into_iter().collect())
    }

    /// A catalog by the name of its file.
    pub fn catalog_file(&mut self, node: Node<'_>) -> Option<Arc<Catalog>> {
        let name = node.text(&mut self.desk, "the name of a file such as \"catalog.toml\"")?;
        let variables = &self.variables;
        match load_with(&self.folder.join(name), &|name| variables.get(name).cloned()) {
            Ok(reading) => self.keep(reading),
            Err(LoadError::Wrong(found)) => self.wrong(found),
            Err(error) => {
                let fix = "name a file relative to this one".to_owned();
                self.desk.error("no-catalog", node.place, error.to_string(), fix);
                None
            }
        }
    }

    /// A catalog as a text; what is wrong with it is found at its lines in this file.
    pub fn catalog_text(&mut self, node: Node<'_>) -> Option<Arc<Catalog>> {
        let text = node.text(&mut self.desk, "the text of a catalog")?;
        let written = self.desk.text.get(node.place.start..).unwrap_or_default();
        let quotes = written.trim_start_matches(['"', '\'']);
        let below = usize::from(quotes.starts_with(['\n', '\r']));
        let padding = "\n".repeat(self.desk.line(node.place) - 1 + below);
        // Named like a neighbour, so that includes count from the same folder.
        let mut includes = Includes::of(&self.folder.join("catalog_text"));
        let text = padding + text;
        let (variables, file) = (&self.variables, self.desk.file);
        let variable = |name: &str| variables.get(name).cloned();
        match catalog::read::read(file, &text, &mut |name| includes.load(name), &variable) {
            Ok(reading) => self.keep(reading),
            Err(found) => self.wrong(found),
        }
    }

    fn keep(&mut self, reading: Reading) -> Option<Arc<Catalog>> {
        self.warnings.extend(reading.warnings);
        self.warnings.dedup();
        Some(Arc::new(reading.catalog))
    }

    fn wrong<T>(&mut self, found: Diagnostics) -> Option<T> {
        self.desk.add(found.errors().cloned());
        None
    }

    /// Reports what a leaf reader says, which puts what to write after the last colon.
    pub fn refuse(&mut self, code: &'static str, place: Place, says: &str) {
        let (message, fix) = says.rsplit_once(": ").unwrap_or((says, "see the line above"));
        self.desk.error(code, place, message.to_owned(), fix.to_owned());
    }

    fn refuse_repeated(&mut self, scenarios: &[Scenario]) {
        for (at, scenario) in scenarios.iter().enumerate() {
            if scenarios[..at].iter().any(|earlier| earlier.name == scenario.name) {
                let start = self.desk.text.lines().take(scenario.line - 1);
                let start = start.map(|line| line.len() + 1).sum();
                let place = Place { start, end: start };
                let message = format!("two scenarios are named `{}`", scenario.name);
                self.desk.error("repeated-name", place, message, "rename one".to_owned());
            }
        }
    }
}
