//! `cargo xtask bench simulate [LINES]`: how many lines of a history are replayed in a second.
//!
//! Histories are made here, the same every time, and replayed by the `dist` binary as a user
//! would. On a busy machine the time on a core says more than the clock. Must not keep what it
//! made.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use catraca_conformance::{Repo, Scratch};

const LINES: u64 = 1_000_000;
/// What the kernel counts time in, on every Linux there is.
const TICKS_PER_SECOND: f64 = 100.0;

const CATALOG: &str = r#"
[policy.search]
by     = ["ip"]
bucket = { size = 60, refill = "1 per 1s" }

[policy.payer]
by     = ["participant", "payer"]
bucket = { size = 100, refill = "2 per 1m" }
cost   = { "200" = 1, "404" = 20, default = 0 }
credit = { payment = { amount = 1, on = ["200"] } }
debt   = true

[policy.participant]
by     = ["participant"]
bucket = { size = 50000, refill = "25000 per 1m" }
cost   = { "200" = 1, "404" = 3, default = 0 }
debt   = true

[gate.lookup]
policies = ["payer", "participant"]

[[route]]
match = "GET /search"
gate  = "search"
"#;

/// The routes of the checkout's log, whose paths are shorter than those of its preset.
const CHECKOUT_ROUTES: [(&str, &str); 6] = [
    ("/login", "buyer_auth_login"),
    ("/register", "buyer_auth_register"),
    ("/orders", "create_order"),
    ("/pix", "create_pix"),
    ("/webhook", "webhook"),
    ("/members", "members_area"),
];

/// A history, and how it is replayed.
struct Case {
    name: &'static str,
    catalog: fn(&Repo) -> Result<String>,
    history: fn(&mut BufWriter<File>, u64) -> std::io::Result<()>,
    args: &'static [&'static str],
}

const CASES: [Case; 7] = [
    Case { name: "events, one bucket, summary", catalog: own, history: events, args: &[] },
    Case {
        name: "events, one bucket, -o json",
        catalog: own,
        history: events,
        args: &["-o", "json"],
    },
    Case {
        name: "combined log, summary",
        catalog: own,
        history: log,
        args: &["--format", "combined"],
    },
    Case {
        name: "combined log, --compare",
        catalog: own,
        history: log,
        args: &["--format", "combined", "--compare", "catalog.toml"],
    },
    Case {
        name: "events, two buckets, ref, settled",
        catalog: own,
        history: |out, lines| lookups(out, lines, "lookup"),
        args: &[],
    },
    Case {
        name: "combined log, checkout preset",
        catalog: checkout,
        history: checkout_log,
        args: &["--format", "combined"],
    },
    Case {
        name: "events, DICT preset, ref, settled",
        catalog: |repo| repo.read("presets/dict/catalog.toml"),
        history: |out, lines| lookups(out, lines, "getEntry.EMAIL"),
        args: &[],
    },
];

fn own(_: &Repo) -> Result<String> {
    Ok(CATALOG.to_owned())
}

fn checkout(repo: &Repo) -> Result<String> {
    let catalog = repo.read("presets/checkout/catalog.toml")?;
    let route = |(path, gate)| format!("[[route]]\nmatch = \"POST {path}\"\ngate = \"{gate}\"\n\n");
    let routes = CHECKOUT_ROUTES.map(route).concat();
    // Before those of the preset, of which the last takes every path.
    Ok(catalog.replacen("[[route]]", &(routes + "[[route]]"), 1))
}

pub(crate) fn run(repo: &Repo, args: &[String]) -> Result<()> {
    let lines = match args.first() {
        Some(text) => text.replace('_', "").parse().context("LINES is a whole number")?,
        None => LINES,
    };
    let binary = build(repo)?;
    let scratch = Scratch::new("bench")?;
    println!("{:<36} {:>10} {:>12} {:>14}", "case", "seconds", "lines/s", "µs on a core");
    for case in &CASES {
        fs::write(scratch.path().join("catalog.toml"), (case.catalog)(repo)?)?;
        let mut out = BufWriter::new(File::create(scratch.path().join("history"))?);
        (case.history)(&mut out, lines)?;
        out.flush()?;
        let (seconds, on_core) = measure(repo, &binary, scratch.path(), case)?;
        let rate = lines as f64 / seconds;
        let each = on_core * 1e6 / lines as f64;
        println!("{:<36} {seconds:>10.2} {rate:>12.0} {each:>14.2}", case.name);
    }
    Ok(())
}

fn build(repo: &Repo) -> Result<PathBuf> {
    let status = repo.cargo(&["build", "--profile", "dist", "--bin", "catraca"]).status()?;
    ensure!(status.success(), "cannot build catraca: {status}");
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(target.unwrap_or_else(|| repo.path("target")).join("dist/catraca"))
}

/// Seconds by the clock, and on a core.
fn measure(repo: &Repo, binary: &Path, room: &Path, case: &Case) -> Result<(f64, f64)> {
    let start = Instant::now();
    let before = on_core_so_far()?;
    let status = repo
        .command(&binary.to_string_lossy())
        .args(["simulate", "-c", "catalog.toml", "history"])
        .args(case.args)
        .current_dir(room)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "{}: {status}", case.name);
    Ok((start.elapsed().as_secs_f64(), on_core_so_far()? - before))
}

/// What all our ended children have used.
fn on_core_so_far() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("this benchmark needs Linux")?;
    // The name may hold anything, and ends with the last bracket.
    let (_, rest) = stat.rsplit_once(')').context("/proc/self/stat has an unexpected format")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(13..15).context("/proc/self/stat is short")?;
    let ticks: Vec<f64> = ticks.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

fn events(out: &mut BufWriter<File>, lines: u64) -> std::io::Result<()> {
    for line in 0..lines {
        let ip = address(line);
        writeln!(out, r#"{{"at":{line},"gate":"search","subject":{{"ip":"{ip}"}}}}"#)?;
    }
    Ok(())
}

fn log(out: &mut BufWriter<File>, lines: u64) -> std::io::Result<()> {
    (0..lines).try_for_each(|line| log_line(out, line, &format!("GET /search?q={line}")))
}

fn checkout_log(out: &mut BufWriter<File>, lines: u64) -> std::io::Result<()> {
    let paths = CHECKOUT_ROUTES.map(|(path, _)| format!("POST {path}"));
    (0..lines).zip(paths.iter().cycle()).try_for_each(|(line, path)| log_line(out, line, path))
}

fn log_line(out: &mut BufWriter<File>, line: u64, request: &str) -> std::io::Result<()> {
    let ip = address(line);
    let second = line / 100;
    let day = 1 + second / 86_400 % 28;
    let hour = second / 3_600 % 24;
    let minute = second / 60 % 60;
    let second = second % 60;
    writeln!(
        out,
        "{ip} - - [{day:02}/Jan/2026:{hour:02}:{minute:02}:{second:02} +0000] \
         \"{request} HTTP/1.1\" 200 512 \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\""
    )
}

fn lookups(out: &mut BufWriter<File>, lines: u64, gate: &str) -> std::io::Result<()> {
    for line in 0..lines {
        let payer = 11_144_400_000 + mix(line) % 50_000;
        let subject = format!(r#"{{"participant":"12345678","payer":"{payer}"}}"#);
        write!(out, r#"{{"at":{},"gate":"{gate}","subject":{subject},"#, line * 10)?;
        writeln!(out, r#""ref":"E{line}","outcome":{{"status":200}}}}"#)?;
    }
    Ok(())
}

/// One of some fifty thousand addresses.
fn address(line: u64) -> String {
    let number = mix(line);
    format!("10.{}.{}.{}", number % 4, number / 4 % 64, number / 256 % 200)
}

/// Numbers that look like chance and are the same every time (the finish of splitmix64).
fn mix(number: u64) -> u64 {
    let mut mix = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix = (mix ^ (mix >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mix = (mix ^ (mix >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mix ^ (mix >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_ended_children_is_counted() {
        let before = on_core_so_far().unwrap();
        let script = "for ((i = 0; i < 200000; i++)); do :; done";
        std::process::Command::new("bash").args(["-c", script]).status().unwrap();
        assert!(on_core_so_far().unwrap() > before);
    }

    #[test]
    fn histories_are_the_same_every_time() {
        assert_eq!([address(0), address(1)], ["10.3.43.85", "10.1.48.12"].map(str::to_owned));
    }
}
