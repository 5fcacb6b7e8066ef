//! One row per case: printed, and appended to a file as a line of JSON.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use catraca_conformance::faults::COLUMNS;
use serde_json::json;

use super::bounds::Bounds;
use super::figures::cells;
use super::measures::Measures;
use super::run::Case;

/// The environment variable with the path of the file.
const REPORT: &str = "CATRACA_FAULTS_REPORT";

/// Prints the row of a case and appends it to the report.
pub fn write(
    case: &Case,
    bounds: &Bounds,
    found: &Measures,
    violations: &[String],
    took: Duration,
) {
    let cells = cells(bounds, found);
    let words = COLUMNS.iter().zip(&cells).map(|(column, cell)| format!("{column}: {cell}"));
    let figure = words.collect::<Vec<String>>().join(" · ");
    let verdict = if violations.is_empty() { "ok" } else { "EXCEEDED" };
    println!("{verdict} {}: {} · {figure}", case.name, case.fault);
    for violation in violations {
        println!("   exceeded: {violation}");
    }
    let Some(file) = std::env::var_os(REPORT) else { return };
    let mut row = json!({
        "case": case.name,
        "topology": case.topology,
        "fault": case.fault,
        "cells": cells,
        "figure": figure,
        "violations": violations,
        "seconds": took.as_secs(),
    });
    row["measures"] = found.to_json();
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    writeln!(file, "{row}").unwrap();
}
