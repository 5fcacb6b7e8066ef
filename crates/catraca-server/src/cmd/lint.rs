//! `catraca lint`: prints the diagnostics of catalogs, as text or JSON.

mod against;
mod explain_code;
mod secret_file;

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use catraca::{Catalog, LoadError};
use catraca_core::catalog::diagnostic::{Diagnostic, Severity};
use serde::Serialize;

use against::RemoteBlock;

use crate::args::{LintArgs, Output};
use crate::config;
use crate::exit::Exit;
use crate::render::{Paint, StdoutPipe, count_noun, diagnostic};

/// The result of reading one catalog.
struct Finding {
    file: String,
    catalog: Option<Catalog>,
    diagnostics: Vec<Diagnostic>,
    /// The blocks in force on a server that the catalog would orphan, if one was asked.
    orphaned: Option<OrphanCounts>,
}

/// Blocks in force that a catalog would orphan.
#[derive(Serialize)]
struct OrphanCounts {
    count: usize,
    /// Each policy with the reason, once.
    why: Vec<String>,
}

/// Lints every file and prints each result as soon as the file is read.
pub fn run(args: &LintArgs) -> Result<Exit> {
    let mut out = StdoutPipe::stdout();
    if let Some(code) = &args.explain {
        explain_code::print(code, &mut out)?;
        return Ok(Exit::Yes);
    }
    let blocks = against::fetch(args)?;
    let mut fine = true;
    let mut first = None;
    // clap lets only one of the two be given.
    for file in args.files.iter().chain(&args.catalog) {
        let mut finding = read(file)?;
        finding.orphaned = blocks.as_ref().and_then(|blocks| finding.count_orphans(blocks));
        match args.output {
            Output::Human => finding.print(&mut out)?,
            Output::Json => finding.print_json(&mut out)?,
        }
        let is_warned = finding.warnings() > 0
            || finding.orphaned.as_ref().is_some_and(|found| found.count > 0);
        fine &= finding.errors() == 0 && !(args.strict && is_warned);
        first = first.or(finding.diagnostics.first().map(|one| one.code));
    }
    if let (Some(code), Output::Human) = (first, args.output) {
        let paint = Paint::for_stdout();
        let more = format!("More on a code: catraca lint --explain {code}");
        writeln!(out, "{}", paint.faint(&more))?;
    }
    Ok(Exit::yes_or(fine, Exit::No))
}

fn read(path: &Path) -> Result<Finding> {
    let file = path.display().to_string();
    match config::load(path) {
        Ok(reading) => {
            let mut diagnostics = reading.warnings;
            let folder = path.parent().unwrap_or(Path::new(""));
            diagnostics.extend(secret_file::warning(&reading.process, folder));
            let catalog = Some(reading.catalog);
            Ok(Finding { file, catalog, diagnostics, orphaned: None })
        }
        Err(LoadError::Invalid(diagnostics)) => {
            Ok(Finding { file, catalog: None, diagnostics: diagnostics.all, orphaned: None })
        }
        Err(other) => bail!(other),
    }
}

impl Finding {
    fn errors(&self) -> usize {
        self.count(Severity::Error)
    }

    fn warnings(&self) -> usize {
        self.count(Severity::Warning)
    }

    /// Counts the blocks that a valid catalog would orphan.
    fn count_orphans(&self, blocks: &[RemoteBlock]) -> Option<OrphanCounts> {
        let catalog = self.catalog.as_ref()?;
        let found: Vec<_> = blocks.iter().filter_map(|one| one.orphan_reason(catalog)).collect();
        let mut why: Vec<String> =
            found.iter().map(|(policy, reason)| format!("{policy}: {reason}")).collect();
        why.sort();
        why.dedup();
        Some(OrphanCounts { count: found.len(), why })
    }

    fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|one| one.severity == severity).count()
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        let paint = Paint::for_stdout();
        for one in &self.diagnostics {
            writeln!(out, "{}\n", diagnostic::render(one, paint))?;
        }
        if let Some(orphaned) = self.orphaned.as_ref().filter(|orphaned| orphaned.count > 0) {
            let blocks = count_noun(orphaned.count, "block", "blocks");
            writeln!(out, "orphans {blocks} in force, which would deny no request:")?;
            for why in &orphaned.why {
                writeln!(out, "  {why}")?;
            }
            writeln!(out)?;
        }
        let verdict = match self.errors() {
            0 => paint.good("ok"),
            _ => paint.bad("refused"),
        };
        writeln!(out, "{}: {verdict}: {}", self.file, self.summary())?;
        Ok(())
    }

    /// The size of a valid catalog, or the number of errors.
    fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let Some(catalog) = &self.catalog {
            parts.push(count_noun(catalog.policies.len(), "policy", "policies"));
            parts.push(count_noun(catalog.gate_names.len(), "gate", "gates"));
            parts.push(count_noun(catalog.routes.len(), "route", "routes"));
            parts.push(format!("revision {}", catalog.revision));
        } else {
            parts.push(count_noun(self.errors(), "error", "errors"));
        }
        if self.warnings() > 0 {
            parts.push(count_noun(self.warnings(), "warning", "warnings"));
        }
        parts.join(", ")
    }

    fn print_json(&self, out: &mut impl Write) -> Result<()> {
        let catalog = self.catalog.as_ref();
        let json = FindingJson {
            file: &self.file,
            ok: catalog.is_some(),
            revision: catalog.map(|catalog| &*catalog.revision),
            policies: catalog.map(|catalog| catalog.policies.len()),
            gates: catalog.map(|catalog| catalog.gate_names.len()),
            routes: catalog.map(|catalog| catalog.routes.len()),
            errors: self.errors(),
            warnings: self.warnings(),
            diagnostics: self.diagnostics.iter().map(DiagnosticJson::new).collect(),
            orphaned: self.orphaned.as_ref(),
        };
        serde_json::to_writer(&mut *out, &json)?;
        writeln!(out)?;
        Ok(())
    }
}

#[derive(Serialize)]
struct FindingJson<'a> {
    file: &'a str,
    ok: bool,
    revision: Option<&'a str>,
    policies: Option<usize>,
    gates: Option<usize>,
    routes: Option<usize>,
    errors: usize,
    warnings: usize,
    diagnostics: Vec<DiagnosticJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orphaned: Option<&'a OrphanCounts>,
}

#[derive(Serialize)]
struct DiagnosticJson<'a> {
    severity: &'a str,
    code: &'a str,
    file: &'a str,
    line: usize,
    column: usize,
    text: &'a str,
    message: &'a str,
    fix: Option<&'a str>,
}

impl<'a> DiagnosticJson<'a> {
    fn new(diagnostic: &'a Diagnostic) -> Self {
        Self {
            severity: diagnostic.severity.as_str(),
            code: diagnostic.code,
            file: &diagnostic.file,
            line: diagnostic.line,
            column: diagnostic.column,
            text: &diagnostic.text,
            message: &diagnostic.message,
            fix: diagnostic.fix.as_deref(),
        }
    }
}
