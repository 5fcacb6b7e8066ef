//! `cargo xtask mutants`: how many random mutants of the rules the tests catch.
//!
//! cargo-mutants lists the mutants. A random sample of them is built at once and enabled one at a
//! time; the seed is printed. The tests are a fast selection. Survivors that no test can notice
//! are explained in `docs/mutants.md`.

mod build;
mod mutant;
mod sample;
mod score;
mod switched;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use catraca_conformance::{ProcessGuard, Repo, TestContext};

use crate::change_switch::SWITCH;
use build::MutantTest;
use mutant::Mutant;
use score::Score;

/// Pinned: another version makes other mutants of the same seed.
const VERSION: &str = "27.1.0";
const TOOLS: &str = "target/tools";
const EXPLANATIONS: &str = "docs/mutants.md";
const SAMPLE: usize = 120;
/// Fewer caught mutants in a hundred are a failure. Unviable and explained ones do not count.
const CAUGHT_MIN: usize = 90;
/// Seconds of processor time that tests may use: a mutant in an endless loop uses more. Without a
/// mutant they use some seconds. Not the time of the clock, which says nothing on a busy machine.
const CPU_SECONDS: u32 = 120;
/// Memory that tests may reserve: a mutant in an endless loop may allocate in it.
const MEMORY_KIB: u32 = 8 << 20;
/// How long tests may take by the clock: a mutant that waits forever uses no processor time.
const TEST_LIMIT: Duration = Duration::from_secs(900);
/// The signal to a process that has used up its processor time.
const SIGXCPU: i32 = 24;
/// A limit for the command. A part has its budget.
const LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Decisions that the oracle compares: a few seconds.
const DECISIONS: &str = "100000";

/// The rules in core: decisions, algorithms, settles and locks.
const FILES: [&str; 8] = [
    "run.rs",
    "run/**/*.rs",
    "algorithm.rs",
    "algorithm/**/*.rs",
    "{cell,limit}.rs",
    "cell/**/*.rs",
    "{settle_plan,credit_plan,price}.rs",
    "lock/**/*.rs",
];

/// What the command was asked for.
struct MutantOptions {
    sample: usize,
    seed: u64,
}

/// `cargo xtask mutants [--sample N] [--seed SEED]`
pub(crate) fn command(repo: &Repo, args: &[String]) -> Result<()> {
    let options = MutantOptions::parse(args)?;
    let processes = ProcessGuard::new(LIMIT);
    let result = run(repo, &processes, &options);
    result.and(processes.sweep())
}

/// A new sample of the default size.
pub(crate) fn run_part(context: &TestContext) -> Result<()> {
    run(context.repo, context.processes, &MutantOptions::parse(&[])?)
}

impl MutantOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self { sample: SAMPLE, seed: new_seed()? };
        for pair in args.chunks(2) {
            let number = pair.get(1).map(|text| text.parse::<u64>());
            match (pair[0].as_str(), number) {
                ("--sample", Some(Ok(number))) => options.sample = usize::try_from(number)?,
                ("--seed", Some(Ok(number))) => options.seed = number,
                _ => bail!("expected --sample N or --seed SEED, not `{}`", pair.join(" ")),
            }
        }
        Ok(options)
    }
}

fn new_seed() -> Result<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(since.as_secs())
}

fn run(repo: &Repo, processes: &ProcessGuard, options: &MutantOptions) -> Result<()> {
    let all = list(repo, processes)?;
    let total = all.len();
    let mutants = sample::choose(all, options.sample, options.seed);
    println!("{} of {total} mutants; repeat with: --seed {}", mutants.len(), options.seed);
    let score = test_all(repo, processes, &mutants)?;
    let explained = repo.read(EXPLANATIONS)?;
    print!("{}", score.report(&explained));
    let percent = score.percent(&explained);
    ensure!(percent >= CAUGHT_MIN, "the tests caught {percent}%, less than {CAUGHT_MIN}%");
    Ok(())
}

/// All mutants of the rules.
fn list(repo: &Repo, processes: &ProcessGuard) -> Result<Vec<Mutant>> {
    let program = need_tool(repo, processes)?;
    // Not in the copy, which may have the mutants of an earlier run.
    let mut command = repo.command(&program.display().to_string());
    command.args(["mutants", "--list", "--json", "--package", "catraca-core"]);
    for file in FILES {
        command.arg("--file").arg(format!("crates/catraca-core/src/{file}"));
    }
    let output = command.output().context("cannot run cargo-mutants")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo mutants --list: {}", errors.trim());
    mutant::parse_list(&String::from_utf8(output.stdout)?)
}

/// The path of cargo-mutants; installed if it is missing.
fn need_tool(repo: &Repo, processes: &ProcessGuard) -> Result<PathBuf> {
    let program = repo.path(TOOLS).join("bin/cargo-mutants");
    if !program.is_file() {
        let args = ["install", "--locked", "cargo-mutants", "--version", VERSION, "--root", TOOLS];
        processes.run(&mut repo.cargo(&args))?;
    }
    Ok(program)
}

fn test_all(repo: &Repo, processes: &ProcessGuard, mutants: &[Mutant]) -> Result<Score> {
    let build = build::build(repo, processes, mutants)?;
    for test in &build.tests {
        // A test that fails without a mutant would catch everything.
        let result = run_test(test, None)?;
        let name = test.executable.display();
        let passes = result == TestResult::Pass;
        ensure!(passes, "without a mutant: {name} {} {result:?}", test.filter);
    }
    let mut score = Score { unviable: build.unviable.len(), ..Score::default() };
    for (number, mutant) in mutants.iter().enumerate() {
        if build.unviable.contains(&number) {
            println!("unviable {}", mutant.name);
            continue;
        }
        let mut result = TestResult::Pass;
        for test in &build.tests {
            result = run_test(test, Some(number))?;
            if result != TestResult::Pass {
                break;
            }
        }
        match result {
            TestResult::Pass => score.missed.push(mutant.short_name()),
            TestResult::Fail => score.caught += 1,
            TestResult::Timeout => score.timeout += 1,
        }
        println!("{result:?} {}", mutant.name);
    }
    Ok(score)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestResult {
    Pass,
    Fail,
    Timeout,
}

/// Runs tests with one mutant, or with none.
fn run_test(test: &MutantTest, mutant: Option<usize>) -> Result<TestResult> {
    let mut command = Command::new("sh");
    let limits = format!("ulimit -S -t {CPU_SECONDS} && ulimit -S -v {MEMORY_KIB}");
    let limited = format!("{limits} && exec \"$0\" \"$@\"");
    command.arg("-c").arg(limited).arg(&test.executable).arg(test.filter);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // The default seeds of the tests.
    command.env_remove("CATRACA_SEED").env("CATRACA_ORACLE_DECISIONS", DECISIONS);
    command.env(SWITCH, mutant.map_or_else(String::new, |number| number.to_string()));
    let processes = ProcessGuard::new(TEST_LIMIT);
    Ok(match processes.status_in_time(&mut command)? {
        Some(status) if status.success() => TestResult::Pass,
        Some(status) if status.signal() == Some(SIGXCPU) => TestResult::Timeout,
        Some(_) => TestResult::Fail,
        None => TestResult::Timeout,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<MutantOptions> {
        MutantOptions::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn sample_and_seed_are_numbers_in_any_order() {
        let options = parse(&["--seed", "7", "--sample", "25"]).unwrap();
        assert_eq!((options.seed, options.sample), (7, 25));
        assert_eq!(parse(&[]).unwrap().sample, SAMPLE);
        assert!(parse(&["--seed"]).is_err() && parse(&["--seed", "x"]).is_err());
        assert!(parse(&["--jobs", "2"]).is_err());
    }
}
