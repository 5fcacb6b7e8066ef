//! Runs tests, and runs again alone what failed beside others.
//!
//! Some tests measure time on sockets and real servers, and fail now and then because the machine
//! was busy. A test that fails beside others and passes three times alone is reported as flaky,
//! which is a defect to repair; it does not fail the run. A wrong rule fails alone too: random
//! tests of a normal run have fixed seeds.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use catraca_conformance::ProcessGuard;

/// More failing tests than this are not the machine's fault.
const REPEATED_MAX: usize = 3;
/// How often each must pass alone.
const TIMES: usize = 3;

/// Runs `cargo test`; `command` makes it for the arguments after `--`.
pub(crate) fn run(processes: &ProcessGuard, command: impl Fn(&[&str]) -> Command) -> Result<()> {
    let (status, failed) = run_once(processes, command(&[]))?;
    if status.success() {
        return Ok(());
    }
    let may_repeat = (1..=REPEATED_MAX).contains(&failed.len());
    ensure!(may_repeat, "`cargo test`: {status}; {} tests failed", failed.len());
    for name in &failed {
        for _ in 0..TIMES {
            let alone = ["--exact", name, "--test-threads=1"];
            let (status, _) = run_once(processes, command(&alone))?;
            ensure!(status.success(), "{name} failed beside other tests, and alone");
        }
    }
    println!("FLAKY, to be repaired: failed beside other tests, passed alone: {failed:?}");
    Ok(())
}

/// Runs a command with its output shown; returns the names of the tests that failed.
fn run_once(processes: &ProcessGuard, mut command: Command) -> Result<(ExitStatus, Vec<String>)> {
    let mut child = processes.spawn(command.stdout(Stdio::piped()))?;
    let output = child.stdout.take().context("no output")?;
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let failed = lines.filter_map(|line| {
            println!("{line}");
            failed_test(&line)
        });
        failed.collect::<Vec<String>>()
    });
    let status = processes.wait(child)?.context("it was killed: its part took too long")?;
    let failed = reader.join().ok().context("the output could not be read")?;
    Ok((status, failed))
}

/// The name in a line such as `test a::b ... FAILED`.
fn failed_test(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.split(" - ").next().unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn result(script: &'static str) -> Result<()> {
        let processes = ProcessGuard::new(Duration::from_secs(60));
        run(&processes, |args| {
            let mut command = Command::new("bash");
            command.args(["-c", script, "bash"]).args(args);
            command
        })
    }

    #[test]
    fn a_test_that_passes_alone_does_not_fail_the_run() {
        result("[ $# = 3 ] || { echo 'test a::b ... FAILED'; exit 1; }").unwrap();
        result("true").unwrap();
    }

    #[test]
    fn a_test_that_fails_alone_fails_the_run() {
        let error = result("echo 'test a::b ... FAILED'; exit 1").unwrap_err().to_string();
        assert!(error.contains("a::b failed beside other tests, and alone"), "{error}");
    }

    #[test]
    fn a_failure_without_a_test_and_many_failures_are_not_repeated() {
        assert!(result("[ $# != 0 ] || exit 1").is_err());
        let many =
            "[ $# != 0 ] || { for i in 1 2 3 4; do echo \"test t$i ... FAILED\"; done; exit 1; }";
        assert!(result(many).is_err());
    }
}
