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
        let mut order: Vec<&Subject> = subjects.iter().collect();
        // Every second round walks backwards, so that a drift of the machine favours no subject.
        if round % 2 == 1 {
            order.reverse();
        }
        for subject in order {
            eprintln!("round {}/{}: {}", round + 1, plan.rounds, subject.name);
            rows.push(measure(plan, round, subject)?);
        }
    }
    if let Some(path) = &plan.json {
        write_json(path, &rows)?;
    }
    if plan.json.as_deref() != Some("-") {
        let names: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
        print!("{}", report::write(&rows, &names, plan));
    }
    Ok(())
}

fn measure(plan: &Plan, round: usize, subject: &Subject) -> Result<Row, String> {
    let port = free_port()?;
    let server = Server::start(&subject.command(port), port, None)?;
    drive(&server, subject, Keys::Turn(KEYS), Until::Count(KEYS), None)?;
    let time = Until::Time(Duration::from_secs(plan.seconds));
    let ((user, cpu), busy, own) = (server.cpu_seconds(), busy_seconds(), own_seconds());
    let flat_out = drive(&server, subject, Keys::Random(KEYS), time, None)?;
    let after = server.cpu_seconds();
    let user = after.0 - user;
    let cpu = after.1 - cpu;
    let foreign = (busy_seconds() - busy - cpu - (own_seconds() - own)).max(0.0);
    let cpu_before = server.cpu_seconds().1;
    let paced = drive(&server, subject, Keys::Random(KEYS), time, Some(RATE))?;
    let paced_cpu = server.cpu_seconds().1 - cpu_before;
    server.stop()?;
    Ok(Row {
        round,
        name: subject.name,
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
    server: &Server,
    subject: &Subject,
    keys: Keys,
    until: Until,
    rate: Option<f64>,
) -> Result<load::Outcome, String> {
    let path = subject.path;
    let body = subject.body;
    let order =
        LoadPlan { port: server.port, path, body, connections: CONNECTIONS, keys, until, rate };
    let outcome = load::run(&order, &mut |_| {}).map_err(|e| format!("{}: {e}", subject.name))?;
    match outcome.failed {
        0 if outcome.passed > 0 => Ok(outcome),
        _ => {
            Err(format!("{}: {} passed, {} did not", subject.name, outcome.passed, outcome.failed))
        }
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
