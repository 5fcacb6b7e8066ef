//! One row per case: printed, and appended to a file as a line of JSON.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use serde_json::json;

use super::bounds::Bounds;
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
    let figure = describe(bounds, found);
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
        "bound": bounds.describe(),
        "figure": figure,
        "violations": violations,
        "seconds": took.as_secs(),
    });
    row["measures"] = found.to_json();
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    writeln!(file, "{row}").unwrap();
}

/// The figures in words, for the table.
fn describe(bounds: &Bounds, found: &Measures) -> String {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let Measures { worst, sum, degraded, .. } = found;
    let mut words =
        format!("{} over at worst, {} in all; exact {}", worst.all, sum.all, worst.exact);
    words += &format!(", of used-up keys after 1 s {}", sum.late);
    words += &match degraded.count {
        0 => " · none degraded".to_owned(),
        count => format!(" · {count} degraded in {}", seconds(degraded.length())),
    };
    words += &format!(
        " · recovered after {}, locks {}",
        seconds(found.recovered),
        seconds(found.locks_recovered)
    );
    words += &format!(" · {}", found.acts.describe());
    if bounds.records_fail {
        let again = found.durable_again.map_or("never".to_owned(), seconds);
        words += &format!(
            " · {} of {} durable blocks missing, durable again after {again}",
            found.missing_blocks, found.durable_blocks
        );
    }
    let blocked = found.blocked_passed + found.unseen_passed;
    let twice = [found.payment.double, found.resource.double];
    let falling = found.payment.falling + found.resource.falling;
    words += &format!(" · two holders {} (`payment` {})", twice[1], twice[0]);
    if blocked + falling + found.not_200 > 0 {
        words += &format!(
            " · {blocked} blocked passed, {falling} fences fell, {} not 200",
            found.not_200
        );
    }
    words + &format!(" · longest answer {} ms", found.longest.as_millis())
}
