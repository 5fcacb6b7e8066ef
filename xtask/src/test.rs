//! `cargo xtask test`: does all set-up, runs every part, and says what each cost.
//!
//! A failing part does not stop the others: one run shows everything that is wrong. Must not hold
//! what a part does; that is `test/parts.rs`.

mod cargo;
mod checkout;
mod features;
mod load;
mod lua;
mod parts;
mod planted_bugs;
mod postgres;
mod redis;
mod report;
mod scenarios;
mod setup;
#[cfg(test)]
mod store_filters;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use catraca_conformance::{ProcessGuard, Repo, TestContext};

use checkout::Checkout;
use parts::{PARTS, Part};
use report::PartResult;
pub(crate) use scenarios::SUFFIX as SCENARIO_SUFFIX;
use setup::Setup;
pub(crate) use setup::command as set_up;

/// How much more a deep run does, and how much longer it may take.
const DEEP: u32 = 10;

/// `cargo xtask test [--deep] [PART...]`
pub(crate) fn test(repo: &Repo, args: &[String]) -> Result<()> {
    let plan = Plan::parse(args)?;
    let checkout = Checkout::read(repo)?;
    let mut setup = Setup::start(repo, &plan.parts)?;
    let mut outcomes = Vec::new();
    for part in &plan.parts {
        outcomes.extend(setup.wait_before(part)?);
        outcomes.push(run(repo, part, plan.factor));
    }
    print!("\n{}", report::table(&outcomes));
    let run_max = if plan.factor == 1 { report::RUN_MAX } else { Duration::MAX };
    // Both are judged, so that a failed part does not hide a file that the run has changed.
    let unchanged = checkout.compare(&Checkout::read(repo)?);
    if let Err(error) = &unchanged {
        println!("{error:#}");
    }
    report::conclude(&outcomes, run_max).and(unchanged)
}

struct Plan {
    parts: Vec<&'static Part>,
    factor: u32,
}

impl Plan {
    /// Parts always run in the order of the list, not in the order of the arguments.
    fn parse(args: &[String]) -> Result<Self> {
        let (flags, names): (Vec<&String>, Vec<&String>) =
            args.iter().partition(|arg| arg.starts_with('-'));
        if let Some(flag) = flags.iter().find(|flag| **flag != "--deep") {
            bail!("unknown flag `{flag}`; there is only --deep");
        }
        if let Some(name) = names.iter().find(|name| PARTS.iter().all(|part| part.name != **name)) {
            let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            bail!("unknown part `{name}`; there are: {}", known.join(", "));
        }
        let deep = !flags.is_empty();
        let wanted = |part: &&Part| match names.as_slice() {
            [] => deep || !part.deep_only,
            names => names.iter().any(|name| part.name == *name),
        };
        let parts = PARTS.iter().filter(wanted).collect();
        Ok(Self { parts, factor: if deep { DEEP } else { 1 } })
    }
}

fn run(repo: &Repo, part: &'static Part, factor: u32) -> PartResult {
    let budget = part.budget(factor);
    println!("\n== {} (budget {} min)", part.name, budget.as_secs() / 60);
    let start = Instant::now();
    let processes = ProcessGuard::new(budget * report::PATIENCE);
    let result = (part.run)(&TestContext { repo, processes: &processes, factor });
    let swept = processes.sweep();
    let error = result.and(swept).err().map(|error| format!("{error:#}"));
    if let Some(error) = &error {
        println!("== {} FAILED: {error}", part.name);
    }
    PartResult { name: part.name, took: start.elapsed(), budget, error }
}

impl Part {
    fn budget(&self, factor: u32) -> Duration {
        let factor = if self.deepens { factor } else { 1 };
        Duration::from_secs(60 * u64::from(self.minutes)) * factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(args: &[&str]) -> Result<Plan> {
        Plan::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.parts.iter().map(|part| part.name).collect()
    }

    #[test]
    fn no_argument_means_every_part_but_those_of_a_deep_run() {
        let normal = plan(&[]).unwrap();
        assert!(!names(&normal).contains(&"load"));
        assert_eq!(normal.factor, 1);
        let deep = plan(&["--deep"]).unwrap();
        assert_eq!(deep.parts.len(), PARTS.len());
        assert_eq!(names(&plan(&["load"]).unwrap()), ["load"]);
    }

    #[test]
    fn named_parts_run_in_the_order_of_the_list() {
        let plan = plan(&["trace", "--deep", "fmt"]).unwrap();
        assert_eq!(names(&plan), ["fmt", "trace"]);
        assert_eq!(plan.factor, DEEP);
    }

    #[test]
    fn a_misspelt_part_or_flag_is_refused() {
        assert!(plan(&["ftm"]).is_err_and(|error| error.to_string().contains("fmt, tidy")));
        assert!(plan(&["--depe"]).is_err());
    }

    #[test]
    fn a_deep_run_lengthens_only_the_parts_that_deepen() {
        let budget = |name| {
            let part = PARTS.iter().find(|part| part.name == name).unwrap();
            (part.budget(1), part.budget(DEEP))
        };
        let (normal, deep) = budget("oracle");
        assert_eq!(normal * DEEP, deep);
        let (normal, deep) = budget("fmt");
        assert_eq!(normal, deep);
    }
}
