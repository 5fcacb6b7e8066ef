//! Parses a scenario file. All of it, catalogs included, is checked before a scenario runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use catraca::{Catalog, Includes, LoadError, load_with};
use catraca_core::catalog;
use catraca_core::catalog::diagnostic::{Diagnostic, Diagnostics};
use catraca_core::catalog::read::ParsedCatalog;
use catraca_core::located::scalar::report_parse_error;
use catraca_core::located::{Node, Report, SourceFile, SourceLocation, entries};
use catraca_core::time::Time;
use toml::de::DeTable;

use super::fields::{Fields, moment, pairs, text};
use super::instant;
use super::step::{self, Step};
use super::{CatalogFile, Scenario, Suite};

const ROOT: [&str; 4] = ["catalog", "catalog_text", "variables", "scenario"];
const SCENARIO: [&str; 7] =
    ["name", "covers", "start", "catalog", "catalog_text", "variables", "step"];

/// The default start of a scenario.
const START: &str = "2026-01-01T00:00:00Z";

/// The state of parsing: the errors so far, and the scenario being read.
pub(super) struct Reader<'t> {
    pub report: Report,
    /// The name and the text of the file.
    source: SourceFile<'t>,
    folder: &'t Path,
    /// The start of the scenario being read.
    pub start: Time,
    /// The latest instant of its steps so far.
    pub latest: Time,
    /// The names under which its steps saved tickets so far.
    pub saved_tickets: Vec<String>,
    /// The values of the catalog's variables. The environment is not read, so that a scenario
    /// gives the same result on any machine.
    variables: BTreeMap<String, String>,
    warnings: Vec<Diagnostic>,
    /// The files of catalogs that could be read.
    catalogs: Vec<CatalogFile>,
    /// The errors of catalogs.
    catalog_errors: Vec<Diagnostic>,
}

/// Reads a whole file.
pub(super) fn suite(file: &str, text: &str, folder: &Path) -> Result<Suite, Diagnostics> {
    let mut reader = Reader {
        report: Report::default(),
        source: SourceFile { name: file, text },
        folder,
        start: Time::ZERO,
        latest: Time::ZERO,
        saved_tickets: Vec::new(),
        variables: BTreeMap::new(),
        warnings: Vec::new(),
        catalogs: Vec::new(),
        catalog_errors: Vec::new(),
    };
    let (tree, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let location = SourceLocation { file: 0, start: span.start, end: span.end };
        let message = format!("not TOML: {}", error.message());
        reader.report.error("syntax", location, message, "check quotes, commas and brackets");
    }
    // After a syntax error, the rest of the tree may be misread.
    let scenarios = match errors.is_empty() {
        true => reader.scenarios(tree.get_ref()),
        false => Vec::new(),
    };
    reader.finish(scenarios)
}

impl Reader<'_> {
    /// Fails with all errors, if any, in the order of the text; those of other files last.
    fn finish(self, scenarios: Vec<Scenario>) -> Result<Suite, Diagnostics> {
        let file = self.source.name;
        let mut all = self.report.finish(&[self.source]);
        all.extend(self.catalog_errors);
        all.sort_by_key(|found| (found.file != file, found.line, found.column));
        if all.is_empty() {
            let Self { warnings, catalogs, .. } = self;
            Ok(Suite { file: file.to_owned(), scenarios, warnings, catalogs })
        } else {
            Err(Diagnostics { all })
        }
    }

    fn scenarios(&mut self, root: &DeTable<'_>) -> Vec<Scenario> {
        let start = SourceLocation::start_of(0);
        let entries = entries(0, root);
        let fields = Fields::keep_known(&mut self.report, start, entries, "scenario file", &ROOT);
        let shared = self.catalog(&fields);
        // A catalog that is invalid or missing is reported where it is named.
        let is_named = names_catalog(&fields);
        let list = self.list(&fields, "scenario", "[[scenario]] with a name and its steps");
        let items = list.and_then(|list| list.items(&mut self.report, "[[scenario]] tables"));
        let items = items.unwrap_or_default().into_iter();
        let scenarios: Vec<_> =
            items.filter_map(|item| self.scenario(item, shared.as_ref(), is_named)).collect();
        self.refuse_repeated(&scenarios);
        scenarios
    }

    fn scenario(
        &mut self,
        item: Node<'_>,
        shared: Option<&Arc<Catalog>>,
        is_shared_named: bool,
    ) -> Option<Scenario> {
        let fields = Fields::read(&mut self.report, item, "scenario", &SCENARIO)?;
        let name = fields.text(&mut self.report, "name", "\"what it tests\"");
        let covers = self.covers(&fields);
        let catalog = self.catalog(&fields).or_else(|| shared.cloned());
        if catalog.is_none() && !names_catalog(&fields) && !is_shared_named {
            let message = "the scenario has no catalog";
            let fix = "write catalog = \"catalog.toml\" at the top of the file";
            self.report.error("no-catalog", item.location, message, fix);
        }
        let start = self.begin_scenario(&fields);
        let steps = self.steps(&fields);
        let line = self.line(item.location);
        Some(Scenario {
            name: name?,
            covers: covers?,
            line,
            catalog: catalog?,
            start: start?,
            steps: steps?,
        })
    }

    /// A required list of tables; the error message quotes its `header`.
    fn list<'t>(&mut self, fields: &Fields<'t>, name: &str, header: &str) -> Option<Node<'t>> {
        let found = fields.get(name);
        if found.is_none() {
            let message = format!("there is no {name}");
            self.report.error("missing-field", fields.location, message, format!("add {header}"));
        }
        found
    }

    fn covers(&mut self, fields: &Fields<'_>) -> Option<Vec<String>> {
        let Some(node) = fields.get("covers") else { return Some(Vec::new()) };
        let items = node.items(&mut self.report, "a list of requirements such as [\"002-21\"]")?;
        let texts = items.into_iter().map(|item| {
            text(&mut self.report, item, "a requirement such as \"002-21\"").map(str::to_owned)
        });
        texts.collect::<Vec<_>>().into_iter().collect()
    }

    /// Reads the start, and resets the state that belongs to one scenario.
    fn begin_scenario(&mut self, fields: &Fields<'_>) -> Option<Time> {
        let node = fields.get("start");
        let text = match node {
            Some(node) => {
                moment(&mut self.report, node, "an instant such as 2026-01-01T00:00:00Z")?
            }
            None => START.into(),
        };
        let location = node.map_or(fields.location, |node| node.location);
        let read = Time::parse_rfc3339(&text);
        let start = read
            .map_err(|error| report_parse_error(&mut self.report, "bad-instant", location, &error));
        self.start = start.ok()?;
        self.saved_tickets = Vec::new();
        self.latest = self.start;
        Some(self.start)
    }

    fn steps(&mut self, fields: &Fields<'_>) -> Option<Vec<Step>> {
        let list = self.list(fields, "step", "[[scenario.step]] with a verb such as `check`")?;
        let items = list.items(&mut self.report, "[[scenario.step]] tables")?;
        let steps: Vec<_> = items.into_iter().map(|item| step::read(self, item)).collect();
        let steps: Option<Vec<Step>> = steps.into_iter().collect();
        if steps.as_ref().is_some_and(|steps| !steps.iter().any(Step::expects)) {
            let message = "no step expects anything, so the scenario cannot fail";
            let fix = "add expect = { allowed = true } to a step";
            self.report.error("expects-nothing", fields.location, message, fix);
        }
        steps
    }

    /// The instant of a step.
    pub fn instant(&mut self, node: Node<'_>) -> Option<Time> {
        let text = moment(&mut self.report, node, "an offset such as \"15m\", or RFC 3339")?;
        let read = instant::instant(self.start, &text);
        read.map_err(|why| report_parse_error(&mut self.report, "bad-instant", node.location, &why))
            .ok()
    }

    /// A catalog from the field `catalog` or `catalog_text`.
    fn catalog(&mut self, fields: &Fields<'_>) -> Option<Arc<Catalog>> {
        self.variables = self.variables(fields).unwrap_or_default();
        match (fields.get("catalog"), fields.get("catalog_text")) {
            (Some(node), None) => self.catalog_file(node),
            (None, Some(node)) => self.catalog_text(node),
            (Some(_), Some(node)) => {
                let message = "`catalog_text` beside `catalog`";
                let fix = "keep one: a file's name, or the text itself";
                self.report.error("two-catalogs", node.location, message, fix);
                None
            }
            (None, None) => None,
        }
    }

    /// The values of the variables of the catalog that the same table names.
    fn variables(&mut self, fields: &Fields<'_>) -> Option<BTreeMap<String, String>> {
        let node = fields.get("variables")?;
        if !names_catalog(fields) {
            let message = "`variables` without a catalog beside it";
            let fix = "name the catalog that reads them here too";
            self.report.error("no-catalog", node.location, message, fix);
        }
        let texts = pairs(&mut self.report, node, "a table of texts such as { LIMIT = \"20\" }")?;
        Some(texts.into_iter().collect())
    }

    /// A catalog from a file.
    pub fn catalog_file(&mut self, node: Node<'_>) -> Option<Arc<Catalog>> {
        let name = text(&mut self.report, node, "the name of a file such as \"catalog.toml\"")?;
        let variables = &self.variables;
        let path = self.folder.join(name);
        match load_with(&path, &|name| variables.get(name).cloned()) {
            Ok(parsed) => {
                let file = CatalogFile { path, variables: variables.clone() };
                if !self.catalogs.contains(&file) {
                    self.catalogs.push(file);
                }
                self.accept_catalog(parsed)
            }
            Err(LoadError::Invalid(found)) => self.reject_catalog(found),
            Err(error) => {
                let fix = "name a file relative to this one";
                self.report.error("no-catalog", node.location, error.to_string(), fix);
                None
            }
        }
    }

    /// A catalog from a text in this file. Empty lines before it make the line numbers of its
    /// errors those of this file.
    pub fn catalog_text(&mut self, node: Node<'_>) -> Option<Arc<Catalog>> {
        let text = text(&mut self.report, node, "the text of a catalog")?;
        let written = self.source.text.get(node.location.start..).unwrap_or_default();
        let quotes = written.trim_start_matches(['"', '\'']);
        // TOML drops a newline right after the opening quotes.
        let below = usize::from(quotes.starts_with(['\n', '\r']));
        let padding = "\n".repeat(self.line(node.location) - 1 + below);
        // As if the catalog were a file in the same folder, to which its includes are relative.
        let mut includes = Includes::of(&self.folder.join("catalog_text"));
        let text = padding + text;
        let variables = &self.variables;
        let file = self.source.name;
        let variable = |name: &str| variables.get(name).cloned();
        match catalog::read::read(file, &text, &mut |name| includes.load(name), &variable) {
            Ok(parsed) => self.accept_catalog(parsed),
            Err(found) => self.reject_catalog(found),
        }
    }

    fn accept_catalog(&mut self, parsed: ParsedCatalog) -> Option<Arc<Catalog>> {
        self.warnings.extend(parsed.warnings);
        self.warnings.dedup();
        Some(Arc::new(parsed.catalog))
    }

    fn reject_catalog<T>(&mut self, found: Diagnostics) -> Option<T> {
        self.catalog_errors.extend(found.errors().cloned());
        None
    }

    /// The line of a location, from one.
    pub fn line(&self, location: SourceLocation) -> usize {
        let before = self.source.text.as_bytes().iter().take(location.start);
        1 + before.filter(|byte| **byte == b'\n').count()
    }

    fn refuse_repeated(&mut self, scenarios: &[Scenario]) {
        for (index, scenario) in scenarios.iter().enumerate() {
            if scenarios[..index].iter().any(|earlier| earlier.name == scenario.name) {
                let start = self.source.text.lines().take(scenario.line - 1);
                let start = start.map(|line| line.len() + 1).sum();
                let location = SourceLocation { file: 0, start, end: start };
                let message = format!("two scenarios are named `{}`", scenario.name);
                self.report.error("repeated-name", location, message, "rename one");
            }
        }
    }
}

/// Whether a table names a catalog, valid or not.
fn names_catalog(fields: &Fields<'_>) -> bool {
    ["catalog", "catalog_text"].iter().any(|field| fields.get(field).is_some())
}
