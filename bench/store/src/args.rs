//! What to measure, from the command line.

/// How to use it.
pub const HELP: &str = "\
cargo xtask bench store [--rounds N] [--seconds S] [--quick]

  --rounds N    rounds, each with every subject once (9)
  --seconds S   how long each subject runs in a round (2)
  --quick       a smoke run: shows that it works, proves nothing
";

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds, each with every subject once.
    pub rounds: usize,
    /// How long each subject runs in a round.
    pub seconds: f64,
    /// Keys of the large case.
    pub many: usize,
    /// Whether it proves nothing.
    pub quick: bool,
}

/// Reads the arguments; nothing if help was asked for.
pub fn read(args: impl Iterator<Item = String>) -> Result<Option<Plan>, String> {
    let mut plan = Plan { rounds: 9, seconds: 2.0, many: 1_000_000, quick: false };
    let mut args = args;
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--rounds" => plan.rounds = number(&value()?)? as usize,
            "--seconds" => plan.seconds = number(&value()?)?,
            "--quick" => plan = Plan { rounds: 1, seconds: 0.3, many: 20_000, quick: true },
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("what is {other}?\n\n{HELP}")),
        }
    }
    Ok(Some(plan))
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if number > 0.0 { Ok(number) } else { Err(format!("{text} is not above zero")) }
}
