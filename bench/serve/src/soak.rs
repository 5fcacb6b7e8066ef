//! Loads catraca alone at a fixed rate for a while, and judges it: no error, a fast server, memory
//! that does not grow.
//!
//! The server's own time comes from the line it prints when it stops: from a request's head being
//! read to its answer being ready. The driver's figure also holds the network and the wait for a
//! core on both sides, so it is shown and not judged: on a busy machine it measures the machine.

use std::fs::{self, File};
use std::time::Duration;

use crate::args::Plan;
use crate::child::{Server, free_port, step_aside};
use crate::conduct::{CONNECTIONS, KEYS};
use crate::load::{self, Keys, LoadPlan, Outcome, Until};
use crate::servers;

/// The server's own time within which 99 % of the answers must lie.
const SERVER_P99_US: u64 = 1_000;
/// What may be added to the resident set after the first quarter.
const GROWTH_KIB: u64 = 2_048;
/// Requests that are due in a second.
const RATE: f64 = 10_500.0;
/// Answers in a second, of which there must be more.
const ANSWERED: f64 = 10_000.0;

/// Runs it; an error says what was wrong.
pub fn run(plan: &Plan) -> Result<(), String> {
    step_aside();
    let (outcome, resident, log) = load_it(plan)?;
    let quarter = resident.len() / 4;
    let after = resident.get(quarter).copied().unwrap_or(0);
    let most = resident[quarter..].iter().copied().max().unwrap_or(0);
    println!(
        "{} s at {RATE:.0}/s over {CONNECTIONS} connections: {} passed, {} failed\n\
         driver, from when a request was due: 50% within {:.0}us, 99% within {:.0}us\n\
         server: {log}\n\
         resident: {after} KiB after a quarter of the time, then at most {most} KiB",
        plan.seconds,
        outcome.passed,
        outcome.failed,
        outcome.within_us(0.5),
        outcome.within_us(0.99),
    );
    let wrong = judge(plan, &outcome, most.saturating_sub(after), &log);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn load_it(plan: &Plan) -> Result<(Outcome, Vec<u64>, String), String> {
    let subject = servers::ours(plan);
    let port = free_port()?;
    let path = std::env::temp_dir().join(format!("catraca-soak-{}.log", std::process::id()));
    let log = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let server = Server::start(&subject.command(port), port, Some(log))?;
    let order = |keys, until, rate| LoadPlan {
        port,
        path: subject.path,
        body: subject.body,
        connections: CONNECTIONS,
        keys,
        until,
        rate,
    };
    // Every key is there before the clock runs, so that growth is growth and not filling.
    load::run(&order(Keys::Turn(KEYS), Until::Count(KEYS), None), &mut |_| {})?;
    let mut resident = vec![server.resident_kib()];
    let time = Until::Time(Duration::from_secs(plan.seconds));
    let outcome = load::run(&order(Keys::Random(KEYS), time, Some(RATE)), &mut |_| {
        resident.push(server.resident_kib());
    })?;
    server.stop()?;
    let log = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(&path);
    let line = log.lines().find_map(|line| line.strip_prefix("stopped: "));
    let line = line.ok_or(format!("the server did not say what it did: {log:?}"))?;
    Ok((outcome, resident, line.to_owned()))
}

fn judge(plan: &Plan, outcome: &Outcome, growth_kib: u64, log: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if outcome.failed > 0 || !log.contains(" 0 with 4xx, 0 with 5xx, 0 connections refused") {
        wrong.push(format!("there were errors: {} at the driver; {log}", outcome.failed));
    }
    let wanted = ANSWERED * plan.seconds as f64;
    if outcome.passed as f64 <= wanted {
        wrong.push(format!("{} answers, and not more than {wanted:.0}", outcome.passed));
    }
    match server_p99_us(log) {
        Some(micros) if micros <= SERVER_P99_US => {}
        found => wrong.push(format!("99% within {found:?}us, not {SERVER_P99_US}us")),
    }
    if growth_kib > GROWTH_KIB {
        wrong.push(format!("the resident set grew by {growth_kib} KiB of {GROWTH_KIB}"));
    }
    wrong
}

fn server_p99_us(log: &str) -> Option<u64> {
    let rest = log.split("99% within ").nth(1)?;
    rest.split("us").next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "600000 responses, 0 with 4xx, 0 with 5xx, 0 connections refused; \
                       50% within 10us, 99% within 50us, 99.9% within 100us";

    fn judged(passed: u64, failed: u64, growth: u64, log: &str) -> usize {
        let plan = Plan { seconds: 60, ..Plan::default() };
        let outcome = Outcome { passed, failed, ..Outcome::default() };
        judge(&plan, &outcome, growth, log).len()
    }

    #[test]
    fn every_fault_is_told() {
        assert_eq!(judged(630_000, 0, 100, LOG), 0);
        assert_eq!(judged(630_000, 1, 100, LOG), 1);
        assert_eq!(judged(600_000, 0, 100, LOG), 1);
        assert_eq!(judged(630_000, 0, 9_999, LOG), 1);
        assert_eq!(judged(630_000, 0, 0, &LOG.replace("0 with 5xx", "3 with 5xx")), 1);
        assert_eq!(judged(630_000, 0, 0, &LOG.replace("50us", "2000us")), 1);
        assert_eq!(judged(630_000, 0, 0, "nothing"), 2);
    }
}
