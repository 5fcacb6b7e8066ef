//! Measured figures: how a child hands them over, and how rounds are put side by side.
//! Ratios are taken inside a round and only then summarised, because rounds differ by more than
//! subjects do.

/// Named figures of one measurement.
#[derive(Default, Clone)]
pub struct Figures(Vec<(String, f64)>);

impl Figures {
    /// Adds one figure.
    pub fn put(&mut self, name: &str, value: f64) {
        self.0.push((name.to_owned(), value));
    }

    /// The figure of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }

    /// One `name value` line per figure.
    pub fn to_lines(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
    }

    /// Reads what [`Figures::to_lines`] wrote.
    pub fn from_lines(text: &str) -> Result<Figures, String> {
        let line = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let figures = text.lines().map(|text| line(text).ok_or(format!("invalid line {text:?}")));
        Ok(Figures(figures.collect::<Result<_, _>>()?))
    }
}

/// One measurement of a run.
pub struct Row {
    /// Round, from zero.
    pub round: usize,
    /// Subject's name.
    pub subject: &'static str,
    /// Case's name.
    pub case: String,
    /// What was measured.
    pub figures: Figures,
}

impl Row {
    /// The row as one JSON line.
    pub fn to_json(&self) -> String {
        let figures: String =
            self.figures.0.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
        let round = self.round + 1;
        let subject = self.subject;
        let case = &self.case;
        format!("{{\"round\":{round},\"subject\":\"{subject}\",\"case\":\"{case}\"{figures}}}")
    }
}

/// All measurements of a run.
#[derive(Default)]
pub struct Results {
    /// In the order they were taken.
    pub rows: Vec<Row>,
    /// Rounds begun.
    pub rounds: usize,
}

impl Results {
    /// One figure in one round.
    pub fn get(&self, round: usize, subject: &str, case: &str, figure: &str) -> Option<f64> {
        let own = |row: &&Row| row.round == round && row.subject == subject && row.case == case;
        self.rows.iter().find(own).and_then(|row| row.figures.get(figure))
    }

    /// A value per round, where every round that has one counts.
    pub fn per_round(&self, value: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
        (0..self.rounds).filter_map(value).collect()
    }

    /// Whether anything was measured for that pair.
    pub fn has(&self, subject: &str, case: &str) -> bool {
        self.rows.iter().any(|row| row.subject == subject && row.case == case)
    }
}

/// The median; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        assert_eq!(median(&[4.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
    }

    #[test]
    fn figures_survive_the_trip_between_processes() {
        let mut figures = Figures::default();
        figures.put("ns", 41.25);
        figures.put("foreign", 0.0);
        let back = Figures::from_lines(&figures.to_lines()).expect("own lines");
        assert_eq!((back.get("ns"), back.get("foreign")), (Some(41.25), Some(0.0)));
        assert!(Figures::from_lines("ns forty").is_err());
    }
}
