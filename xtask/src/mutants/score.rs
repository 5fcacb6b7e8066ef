//! The result of a sample: how many mutants the tests noticed, and which they missed.

use std::fmt::Write;

/// What became of the mutants of a sample.
#[derive(Debug, Default)]
pub(super) struct Score {
    pub(super) caught: usize,
    /// A test did not end.
    pub(super) timeout: usize,
    /// The mutant did not compile.
    pub(super) unviable: usize,
    /// The short names of the survivors.
    pub(super) missed: Vec<String>,
}

impl Score {
    /// The mutants that the tests noticed, of a hundred that they could notice. A test that never
    /// ends has noticed.
    pub(super) fn percent(&self, explanations: &str) -> usize {
        let noticed = self.caught + self.timeout;
        let survivors = self.missed.iter().filter(|name| !is_explained(name, explanations)).count();
        (100 * noticed).checked_div(noticed + survivors).unwrap_or(100)
    }

    pub(super) fn report(&self, explanations: &str) -> String {
        let mut text = format!(
            "{} caught, {} missed, {} unviable, {} timeout: {}%\n",
            self.caught,
            self.missed.len(),
            self.unviable,
            self.timeout,
            self.percent(explanations)
        );
        for name in &self.missed {
            let verdict = if is_explained(name, explanations) { "explained" } else { "SURVIVED" };
            let _ = writeln!(text, "{verdict}: {name}");
        }
        text
    }
}

/// A document explains a survivor if it names it as code.
fn is_explained(name: &str, explanations: &str) -> bool {
    explanations.contains(&format!("`{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explained_survivor_does_not_count() {
        let missed = vec!["c/a.rs: replace < with <= in b".to_owned(), "c/a.rs: d".to_owned()];
        let score = Score { caught: 5, timeout: 1, unviable: 2, missed };
        assert_eq!(score.percent(""), 75);
        let explanations = "| `c/a.rs: d` | the same value |";
        assert_eq!(score.percent(explanations), 85);
        let expected = "5 caught, 2 missed, 2 unviable, 1 timeout: 85%\n\
                        SURVIVED: c/a.rs: replace < with <= in b\n\
                        explained: c/a.rs: d\n";
        assert_eq!(score.report(explanations), expected);
    }
}
