//! `catraca conformance`: how many limits the catalog has, which programs use each of them, and
//! which limits are stated outside of it.

mod inline_limits;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::{Value, json};

use super::catalog;
use super::remote::format::{cell, rows};
use super::remote::show;
use crate::args::ConformanceArgs;
use crate::client::{Client, Reply};
use crate::exit::Exit;
use inline_limits::CodeSearch;

/// What the catalog or the server says.
#[derive(Default)]
struct UsedGates {
    policies: BTreeSet<String>,
    /// The programs that use each gate, with their checks.
    callers: BTreeMap<String, BTreeMap<String, u64>>,
    unlisted: BTreeSet<String>,
}

/// Counts and prints. Exits 1 unless everything conforms.
pub fn run(args: &ConformanceArgs) -> Result<Exit> {
    let code = CodeSearch::run(&args.code, &args.except)?;
    let used = match args.file.as_ref().or(args.catalog.as_ref()) {
        Some(file) => {
            let policies = catalog(file)?.policies;
            let policies = policies.iter().map(|policy| policy.name.to_string()).collect();
            UsedGates { policies, ..UsedGates::default() }
        }
        None => used_gates(&Client::new(&args.remote)?)?,
    };
    let json = used.report(&code);
    let conforms = json["conformance_percent"] == 100;
    let reply = Reply { text: json.to_string(), json };
    show(args.remote.output, &reply, report_text)?;
    Ok(if conforms { Exit::Yes } else { Exit::No })
}

fn used_gates(client: &Client) -> Result<UsedGates> {
    let listed = client.get("/v1/policies")?.json;
    let stats = client.get("/v1/stats")?.json;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut used = UsedGates {
        policies: all(&listed["policies"]).iter().map(|row| text(&row["policy"])).collect(),
        unlisted: all(&stats["unlisted_gates"]).iter().map(text).collect(),
        callers: BTreeMap::new(),
    };
    for row in all(&stats["callers"]) {
        let programs = used.callers.entry(text(&row["gate"])).or_default();
        *programs.entry(text(&row["caller"])).or_default() +=
            row["checks"].as_u64().unwrap_or_default();
    }
    Ok(used)
}

impl UsedGates {
    /// A use is a program with a gate, a gate that no program with a name uses, or a limit in code.
    /// It conforms if the catalog has the gate.
    fn report(&self, code: &CodeSearch) -> Value {
        let pairs = |is_listed: bool| {
            let gates = self.callers.iter();
            let gates = gates.filter(|(gate, _)| self.unlisted.contains(*gate) != is_listed);
            gates.map(|(_, programs)| programs.len()).sum::<usize>()
        };
        let conforming = pairs(true);
        let nameless = self.unlisted.iter().filter(|gate| !self.callers.contains_key(*gate));
        let others = pairs(false) + nameless.count() + code.places.len();
        let percent = (conforming * 100).checked_div(conforming + others).unwrap_or(100);
        let programs: BTreeSet<&String> = self.callers.values().flat_map(BTreeMap::keys).collect();
        let gates: BTreeSet<&String> = self.policies.iter().chain(self.callers.keys()).collect();
        let gates = gates.into_iter().map(|gate| {
            let programs = self.callers.get(gate).cloned().unwrap_or_default();
            json!({
                "gate": gate,
                "listed": !self.unlisted.contains(gate),
                "callers": programs.len(),
                "checks": programs.values().sum::<u64>(),
                "names": programs.into_keys().collect::<Vec<_>>(),
            })
        });
        json!({
            "policies": self.policies.len(),
            "inline_policies": code.places.len(),
            "inline": code.places,
            "files": code.files,
            "callers": programs.len(),
            "unlisted_gates": self.unlisted,
            "conformance_percent": percent,
            "gates": gates.collect::<Vec<_>>(),
        })
    }
}

fn report_text(report: &Value) -> String {
    let line = |name: &str, value: String| format!("{name:<16} {value:>5}\n");
    let count = |field: &str| cell(&report[field]);
    let mut text = line("policies", count("policies"));
    text += &line("inline policies", count("inline_policies"));
    text += &line("callers", count("callers"));
    let unlisted = report["unlisted_gates"].as_array().map_or(0, Vec::len);
    text += &line("unlisted gates", unlisted.to_string());
    text += &line("conformance", format!("{}%", count("conformance_percent")));
    for place in report["inline"].as_array().into_iter().flatten() {
        text += &format!("\ninline: {}", cell(place));
    }
    if unlisted > 0 {
        text += &format!("\nunlisted: {}", count("unlisted_gates"));
    }
    if report["callers"] == 0 {
        return text.trim_end().to_owned();
    }
    let heads = ["gate", "callers", "checks", "names"];
    let table = rows(&heads, &[1, 2], &report["gates"], "", |row| {
        heads.map(|head| cell(&row[head])).to_vec()
    });
    format!("{}\n\n{table}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(callers: &[(&str, &str)], unlisted: &[&str]) -> UsedGates {
        let mut used = UsedGates {
            policies: ["login", "pay"].map(str::to_owned).into(),
            unlisted: unlisted.iter().map(|gate| (*gate).to_owned()).collect(),
            ..UsedGates::default()
        };
        for (caller, gate) in callers {
            let programs = used.callers.entry((*gate).to_owned()).or_default();
            *programs.entry((*caller).to_owned()).or_default() += 1;
        }
        used
    }

    fn percent(used: &UsedGates, inline: usize) -> Value {
        let places = (0..inline).map(|number| format!("a.ts:{number}:1")).collect();
        used.report(&CodeSearch { files: 1, places })["conformance_percent"].clone()
    }

    #[test]
    fn the_share_counts_uses_that_the_catalog_knows() {
        assert_eq!(percent(&used(&[], &[]), 0), 100);
        let two = [("shop", "login"), ("desk", "login")];
        assert_eq!(percent(&used(&two, &[]), 0), 100);
        assert_eq!(percent(&used(&two, &[]), 1), 66);
        assert_eq!(percent(&used(&two, &["typo"]), 0), 66);
        let three = [("shop", "login"), ("desk", "login"), ("shop", "typo")];
        assert_eq!(percent(&used(&three, &["typo"]), 0), 66, "counted once");
        assert_eq!(percent(&used(&[], &[]), 1), 0);
        let report = used(&two, &[]).report(&CodeSearch { files: 0, places: Vec::new() });
        assert_eq!(report["callers"], 2);
        assert_eq!(report["gates"][0]["callers"], 2);
        assert_eq!(report["gates"][1]["callers"], 0);
    }
}
