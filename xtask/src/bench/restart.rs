//! `cargo xtask bench restart [BLOCKS]`: how long a start takes with many blocks in force.
//!
//! The records are those of the `dist` binary, filled by SQL with blocks that stand; a start is
//! over when the port is bound, and the first answer must know one of them. Must not keep what it
//! made, nor leave a server behind.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catraca_conformance::{ProcessGuard, Repo, Scratch, TestContext, binary, packages};

use super::server::BenchServer;

const BLOCKS: u64 = 1_000_000;
const ROUNDS: usize = 5;
/// What the kernel counts time in, on every Linux there is.
const TICKS_PER_SECOND: f64 = 100.0;
const PATIENCE: Duration = Duration::from_secs(3_600);

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "1 per 1h"
block  = "24h"

[store]
block_mib = 1024
"#;

/// Blocks that stand for a day, of made-up subjects, as the program itself would have written them.
const FILL: &str = "
PRAGMA synchronous = OFF;
BEGIN;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @BLOCKS)
INSERT INTO subjects (key, namespace, policy, identifier, parts)
SELECT randomblob(16), 'default', 'login', 'made-up-' || i,
       '[[\"ip\",\"made-up-' || i || '\"]]' FROM n;
INSERT INTO parts (attribute, value, subject)
SELECT 'ip', identifier, id FROM subjects WHERE identifier LIKE 'made-up-%';
INSERT INTO blocks (subject, key, since, until, touched, origin, reason)
SELECT id, key, unixepoch() * 1000000, (unixepoch() + 86400) * 1000000, unixepoch() * 1000000,
       'excess', 'over_limit' FROM subjects WHERE identifier LIKE 'made-up-%';
INSERT INTO history (subject, at, act, until, origin, reason)
SELECT subject, since, 'started', until, origin, reason FROM blocks WHERE reason = 'over_limit';
COMMIT;
";

pub(crate) fn run(repo: &Repo, args: &[String]) -> Result<()> {
    let blocks: u64 = match args.first() {
        Some(text) => text.replace('_', "").parse().context("BLOCKS is a whole number")?,
        None => BLOCKS,
    };
    let processes = ProcessGuard::new(PATIENCE);
    let context = TestContext { repo, processes: &processes, factor: 1 };
    let sqlite = packages::need(&context, "sqlite3", "sqlite3")?;
    let binary = binary::build_dist(&context)?;
    let scratch = Scratch::new("restart")?;
    let folder = scratch.path();
    let first = BenchServer::with(&binary, folder, CATALOG)?;
    let address = "198.51.100.7";
    ensure!(check(&first, address)?.contains("\"reason\":\"ok\""));
    ensure!(check(&first, address)?.contains("over_limit"));
    first.stop("TERM")?;
    fill(&sqlite, folder, blocks)?;
    let kept = fs::metadata(folder.join("catraca.db"))?.len() >> 20;
    println!("{blocks} blocks stand, {kept} MiB of records");
    // The first start reads the records alone; its stop writes the snapshot that the others find.
    fs::remove_file(folder.join("catraca.snapshot"))?;
    report(&binary, folder, "records alone", 1, "TERM")?;
    report(&binary, folder, "records and snapshot, after a stop", ROUNDS, "TERM")?;
    report(&binary, folder, "records and snapshot, after a kill", ROUNDS, "KILL")
}

fn report(binary: &Path, folder: &Path, name: &str, rounds: usize, end: &str) -> Result<()> {
    let mut starts = Vec::new();
    let mut resident = 0;
    let mut busy = 0.0;
    for _ in 0..rounds {
        let served = BenchServer::start(binary, folder)?;
        starts.push(served.took);
        let first = check(&served, "198.51.100.7")?;
        ensure!(first.contains("\"reason\":\"blocked\""), "the first answer: {first}");
        resident = resident_mib(&served)?;
        busy += on_core(&served)? / rounds as f64;
        served.stop(end)?;
    }
    starts.sort();
    let median = starts[rounds / 2];
    let worst = starts[rounds - 1];
    println!("{name}: {median:.2?} to the port, worst {worst:.2?} of {rounds}");
    println!("  {busy:.2} s on a core, {resident} MiB resident");
    Ok(())
}

fn fill(sqlite: &Path, folder: &Path, blocks: u64) -> Result<()> {
    let sql = FILL.replace("@BLOCKS", &blocks.to_string());
    let mut shell = Command::new(sqlite)
        .args(["-bail", "catraca.db"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    shell.stdin.take().context("no input")?.write_all(sql.as_bytes())?;
    ensure!(shell.wait()?.success(), "sqlite3 could not fill the records");
    Ok(())
}

fn check(served: &BenchServer, address: &str) -> Result<String> {
    let body = format!(r#"{{"gate":"login","subject":{{"ip":"{address}"}}}}"#);
    let mut stream = TcpStream::connect(&served.address)?;
    write!(
        stream,
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn resident_mib(served: &BenchServer) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", served.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib >> 10)
}

/// Seconds that its threads ran so far: on a busy machine these say more than the clock.
fn on_core(served: &BenchServer) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", served.id()))?;
    let (_, rest) = stat.rsplit_once(')').context("/proc/…/stat has an unexpected format")?;
    let ticks = rest.split_whitespace().skip(11).take(2).map(str::parse);
    let ticks: Vec<f64> = ticks.collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}
