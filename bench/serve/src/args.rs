//! Reads the command line.

use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
bench-serve: a check over HTTP, side by side

  --catraca FILE       the binary under test
  --throttlecrab FILE  the peer's binary; without it the peer is left out
  --rounds N           alternating rounds (default 9; 2 with --quick)
  --seconds N          seconds per measurement (default 3; 1 with --quick)
  --quick              a smoke run: its figures prove little
  --json FILE          also write one JSON line per measurement; - prints them instead of tables
  --soak               10,000 checks a second against catraca alone for --seconds (default 60);
                       fails on an error, a slow server, or memory that grows
  --proxy              the reverse proxy, beside nginx and nginx with auth_request; needs --nginx
  --nginx FILE         the binary of nginx, for --proxy
  --help               this text
";

/// What the process was asked to be.
pub enum Order {
    /// Print the help text.
    Help,
    /// Be a bare server, on a port of loopback: the hidden form.
    Floor(String, u16),
    /// Run the rounds and report.
    Conduct(Plan),
    /// Load one server for a while and judge it.
    Soak(Plan),
    /// Run the rounds over reverse proxies.
    Proxies(Plan),
}

/// A whole run.
#[derive(Default)]
pub struct Plan {
    /// The binary under test.
    pub catraca: PathBuf,
    /// The peer.
    pub throttlecrab: Option<PathBuf>,
    /// nginx, as a reverse proxy.
    pub nginx: PathBuf,
    /// How often every server is measured.
    pub rounds: usize,
    /// Seconds per measurement.
    pub seconds: u64,
    /// Whether figures prove little.
    pub quick: bool,
    /// Where JSON lines go.
    pub json: Option<String>,
}

/// The first argument of a bare server.
pub const FLOOR: &str = "--floor";

/// Reads the arguments after the program's name.
pub fn read(args: impl Iterator<Item = String>) -> Result<Order, String> {
    let args: Vec<String> = args.collect();
    match args.first().map(String::as_str) {
        Some("--help" | "-h") => Ok(Order::Help),
        Some(FLOOR) => match &args[1..] {
            [kind, port] => Ok(Order::Floor(kind.clone(), number(port)? as u16)),
            _ => Err(format!("{FLOOR} takes KIND PORT")),
        },
        _ => read_plan(args.into_iter()),
    }
}

fn read_plan(mut args: impl Iterator<Item = String>) -> Result<Order, String> {
    let mut plan = Plan::default();
    let mut soak = false;
    let mut proxy = false;
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--catraca" => plan.catraca = value()?.into(),
            "--throttlecrab" => plan.throttlecrab = Some(value()?.into()),
            "--rounds" => plan.rounds = number(&value()?)? as usize,
            "--seconds" => plan.seconds = number(&value()?)?,
            "--json" => plan.json = Some(value()?),
            "--quick" => plan.quick = true,
            "--soak" => soak = true,
            "--proxy" => proxy = true,
            "--nginx" => plan.nginx = value()?.into(),
            _ => return Err(format!("unknown argument {flag:?}; see --help")),
        }
    }
    if !plan.catraca.is_file() {
        return Err("--catraca FILE must name the binary under test".to_owned());
    }
    if proxy && !plan.nginx.is_file() {
        return Err("--nginx FILE must name the binary of nginx".to_owned());
    }
    let usual = |given: u64, quick, full| match given {
        0 => [full, quick][usize::from(plan.quick)],
        given => given,
    };
    plan.rounds = usual(plan.rounds as u64, 2, 9) as usize;
    plan.seconds = usual(plan.seconds, 1, if soak { 60 } else { 3 });
    Ok(match (soak, proxy) {
        (true, _) => Order::Soak(plan),
        (false, true) => Order::Proxies(plan),
        (false, false) => Order::Conduct(plan),
    })
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or(format!("{text:?} is not a number above zero"))
}
