//! `cost` and `credit`: what a request costs once its outcome is known, and what comes back.
//!
//! Must not judge prices against limits: the policy's reader does, for each of its terms.

use toml::de::DeValue;

use super::names;
use super::node::{Fields, Key, Node};
use super::report::{Place, Report};
use super::scalar;
use crate::policy::Credit;
use crate::price::{Cost, Price, PriceTable, StatusSet};

/// One key of a price table or one item of a set of statuses.
enum Status {
    Exact(u16),
    Class(u8),
}

/// Reads `cost`.
pub(super) fn cost(report: &mut Report, node: Node<'_>) -> Option<Cost> {
    match node.value {
        DeValue::Integer(_) => scalar::cost(report, node, 0).map(Cost::Units),
        DeValue::Table(_) => table(report, node).map(Cost::Table),
        DeValue::String(_) => {
            scalar::word(report, node, &[("reported", ())]).map(|()| Cost::Reported)
        }
        _ => node.refuse(
            report,
            "an integer, \"reported\", or a table such as { \"404\" = 20, default = 0 }",
        ),
    }
}

fn table(report: &mut Report, node: Node<'_>) -> Option<PriceTable> {
    let mut table = PriceTable::default();
    let mut fine = true;
    for (key, node) in node.entries(report, "a table")? {
        let price = price(report, node);
        let put = put(report, &mut table, key, price.unwrap_or(Price::Drain));
        fine &= put && price.is_some();
    }
    table.exact.sort_by_key(|(status, _)| *status);
    fine.then_some(table)
}

fn put(report: &mut Report, table: &mut PriceTable, key: Key<'_>, price: Price) -> bool {
    match key.text {
        "none" => table.none = Some(price),
        "default" => table.default = Some(price),
        text => match status(report, key.place, text, " or none or default") {
            Some(Status::Exact(status)) => table.exact.push((status, price)),
            Some(Status::Class(class)) => table.class[usize::from(class)] = Some(price),
            None => return false,
        },
    }
    true
}

fn price(report: &mut Report, node: Node<'_>) -> Option<Price> {
    match node.value {
        DeValue::Integer(_) => scalar::cost(report, node, 0).map(Price::Units),
        DeValue::String(_) => scalar::word(report, node, &[("drain", Price::Drain)]),
        _ => node.refuse(report, "an integer or \"drain\""),
    }
}

/// Reads `credit`.
pub(super) fn credits(report: &mut Report, node: Node<'_>) -> Option<Vec<Credit>> {
    let wanted = "a table such as { payment = { amount = 1, on = [\"200\"] } }";
    let entries = node.entries(report, wanted)?;
    let read: Vec<_> = entries.into_iter().map(|entry| credit(report, entry)).collect();
    read.into_iter().collect()
}

fn credit(report: &mut Report, (key, node): (Key<'_>, Node<'_>)) -> Option<Credit> {
    let named = names::check(report, key, "event");
    let fields = Fields::read(report, (key.place, node), "credit", &["amount", "on"])?;
    let amount = fields.need(report, "amount", "1");
    let amount = amount.and_then(|node| scalar::cost(report, node, 1));
    let on = fields.given("on", |node| statuses(report, node)).optional();
    Some(Credit { event: named.then(|| key.text.into())?, amount: amount?, on: on? })
}

/// Reads a set of statuses: one text or a list of them.
pub(super) fn statuses(report: &mut Report, node: Node<'_>) -> Option<StatusSet> {
    let texts = node.texts(report, "statuses such as [\"200\", \"5xx\"]")?;
    let mut set = StatusSet::default();
    let mut fine = true;
    for (item, text) in &texts {
        match status(report, item.place, text, "") {
            Some(Status::Exact(status)) => set.exact.push(status),
            Some(Status::Class(class)) => set.classes.push(class),
            None => fine = false,
        }
    }
    if texts.is_empty() {
        let message = "no status is named";
        report.error("bad-status", node.place, message, "name at least one, such as [\"200\"]");
    }
    (fine && !texts.is_empty()).then_some(set)
}

/// `404`, or `4xx` for the whole class.
fn status(report: &mut Report, place: Place, text: &str, others: &str) -> Option<Status> {
    let digits = |text: &str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let exact = || text.parse().ok().filter(|code| digits(text) && (100..600).contains(code));
    let class = || text.strip_suffix("xx")?.parse().ok().filter(|class| (1..6).contains(class));
    let found = exact().map(Status::Exact).or_else(|| class().map(Status::Class));
    if found.is_none() {
        let message = format!("`{}` is not a status", text.escape_debug());
        let fix = format!("write a status such as \"404\", a class such as \"5xx\"{others}");
        report.error("bad-status", place, message, fix);
    }
    found
}
