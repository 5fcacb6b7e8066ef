//! Runs the rounds: every server started afresh, filled, driven flat out and then at a fixed rate.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use crate::args::Plan;
use crate::child::{Server, busy_seconds, free_port, own_seconds, step_aside};
use crate::load::{self, Keys, LoadPlan, Until};
use crate::report::{self, Row};
use crate::servers::{self, Subject};

/// Keys that are there before anything is measured.
pub const KEYS: u64 = 100_000;
/// Connections, as a handful of application servers would hold.
pub const CONNECTIONS: usize = 50;
/// Requests per second in the open loop.
pub const RATE: f64 = 10_000.0;

/// Runs a whole plan and reports it.
pub fn run(plan: &Plan) -> Result<(), String> {
    step_aside();
    let subjects = servers::all(plan)?;
    let mut rows = Vec::new();
    for round in 0..plan.rounds {
        for subject in in_order(round, &subjects) {
            eprintln!("round {}/{}: {}", round + 1, plan.rounds, subject.name);
            rows.push(measure(plan, round, subject)?);
        }
    }
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
    print_rows(plan, &rows, &names, RATE)
}

/// The subjects of a round. Every second round walks backwards, so that a drift of the machine
/// favours none of them.
pub fn in_order<T>(round: usize, subjects: &[T]) -> Vec<&T> {
    let mut order: Vec<&T> = subjects.iter().collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Prints the table, or the lines of JSON.
pub fn print_rows(plan: &Plan, rows: &[Row], names: &[&str], rate: f64) -> Result<(), String> {
    if let Some(path) = &plan.json {
        write_json(path, rows)?;
    }
    if plan.json.as_deref() != Some("-") {
        print!("{}", report::write(rows, names, rate, plan));
    }
    Ok(())
}

fn measure(plan: &Plan, round: usize, subject: &Subject) -> Result<Row, String> {
    let port = free_port()?;
    let server = Server::start(&subject.command(port), port, None)?;
    let target = Target {
        name: subject.name,
        port,
        path: subject.path,
        body: subject.body,
        rate: RATE,
        measured: &[&server],
        beside: &[],
    };
    let row = measure_target(plan, round, &target)?;
    server.stop()?;
    Ok(row)
}

/// Servers that run, and how they are asked.
pub struct Target<'a> {
    /// The name in the table.
    pub name: &'static str,
    /// The port that is asked.
    pub port: u16,
    /// The path of a request.
    pub path: &'a str,
    /// The body of a request.
    pub body: &'a str,
    /// Requests per second in the open loop.
    pub rate: f64,
    /// The servers whose processor time counts.
    pub measured: &'a [&'a Server],
    /// Servers that belong to the run, and whose processor time does not count.
    pub beside: &'a [&'a Server],
}

/// Drives a target flat out and at a fixed rate.
pub fn measure_target(plan: &Plan, round: usize, target: &Target<'_>) -> Result<Row, String> {
    let cpu_seconds = |servers: &[&Server]| {
        let each = servers.iter().map(|server| server.cpu_seconds());
        each.fold((0.0, 0.0), |sum, (user, all)| (sum.0 + user, sum.1 + all))
    };
    drive(target, Keys::Turn(KEYS), Until::Count(KEYS), None)?;
    let time = Until::Time(Duration::from_secs(plan.seconds));
    let before = cpu_seconds(target.measured);
    let beside = cpu_seconds(target.beside).1;
    let busy = busy_seconds();
    let own = own_seconds();
    let flat_out = drive(target, Keys::Random(KEYS), time, None)?;
    let after = cpu_seconds(target.measured);
    let user = after.0 - before.0;
    let cpu = after.1 - before.1;
    let ours = cpu + (own_seconds() - own) + (cpu_seconds(target.beside).1 - beside);
    let foreign = (busy_seconds() - busy - ours).max(0.0);
    let paced = drive(target, Keys::Random(KEYS), time, Some(target.rate))?;
    let paced_cpu = cpu_seconds(target.measured).1 - after.1;
    Ok(Row {
        round,
        name: target.name,
        rate: flat_out.rate(),
        cpu_us: cpu * 1e6 / flat_out.passed as f64,
        user_us: user * 1e6 / flat_out.passed as f64,
        paced_cpu_us: paced_cpu * 1e6 / paced.passed as f64,
        paced_p50_us: paced.within_us(0.5),
        paced_p99_us: paced.within_us(0.99),
        foreign: foreign / flat_out.took.as_secs_f64(),
    })
}

fn drive(
    target: &Target<'_>,
    keys: Keys,
    until: Until,
    rate: Option<f64>,
) -> Result<load::Outcome, String> {
    let Target { port, path, body, .. } = *target;
    let order = LoadPlan { port, path, body, connections: CONNECTIONS, keys, until, rate };
    let outcome = load::run(&order, &mut |_| {}).map_err(|e| format!("{}: {e}", target.name))?;
    match outcome.failed {
        0 if outcome.passed > 0 => Ok(outcome),
        _ => Err(format!("{}: {} passed, {} did not", target.name, outcome.passed, outcome.failed)),
    }
}

fn write_json(path: &str, rows: &[Row]) -> Result<(), String> {
    let mut out: Box<dyn Write> = match path {
        "-" => Box::new(std::io::stdout()),
        path => Box::new(File::create(path).map_err(|error| format!("{path}: {error}"))?),
    };
    let mut lines = rows.iter().map(Row::to_json);
    lines.try_for_each(|line| writeln!(out, "{line}")).map_err(|error| format!("{path}: {error}"))
}
