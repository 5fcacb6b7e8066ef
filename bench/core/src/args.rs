//! Reads the command line. Knows no subject and no case beyond their names.

/// What `--help` prints.
pub const HELP: &str = "\
bench-core: cost of a decision and bytes per key, side by side

  --rounds N       interleaved rounds (default 5; 1 with --quick)
  --quick          a smoke run: fewer decisions per case; its figures prove nothing
  --only A,B       subjects whose name starts with A or B (references are kept only if named)
  --cases A,B      cases whose name starts with A or B: hot, 1k, 100k, 1m (each -1 or -2
                   threads), fill, steps, window
  --json FILE      also write one JSON line per measurement; - prints them instead of tables
  --instructions   count the instructions of a decision under valgrind instead
  --list           print subjects and cases
  --help           this text
";

/// What the process was asked to be.
pub enum Order {
    /// Print the help text.
    Help,
    /// Measure one (subject, case) and print its figures: the hidden form.
    Measure(Job),
    /// Make decisions and print nothing: the hidden form under valgrind.
    Decide {
        /// Name of the subject.
        subject: String,
        /// How many decisions.
        decisions: u64,
    },
    /// Run the rounds and report.
    Conduct(Plan),
}

/// One measurement, as the conductor hands it to a child process.
pub struct Job {
    /// Name of the subject.
    pub subject: String,
    /// Name of the case.
    pub case: String,
    /// Fewer decisions.
    pub quick: bool,
}

/// A whole run.
#[derive(Default)]
pub struct Plan {
    /// How often every (subject, case) is measured.
    pub rounds: usize,
    /// Fewer decisions.
    pub quick: bool,
    /// Name prefixes of the subjects to keep; empty keeps all.
    pub only: Vec<String>,
    /// Name prefixes of the cases to keep; empty keeps all.
    pub cases: Vec<String>,
    /// Where JSON lines go.
    pub json: Option<String>,
    /// Count instructions instead of time.
    pub instructions: bool,
    /// Only list names.
    pub list: bool,
}

/// The first argument of a child process; not part of the public command line.
pub const CHILD: &str = "--measure-one";

/// The first argument of a child process whose instructions are counted.
pub const DECIDE: &str = "--decide";

/// Reads the arguments after the program's name.
pub fn read(args: impl Iterator<Item = String>) -> Result<Order, String> {
    let args: Vec<String> = args.collect();
    match args.first().map(String::as_str) {
        Some(CHILD) => read_job(&args[1..]),
        Some(DECIDE) => read_decide(&args[1..]),
        Some("--help" | "-h") => Ok(Order::Help),
        _ => read_plan(args.into_iter()),
    }
}

fn read_job(args: &[String]) -> Result<Order, String> {
    let [subject, case, pace] = args else {
        return Err(format!("{CHILD} takes SUBJECT CASE quick|full"));
    };
    let subject = subject.clone();
    let case = case.clone();
    Ok(Order::Measure(Job { subject, case, quick: pace == "quick" }))
}

fn read_decide(args: &[String]) -> Result<Order, String> {
    let [subject, decisions] = args else {
        return Err(format!("{DECIDE} takes SUBJECT DECISIONS"));
    };
    let decisions = decisions.parse().map_err(|_| format!("{DECIDE} {decisions:?}: a number"))?;
    Ok(Order::Decide { subject: subject.clone(), decisions })
}

fn read_plan(mut args: impl Iterator<Item = String>) -> Result<Order, String> {
    let mut plan = Plan::default();
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--quick" => plan.quick = true,
            "--instructions" => plan.instructions = true,
            "--list" => plan.list = true,
            "--rounds" => plan.rounds = count(&value()?)?,
            "--only" => plan.only = names(&value()?),
            "--cases" => plan.cases = names(&value()?),
            "--json" => plan.json = Some(value()?),
            _ => return Err(format!("unknown argument {flag:?}; see --help")),
        }
    }
    if plan.rounds == 0 {
        plan.rounds = if plan.quick { 1 } else { 5 };
    }
    Ok(Order::Conduct(plan))
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or(format!("--rounds {text:?}: a number above zero"))
}

fn names(text: &str) -> Vec<String> {
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
