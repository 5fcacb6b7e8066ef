//! Minutes per part against their budgets, and what they mean.
//!
//! Slowness is a defect like any other: over budget is a warning, twice the budget a failure. Must
//! not run anything.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Result, bail};

/// From this many budgets on, a part has failed.
pub(crate) const PATIENCE: u32 = 2;
/// Above this, a whole run has failed, except a deep one.
pub(crate) const RUN_MAX: Duration = Duration::from_secs(80 * 60);

/// What came of one part.
pub(crate) struct PartResult {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) budget: Duration,
    pub(crate) error: Option<String>,
}

impl PartResult {
    fn has_failed(&self) -> bool {
        self.error.is_some() || self.took >= self.budget * PATIENCE
    }

    fn verdict(&self) -> &'static str {
        match &self.error {
            Some(_) => "FAILED",
            None if self.has_failed() => "FAILED: TWICE ITS BUDGET",
            None if self.took > self.budget => "ok, but OVER BUDGET",
            None => "ok",
        }
    }
}

/// The closing table.
pub(crate) fn table(outcomes: &[PartResult]) -> String {
    let mut text = format!("{:<12} {:>8} {:>8}  verdict\n", "part", "minutes", "budget");
    for outcome in outcomes {
        let line = row(outcome.name, outcome.took, outcome.budget);
        let _ = writeln!(text, "{line}  {}", outcome.verdict());
    }
    let took = outcomes.iter().map(|outcome| outcome.took).sum();
    let budget = outcomes.iter().map(|outcome| outcome.budget).sum();
    let _ = writeln!(text, "{}", row("total", took, budget));
    text
}

/// Repeats every failure at the end of the output, and fails if there is one, or if all parts
/// together took longer than `run_max`.
pub(crate) fn conclude(outcomes: &[PartResult], run_max: Duration) -> Result<()> {
    for outcome in outcomes.iter().filter(|outcome| outcome.took > outcome.budget) {
        println!("WARNING: {} is over its budget", outcome.name);
    }
    let failed: Vec<&PartResult> = outcomes.iter().filter(|outcome| outcome.has_failed()).collect();
    for outcome in &failed {
        println!("{}: {}", outcome.name, outcome.error.as_deref().unwrap_or(outcome.verdict()));
    }
    let names: Vec<&str> = failed.iter().map(|outcome| outcome.name).collect();
    if !names.is_empty() {
        bail!("{} of {} parts failed: {}", names.len(), outcomes.len(), names.join(", "));
    }
    let took: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    if took > run_max {
        let minutes = |span: Duration| span.as_secs() / 60;
        bail!("the run took {} minutes, more than {}", minutes(took), minutes(run_max));
    }
    Ok(())
}

fn row(name: &str, took: Duration, budget: Duration) -> String {
    let minutes = |span: Duration| span.as_secs_f64() / 60.0;
    format!("{name:<12} {:>8.2} {:>8.0}", minutes(took), minutes(budget))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(seconds: u64, error: Option<&str>) -> PartResult {
        PartResult {
            name: "unit",
            took: Duration::from_secs(seconds),
            budget: Duration::from_secs(60),
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn within_the_budget_is_fine() {
        assert_eq!(outcome(60, None).verdict(), "ok");
        assert!(conclude(&[outcome(60, None)], RUN_MAX).is_ok());
    }

    #[test]
    fn over_budget_warns_and_twice_the_budget_fails() {
        assert_eq!(outcome(61, None).verdict(), "ok, but OVER BUDGET");
        assert!(conclude(&[outcome(119, None)], RUN_MAX).is_ok());
        assert!(conclude(&[outcome(120, None)], RUN_MAX).is_err());
    }

    #[test]
    fn one_failed_part_fails_the_run() {
        let outcomes = [outcome(1, None), outcome(1, Some("boom"))];
        let error = conclude(&outcomes, RUN_MAX).unwrap_err();
        assert_eq!(error.to_string(), "1 of 2 parts failed: unit");
    }

    #[test]
    fn a_run_of_many_fast_parts_fails_above_its_own_limit() {
        let parts: Vec<PartResult> = (0..3).map(|_| outcome(60, None)).collect();
        assert!(conclude(&parts, Duration::from_secs(180)).is_ok());
        let error = conclude(&parts, Duration::from_secs(179)).unwrap_err();
        assert_eq!(error.to_string(), "the run took 3 minutes, more than 2");
    }

    #[test]
    fn the_table_shows_minutes_budgets_and_the_total() {
        let text = table(&[outcome(30, None), outcome(90, None)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "unit             0.50        1  ok");
        assert_eq!(lines[3], "total            2.00        2");
    }
}
