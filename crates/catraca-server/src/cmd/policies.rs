//! `catraca policies`: prints the policies of a catalog as a table, for people or for a document.

use std::io::Write;

use anyhow::{Context, Result};
use catraca::Catalog;
use catraca::core::policy::{BanRule, Policy, Terms};
use catraca::explain::{describe_block, describe_key, tier_condition};
use serde_json::{Value, json};

use super::remote::format::rows;
use crate::args::{PoliciesArgs, PoliciesFormat};
use crate::exit::Exit;
use crate::render::{StdoutPipe, sanitize};

const HEADS: [&str; 6] = ["policy", "group", "counts", "limit", "block", "message"];

/// Prints the table.
pub fn run(args: &PoliciesArgs) -> Result<Exit> {
    let path = args.catalog.as_deref().or(args.file.as_deref());
    let catalog = super::catalog(path.context("name the catalog with -c FILE")?)?;
    let policies = catalog.policies_of(args.group.as_deref())?;
    let table: Vec<Value> =
        policies.into_iter().flat_map(|policy| policy_rows(&catalog, policy)).collect();
    let text = match args.output {
        PoliciesFormat::Human => human(&table.into()),
        PoliciesFormat::Json => Value::from(table).to_string(),
        PoliciesFormat::Markdown => markdown(&table),
    };
    writeln!(StdoutPipe::stdout(), "{text}")?;
    Ok(Exit::Yes)
}

/// The policy itself, its tiers and its ban rules.
fn policy_rows(catalog: &Catalog, policy: &Policy) -> Vec<Value> {
    let message = policy.message.as_deref();
    let terms_row = |name: String, terms: Option<&Terms>| {
        let block = terms.and_then(|terms| terms.block).map(describe_block);
        row(policy, name, terms.map(Terms::describe_limit), block, message)
    };
    let mut rows = vec![terms_row(policy.name.to_string(), policy.base.as_ref())];
    rows.extend(policy.tiers.iter().map(|tier| {
        let name = format!("{}, if {}", policy.name, tier_condition(catalog, tier));
        terms_row(name, Some(&tier.terms))
    }));
    rows.extend(policy.bans.iter().map(|ban| ban_row(policy, ban)));
    rows
}

fn ban_row(policy: &Policy, ban: &BanRule) -> Value {
    let name = format!("{}, ban if {}", policy.name, ban.when.source());
    let after = ban.after.map_or_else(|| "the first one".to_owned(), |rate| rate.to_string());
    let message = ban.message.as_deref().or(policy.message.as_deref());
    row(policy, name, Some(after), Some(describe_block(ban.penalty)), message)
}

fn row(
    policy: &Policy,
    name: String,
    limit: Option<String>,
    block: Option<String>,
    message: Option<&str>,
) -> Value {
    json!({
        "policy": name,
        "group": policy.group.as_deref(),
        "counts": describe_key(&policy.key_spec),
        "limit": limit,
        "block": block,
        "message": message,
    })
}

fn human(table: &Value) -> String {
    let texts = |row: &Value| HEADS.map(|head| sanitize(&text(&row[head]))).to_vec();
    rows(&HEADS, &[], table, "The catalog has no policies.", texts)
}

/// A table as GitHub and most generators of documents read it.
fn markdown(table: &[Value]) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let head = line(HEADS.map(str::to_owned).to_vec());
    let rule = format!("|{}", "---|".repeat(HEADS.len()));
    let rows = table.iter().map(|row| {
        // A line end would end the row, and a bar the cell.
        let cell = |head| text(&row[head]).replace(['\r', '\n'], " ").replace('|', "\\|");
        line(HEADS.map(cell).to_vec())
    });
    [head, rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}
