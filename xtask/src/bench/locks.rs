//! `cargo xtask bench locks [SECONDS]`: how long callers of locks and slots wait for an answer.
//!
//! The `dist` binary over loopback, asked at a steady pace: latency counts from when a call was
//! due, so a slow answer is not hidden by those that it kept back. `--binary FILE` takes one that
//! is built already. Must not keep what it made, nor leave a server behind.

mod inside;
mod load;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catraca_conformance::{ProcessGuard, Repo, Scratch, TestContext, binary, packages};

use super::server::{BenchServer, Redis};
use inside::HolderCounts;
use load::{Call, Latencies, run_at_rate};

const SECONDS: u64 = 10;
/// Locks in a second: as many acquires, and as many releases.
const PACE: u64 = 1_000;
/// Slots of the calendar that is looked at.
const ROWS: usize = 100_000;
/// Where the calendar begins, in milliseconds, and how long a slot of it is.
const NOON: i64 = 1_900_000_000_000;
const SLOT: i64 = 60_000;
const PATIENCE: Duration = Duration::from_secs(3_600);

pub(crate) fn run(repo: &Repo, args: &[String]) -> Result<()> {
    let mut seconds = SECONDS;
    let mut binary = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--binary" => {
                // It runs in another folder.
                let file = rest.next().context("--binary FILE")?;
                binary = Some(fs::canonicalize(file).context(file.clone())?);
            }
            text => seconds = text.parse().context("SECONDS is a whole number")?,
        }
    }
    let processes = ProcessGuard::new(PATIENCE);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let redis = packages::need(&context, "redis-server", "redis-server")?;
    let binary = match binary {
        Some(binary) => binary,
        None => binary::build_dist(&context)?,
    };
    println!("{PACE} locks a second for {seconds} s, 8 connections, from when a call was due");
    let bench = Bench { binary, redis, seconds };
    bench.names("memory", "")?;
    bench.names("fsync", "[locks]\ndurability = 'fsync'\n")?;
    bench.calendar("memory", "")?;
    for each in [Bench::names, Bench::calendar] {
        // One per server: a store belongs to the records that it was first used with.
        let redis = Redis::start(&bench.redis)?;
        // A slow answer is to be measured, not refused.
        let store = format!("[store]\nurl = '{}'\ndeadline = '2s'\n", redis.url());
        each(&bench, "Redis", &store)?;
    }
    Ok(())
}

/// What is measured, with what, and for how long.
struct Bench {
    binary: PathBuf,
    redis: PathBuf,
    seconds: u64,
}

impl Bench {
    /// Names: taken and given back, and met by others.
    fn names(&self, kept: &str, catalog: &str) -> Result<()> {
        let scratch = Scratch::new("bench-locks")?;
        let served = BenchServer::with(&self.binary, scratch.path(), catalog)?;
        let what = [format!("{kept}: acquire"), format!("{kept}: release")];
        self.measure(&served, &what, |number| {
            Call::pair(
                ("/v1/locks/acquire", format!(r#"{{"key":"k{number}","ttl_ms":60000}}"#)),
                "/v1/locks/release",
            )
        })?;
        let mut talk = load::HttpConnection::to(&served.address)?;
        for number in 0..64 {
            let body = format!(r#"{{"key":"held{number}","ttl_ms":300000}}"#);
            ensure!(talk.post("/v1/locks/acquire", &body)?.0 == 200);
        }
        self.measure(&served, &[format!("{kept}: conflict")], |number| {
            let body = format!(r#"{{"key":"held{}"}}"#, number % 64);
            Call::single(("/v1/locks/acquire", body), 409)
        })
    }

    /// Sends calls at the given rate, and reports latencies and server metrics.
    fn measure(
        &self,
        served: &BenchServer,
        what: &[String],
        call: impl Fn(usize) -> Call + Sync,
    ) -> Result<()> {
        let mut talk = load::HttpConnection::to(&served.address)?;
        let before = HolderCounts::of(&mut talk)?;
        let took = run_at_rate(&served.address, PACE, self.seconds, call)?;
        let within = HolderCounts::of(&mut talk)?.since(&before);
        for (what, took) in what.iter().zip([&took.first, &took.second]) {
            report(what, took);
        }
        println!("{:<48} 99% of them within {within}", "  in the server");
        Ok(())
    }

    /// A calendar of many slots, every second minute of it taken.
    fn calendar(&self, kept: &str, catalog: &str) -> Result<()> {
        let scratch = Scratch::new("bench-slots")?;
        let catalog = format!("[locks.kind.appointment]\nttl_max = '1h'\n{catalog}");
        let served = BenchServer::with(&self.binary, scratch.path(), &catalog)?;
        let mut talk = load::HttpConnection::to(&served.address)?;
        for row in 0..ROWS {
            ensure!(talk.post("/v1/slots/hold", &hold(2 * row, 3_600_000))?.0 == 200);
        }
        let what = ["hold", "cancel"].map(|call| format!("{kept}: {ROWS} slots, {call}"));
        self.measure(&served, &what, |number| {
            let row = 2 * (number * 7_919 % ROWS) + 1;
            Call::pair(("/v1/slots/hold", hold(row, 60_000)), "/v1/slots/cancel")
        })?;
        self.measure(&served, &[format!("{kept}: {ROWS} slots, conflict")], |number| {
            Call::single(("/v1/slots/hold", hold(2 * (number * 7_919 % ROWS), 60_000)), 409)
        })?;
        looks(&mut talk, kept)
    }
}

/// Looks at a day of it, and at all of it page by page.
fn looks(talk: &mut load::HttpConnection, kept: &str) -> Result<()> {
    let mut days = Vec::new();
    for number in 0..1_000 {
        let from = NOON + (number * 7_919 % 100) * 86_400_000;
        let path = format!("/v1/slots?calendar=ana&from={from}&to={}", from + 86_400_000);
        let begun = std::time::Instant::now();
        ensure!(talk.get(&path)?.0 == 200);
        days.push((0, begun.elapsed()));
    }
    report(&format!("{kept}: a look at one day of it (720 slots)"), &days);
    let mut from = NOON.to_string();
    let mut pages = Vec::new();
    let to = NOON + 2 * ROWS as i64 * SLOT;
    let all = std::time::Instant::now();
    loop {
        let path = format!("/v1/slots?calendar=ana&from={from}&to={to}");
        let begun = std::time::Instant::now();
        let (status, body) = talk.get(&path)?;
        pages.push((0, begun.elapsed()));
        ensure!(status == 200, "{body}");
        let Some((_, next)) = body.rsplit_once(r#""next":""#) else { break };
        next.trim_end_matches("\"}").clone_into(&mut from);
    }
    report(&format!("{kept}: a page of 10,000 slots"), &pages);
    println!("{kept}: all of it in {} pages: {:.1?}", pages.len(), all.elapsed());
    Ok(())
}

fn hold(row: usize, ttl_ms: u64) -> String {
    let start = NOON + row as i64 * SLOT;
    let end = start + SLOT;
    format!(r#"{{"calendar":"ana","start":{start},"end":{end},"ttl_ms":{ttl_ms}}}"#)
}

/// The median, and of the 99th percentiles of all seconds the median, the least and the most: a
/// machine that others use too has bad seconds, which are not the server's.
fn report(name: &str, took: &Latencies) {
    let mut seconds: BTreeMap<u64, Vec<Duration>> = BTreeMap::new();
    for (second, time) in took {
        seconds.entry(*second).or_default().push(*time);
    }
    let all: Vec<Duration> = took.iter().map(|(_, time)| *time).collect();
    let half = share(all, 0.5);
    let mut worst: Vec<Duration> = seconds.into_values().map(|times| share(times, 0.99)).collect();
    worst.sort_unstable();
    let least = worst[0];
    let median = worst[worst.len() / 2];
    let most = worst[worst.len() - 1];
    println!(
        "{name:<48} {:>6} calls  p50 {half:>8.1?}  p99 {median:>8.1?} ({least:.1?}-{most:.1?})",
        took.len()
    );
}

/// The time below which this share of them is.
fn share(mut times: Vec<Duration>, share: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}
