//! The JSON form of an explanation.

use std::collections::BTreeMap;

use catraca::explain::{ExplainedPolicy, Explanation};
use serde::Serialize;

use super::request::RouteMatch;

#[derive(Serialize)]
pub struct ExplanationJson<'a> {
    gate: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a RouteMatch>,
    revision: &'a str,
    unlisted: bool,
    list: Option<ListVerdictJson<'a>>,
    policies: Vec<ExplanationRowJson<'a>>,
    absent: Vec<Absent<'a>>,
}

#[derive(Serialize)]
struct ListVerdictJson<'a> {
    decides: &'a str,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct ExplanationRowJson<'a> {
    policy: &'a str,
    instead_of: Option<&'a str>,
    key: BTreeMap<&'a str, &'a str>,
    tier: Option<Tier<'a>>,
    limit: &'a str,
    block: Option<&'a str>,
    held: i64,
    too_costly: bool,
    price: &'a str,
    mode: &'a str,
}

#[derive(Serialize)]
struct Tier<'a> {
    number: usize,
    when: &'a str,
    own_counter: bool,
}

#[derive(Serialize)]
struct Absent<'a> {
    policy: &'a str,
    why: &'a str,
}

/// Converts an explanation.
pub fn to_json<'a>(
    explained: &'a Explanation,
    route: Option<&'a RouteMatch>,
) -> ExplanationJson<'a> {
    let list = explained.list.as_ref();
    let absent = explained.absent.iter();
    ExplanationJson {
        gate: &explained.gate,
        route,
        revision: &explained.revision,
        unlisted: explained.unlisted,
        list: list.map(|(decides, reason)| ListVerdictJson { decides, reason: reason.as_deref() }),
        policies: explained.rows.iter().map(row).collect(),
        absent: absent.map(|(policy, why)| Absent { policy, why }).collect(),
    }
}

fn row(row: &ExplainedPolicy) -> ExplanationRowJson<'_> {
    let tier = row.tier.as_ref();
    ExplanationRowJson {
        policy: &row.policy,
        instead_of: row.instead_of.as_deref(),
        key: row.key.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        tier: tier.map(|(number, when)| Tier {
            number: *number,
            when,
            own_counter: row.own_counter,
        }),
        limit: &row.limit,
        block: row.block.as_deref(),
        held: row.held,
        too_costly: row.too_costly,
        price: &row.price,
        mode: row.mode.as_str(),
    }
}
