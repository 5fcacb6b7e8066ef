//! What a check through the library's client costs beside a bare HTTP call on the same server.
//!
//! All subjects run in turns, in one process on one thread, in every second round in reverse order.
//! A ratio is computed within a round. It prints, and judges nothing.

mod bare;
mod load;
mod server;

use std::time::Duration;

use catraca::Client;

use bare::BareConnection;
use load::{Measurement, measure};
use server::CheckServer;

/// The result of anything that may fail here.
type BenchResult<T> = Result<T, Box<dyn std::error::Error>>;

/// Longer than any call takes.
const DEADLINE: Duration = Duration::from_secs(10);

/// What is compared: a bare call, or a client with these options.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Subject {
    name: &'static str,
    callers: usize,
    /// `None` is a bare connection per caller.
    client: Option<ClientOptions>,
    /// Whether a bare call has a deadline, as every call of a client has.
    has_deadline: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct ClientOptions {
    connections: usize,
    batching: bool,
}

const fn client(name: &'static str, callers: usize, connections: usize, batching: bool) -> Subject {
    let client = Some(ClientOptions { connections, batching });
    Subject { name, callers, client, has_deadline: true }
}

const fn bare(name: &'static str, callers: usize) -> Subject {
    Subject { name, callers, client: None, has_deadline: false }
}

const fn bare_with_deadline(name: &'static str, callers: usize) -> Subject {
    Subject { name, callers, client: None, has_deadline: true }
}

/// The first subject of a group is what the others of the group are compared with.
const GROUPS: [&[Subject]; 3] = [
    &[
        bare("bare call", 1),
        bare_with_deadline("bare call with a deadline", 1),
        client("client", 1, 32, true),
        client("client, no batches", 1, 32, false),
    ],
    &[
        bare("bare call, 8 callers, 8 connections", 8),
        bare_with_deadline("bare call with a deadline, 8 callers, 8 connections", 8),
        client("client, 8 callers, 8 connections", 8, 8, true),
    ],
    &[
        client("64 callers, 8 connections, no batches", 64, 8, false),
        client("64 callers, 8 connections, batches", 64, 8, true),
        client("64 callers, 16 connections, batches", 64, 16, true),
        client("64 callers, 32 connections, no batches", 64, 32, false),
        client("64 callers, 32 connections, batches", 64, 32, true),
        client("64 callers, 64 connections", 64, 64, true),
    ],
];

fn main() -> BenchResult<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let index = args.iter().position(|arg| arg == name)?;
        args.get(index + 1).map(String::as_str)
    };
    let binary = value("--catraca").ok_or("give the binary with --catraca FILE")?;
    let is_quick = args.iter().any(|arg| arg == "--quick");
    let rounds = value("--rounds").map_or(Ok(if is_quick { 2 } else { 9 }), str::parse)?;
    let millis = value("--millis").map_or(Ok(if is_quick { 200 } else { 1_000 }), str::parse)?;
    // One subject alone, for a profiler.
    let only = value("--only");
    let server = CheckServer::start(binary)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("| Subject | calls/s | µs per call | client CPU µs | × time | × CPU |");
    println!("|---|---:|---:|---:|---:|---:|");
    for group in GROUPS {
        let is_wanted = |subject: &&Subject| only.is_none_or(|name| subject.name == name);
        let group: Vec<Subject> = group.iter().filter(is_wanted).copied().collect();
        let mut rows: Vec<Vec<Measurement>> = vec![Vec::new(); group.len()];
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..group.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                let length = Duration::from_millis(millis);
                let measured = runtime.block_on(run(group[index], &server.address, length))?;
                rows[index].push(measured);
            }
        }
        print_group(&group, &rows);
    }
    Ok(())
}

async fn run(subject: Subject, address: &str, length: Duration) -> BenchResult<Measurement> {
    let Some(options) = subject.client else {
        let mut callers = Vec::new();
        for _ in 0..subject.callers {
            callers.push(BareConnection::open(address, subject.has_deadline).await?);
        }
        return Ok(measure(callers, length).await);
    };
    let client = Client::builder(&format!("http://{address}"))
        .connections(options.connections)
        .batching(options.batching)
        .deadline(DEADLINE)
        .build()?;
    Ok(measure(vec![client; subject.callers], length).await)
}

fn print_group(group: &[Subject], rows: &[Vec<Measurement>]) {
    for (subject, row) in group.iter().zip(rows) {
        let against_first = |value: fn(&Measurement) -> f64| {
            let ratios = row.iter().zip(&rows[0]).map(|(own, first)| value(own) / value(first));
            let (median, least, most) = spread(ratios.collect());
            format!("{median:.2} ({least:.2}–{most:.2})")
        };
        let median = |value: fn(&Measurement) -> f64| spread(row.iter().map(value).collect()).0;
        println!(
            "| {} | {:.0} | {:.1} | {:.1} | {} | {} |",
            subject.name,
            median(Measurement::calls_per_second),
            median(Measurement::micros_per_call),
            median(Measurement::cpu_micros_per_call),
            against_first(Measurement::micros_per_call),
            against_first(Measurement::cpu_micros_per_call),
        );
    }
}

/// Median, smallest and largest.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}
