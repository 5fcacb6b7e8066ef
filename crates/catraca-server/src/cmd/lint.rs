//! `catraca lint`: everything that is wrong with a catalog, and where.
//!
//! Must not judge: core's reader does.

mod page;

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use catraca::{Catalog, LoadError};
use catraca_core::catalog::diagnostic::{Diagnostic, Severity};
use serde::Serialize;

use crate::args::{Lint, Output};
use crate::exit::Exit;
use crate::render::{Outlet, Paint, counted, diagnostic};

/// What one catalog came to.
struct Finding {
    file: String,
    catalog: Option<Catalog>,
    found: Vec<Diagnostic>,
}

/// Lints every file and prints each as soon as it is read.
pub fn run(args: &Lint) -> Result<Exit> {
    let mut out = Outlet::stdout();
    if let Some(code) = &args.explain {
        page::print(code, &mut out)?;
        return Ok(Exit::Yes);
    }
    let mut fine = true;
    let mut first = None;
    for file in &args.files {
        let finding = read(file)?;
        match args.output {
            Output::Human => finding.print(&mut out)?,
            Output::Json => finding.print_json(&mut out)?,
        }
        fine &= finding.errors() == 0 && !(args.strict && finding.warnings() > 0);
        first = first.or(finding.found.first().map(|one| one.code));
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
    match catraca::load(path) {
        Ok(reading) => {
            Ok(Finding { file, catalog: Some(reading.catalog), found: reading.warnings })
        }
        Err(LoadError::Wrong(found)) => Ok(Finding { file, catalog: None, found: found.all }),
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

    fn count(&self, severity: Severity) -> usize {
        self.found.iter().filter(|one| one.severity == severity).count()
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        let paint = Paint::for_stdout();
        for one in &self.found {
            writeln!(out, "{}\n", diagnostic::render(one, paint))?;
        }
        let verdict = match self.errors() {
            0 => paint.good("ok"),
            _ => paint.bad("refused"),
        };
        writeln!(out, "{}: {verdict}: {}", self.file, self.in_short())?;
        Ok(())
    }

    /// What the catalog holds, or how much is wrong with it.
    fn in_short(&self) -> String {
        let mut parts = Vec::new();
        if let Some(catalog) = &self.catalog {
            parts.push(counted(catalog.policies.len(), "policy", "policies"));
            parts.push(counted(catalog.gate_names.len(), "gate", "gates"));
            parts.push(counted(catalog.routes.len(), "route", "routes"));
            parts.push(format!("revision {}", catalog.revision));
        } else {
            parts.push(counted(self.errors(), "error", "errors"));
        }
        if self.warnings() > 0 {
            parts.push(counted(self.warnings(), "warning", "warnings"));
        }
        parts.join(", ")
    }

    fn print_json(&self, out: &mut impl Write) -> Result<()> {
        let catalog = self.catalog.as_ref();
        let shape = FindingShape {
            file: &self.file,
            ok: catalog.is_some(),
            revision: catalog.map(|catalog| &*catalog.revision),
            policies: catalog.map(|catalog| catalog.policies.len()),
            gates: catalog.map(|catalog| catalog.gate_names.len()),
            routes: catalog.map(|catalog| catalog.routes.len()),
            errors: self.errors(),
            warnings: self.warnings(),
            diagnostics: self.found.iter().map(DiagnosticShape::of).collect(),
        };
        serde_json::to_writer(&mut *out, &shape)?;
        writeln!(out)?;
        Ok(())
    }
}

#[derive(Serialize)]
struct FindingShape<'a> {
    file: &'a str,
    ok: bool,
    revision: Option<&'a str>,
    policies: Option<usize>,
    gates: Option<usize>,
    routes: Option<usize>,
    errors: usize,
    warnings: usize,
    diagnostics: Vec<DiagnosticShape<'a>>,
}

#[derive(Serialize)]
struct DiagnosticShape<'a> {
    severity: &'a str,
    code: &'a str,
    file: &'a str,
    line: usize,
    column: usize,
    text: &'a str,
    message: &'a str,
    fix: Option<&'a str>,
}

impl<'a> DiagnosticShape<'a> {
    fn of(found: &'a Diagnostic) -> Self {
        Self {
            severity: found.severity.as_str(),
            code: found.code,
            file: &found.file,
            line: found.line,
            column: found.column,
            text: &found.text,
            message: &found.message,
            fix: found.fix.as_deref(),
        }
    }
}
