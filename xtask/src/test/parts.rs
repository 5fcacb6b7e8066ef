//! The list of parts: one line each, with its budget.
//!
//! A part is added here and nowhere else. Must not contain what a part does.

use anyhow::Result;
use catraca_conformance::{
    TestContext, api, clients, demos, deploy, docs, faults, gateways, go_sdk, screenshots, sfcc,
    typescript,
};

use super::{cargo, features, load, lua, planted_bugs, postgres, redis, scenarios};
use crate::{licences, mutants, requirements, tidy};

/// One part of the test run.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// The budget, on two cores and with nothing built yet.
    pub(crate) minutes: u32,
    /// Whether a deep run does more here.
    pub(crate) deepens: bool,
    /// Whether it runs only in a deep run, or by its name.
    pub(crate) deep_only: bool,
    pub(crate) run: fn(&TestContext) -> Result<()>,
}

/// All parts, cheapest news first.
pub(crate) const PARTS: &[Part] = &[
    part("fmt", 1, cargo::fmt),
    part("tidy", 1, |context| tidy::tidy(context.repo)),
    part("licences", 1, |context| licences::licences(context.repo)),
    part("clippy", 8, cargo::clippy),
    part("doc", 3, cargo::doc),
    part("features", 8, features::run),
    Part { deepens: true, ..part("unit", 20, cargo::unit) },
    Part { deepens: true, ..part("figures", 4, cargo::figures) },
    Part { deepens: true, ..part("oracle", 10, cargo::oracle) },
    part("planted-bugs", 6, planted_bugs::run),
    part("scenarios", 3, scenarios::run),
    Part { deepens: true, ..part("lua", 8, lua::run) },
    Part { deepens: true, ..part("redis", 12, redis::run) },
    Part { deepens: true, ..part("postgres", 8, postgres::run) },
    Part { deepens: true, ..part("faults", 4, faults::run) },
    part("docs", 3, docs::run_all),
    part("demos", 2, demos::run),
    Part { deepens: true, ..part("api", 6, api::run) },
    part("clients", 8, clients::run),
    part("typescript", 12, typescript::run),
    part("go", 6, go_sdk::run),
    part("sfcc", 4, sfcc::run),
    Part { deepens: true, ..part("gateways", 6, gateways::run) },
    part("screenshots", 5, screenshots::run),
    part("deploy", 2, deploy::run),
    Part { deep_only: true, ..part("kills", 10, cargo::kills) },
    Part { deep_only: true, ..part("load", 8, load::run) },
    Part { deep_only: true, ..part("dict", 15, demos::run_dict_traffic) },
    Part { deep_only: true, ..part("mutants", 40, mutants::run_part) },
    part("trace", 1, |context| requirements::trace(context.repo, false)),
];

const fn part(name: &'static str, minutes: u32, run: fn(&TestContext) -> Result<()>) -> Part {
    Part { name, minutes, deepens: false, deep_only: false, run }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contributing_lists_every_part_with_its_budget() {
        let guide = include_str!("../../../CONTRIBUTING.md");
        let rows: Vec<(&str, &str)> = guide
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"))
            .filter_map(|line| Some((line.split_once('`')?.0, line.rsplit_once("| ")?.1)))
            .collect();
        for part in PARTS {
            let minutes = part.minutes.to_string();
            assert!(rows.contains(&(part.name, &minutes)), "{} {minutes}: {rows:?}", part.name);
        }
    }
}
