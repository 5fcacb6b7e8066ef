//! `cost` and `credit`: the price of each outcome, and the units that later events give back.
//!
//! `terms` compares prices with the limit, which may be inherited from the policy.

use toml::de::DeValue;

use super::attribute::AttributeTable;
use super::body_cost::{self, BODY_COST};
use super::scalar;
use crate::located::{
    DefaultValue, FieldSchema, LocatedKey, Node, Report, SourceLocation, TableFields, TableSchema,
    ValueSchema, names, schema::words,
};
use crate::policy::CreditRule;
use crate::price::{Cost, Price, PriceTable, StatusSet};
use crate::request::COST_MAX;

/// `cost` of a policy or of a tier.
pub(super) const COST: FieldSchema = FieldSchema::new(
    "cost",
    ValueSchema::AnyOf(&[
        UNITS,
        ValueSchema::Word(|| words(&COST_WORDS)),
        ValueSchema::Table(&BODY_COST),
        ValueSchema::Map(&ValueSchema::AnyOf(&[UNITS, ValueSchema::Word(|| words(&PRICE_WORDS))])),
    ]),
    "an integer, `\"reported\"` (the `outcome.cost` of the settle), a table by the status of \
     the outcome, or a table with `from`, the field of its body that has the cost; see below",
)
.or(DefaultValue::Absent("the cost in the request, or 1"));

/// `credit` of a policy or of a tier.
pub(super) const CREDITS: FieldSchema = FieldSchema::new(
    "credit",
    ValueSchema::Map(&ValueSchema::Table(&CREDIT)),
    "`{ EVENT = { amount, on } }`: the units that a later event gives back, once, if the settled \
     status is in `on`; buckets only",
);

/// The fields of one event of `credit`.
pub(super) const CREDIT: TableSchema = TableSchema {
    name: "credit",
    fields: &[
        FieldSchema::new(
            "amount",
            ValueSchema::Integer { least: 1, most: COST_MAX },
            "the units that the event gives back",
        )
        .require(),
        FieldSchema::new("on", STATUSES, "the settled statuses for which it does")
            .or(DefaultValue::Absent("all")),
    ],
};

/// The cost of one request.
const UNITS: ValueSchema = ValueSchema::Integer { least: 0, most: COST_MAX };
/// A set of statuses: one text or a list of them.
pub(super) const STATUSES: ValueSchema =
    ValueSchema::AnyOf(&[STATUS, ValueSchema::List { of: &STATUS, most: usize::MAX }]);
const STATUS: ValueSchema = ValueSchema::Pattern {
    pattern: "^([1-5][0-9][0-9]|[1-5]xx)$",
    words: "a status such as `\"404\"`, or a class such as `\"5xx\"`",
};
const COST_WORDS: [(&str, ()); 1] = [("reported", ())];
const PRICE_WORDS: [(&str, Price); 1] = [("drain", Price::Drain)];

/// One key of a price table, or one item of a set of statuses.
enum StatusPattern {
    Exact(u16),
    Class(u8),
}

/// Reads `cost`.
pub(super) fn cost(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<Cost> {
    match node.value {
        DeValue::Integer(_) => scalar::cost(report, node, 0).map(Cost::Units),
        DeValue::Table(_) if is_body_cost(node) => {
            body_cost::read(report, node, attributes).map(|cost| Cost::Body(Box::new(cost)))
        }
        DeValue::Table(_) => table(report, node).map(Cost::Table),
        DeValue::String(_) => scalar::keyword(report, node, &COST_WORDS).map(|()| Cost::Reported),
        _ => node.report_wrong_type(
            report,
            "an integer, \"reported\", or a table such as { \"404\" = 20, default = 0 }",
        ),
    }
}

/// Whether a table has a field of a cost from the body, and not statuses.
fn is_body_cost(node: Node<'_>) -> bool {
    let entries = node.as_entries().unwrap_or_default();
    entries.iter().any(|(key, _)| BODY_COST.field(key.text).is_some())
}

fn table(report: &mut Report, node: Node<'_>) -> Option<PriceTable> {
    let mut table = PriceTable::default();
    let mut is_valid = true;
    for (key, node) in node.entries(report, "a table")? {
        let price = price(report, node);
        // With an invalid price the key is still checked; the table is not used then.
        let is_valid_key = insert_price(report, &mut table, key, price.unwrap_or(Price::Drain));
        is_valid &= is_valid_key && price.is_some();
    }
    table.exact.sort_by_key(|(status, _)| *status);
    is_valid.then_some(table)
}

/// Adds a price under its key; `false` if the key is not a status.
fn insert_price(
    report: &mut Report,
    table: &mut PriceTable,
    key: LocatedKey<'_>,
    price: Price,
) -> bool {
    match key.text {
        "none" => table.none = Some(price),
        "default" => table.default = Some(price),
        text => match status(report, key.location, text, " or none or default") {
            Some(StatusPattern::Exact(status)) => table.exact.push((status, price)),
            Some(StatusPattern::Class(class)) => table.class[usize::from(class)] = Some(price),
            None => return false,
        },
    }
    true
}

fn price(report: &mut Report, node: Node<'_>) -> Option<Price> {
    match node.value {
        DeValue::Integer(_) => scalar::cost(report, node, 0).map(Price::Units),
        DeValue::String(_) => scalar::keyword(report, node, &PRICE_WORDS),
        _ => node.report_wrong_type(report, "an integer or \"drain\""),
    }
}

/// Reads `credit`.
pub(super) fn credits(report: &mut Report, node: Node<'_>) -> Option<Vec<CreditRule>> {
    let wanted = "a table such as { payment = { amount = 1, on = [\"200\"] } }";
    let entries = node.entries(report, wanted)?;
    let read: Vec<_> = entries.into_iter().map(|(key, node)| credit(report, key, node)).collect();
    read.into_iter().collect()
}

fn credit(report: &mut Report, key: LocatedKey<'_>, node: Node<'_>) -> Option<CreditRule> {
    let is_valid_name = names::check_key(report, key, "event");
    let fields = TableFields::read(report, key.location, node, &CREDIT)?;
    let amount = fields.require(report, "amount", "1");
    let amount = amount.and_then(|node| scalar::cost(report, node, 1));
    let on = fields.parse("on", |node| statuses(report, node)).optional();
    Some(CreditRule { event: is_valid_name.then(|| key.text.into())?, amount: amount?, on: on? })
}

/// Reads a set of statuses: one text or a list of them.
pub(super) fn statuses(report: &mut Report, node: Node<'_>) -> Option<StatusSet> {
    let texts = node.texts(report, "statuses such as [\"200\", \"5xx\"]")?;
    let mut set = StatusSet::default();
    let mut is_valid = true;
    for (item, text) in &texts {
        match status(report, item.location, text, "") {
            Some(StatusPattern::Exact(status)) => set.exact.push(status),
            Some(StatusPattern::Class(class)) => set.classes.push(class),
            None => is_valid = false,
        }
    }
    if texts.is_empty() {
        let message = "no status is named";
        report.error("bad-status", node.location, message, "name at least one, such as [\"200\"]");
    }
    (is_valid && !texts.is_empty()).then_some(set)
}

/// Reads `404`, or `4xx` for a class; `others` lists further values that the field accepts, for the
/// error message.
fn status(
    report: &mut Report,
    location: SourceLocation,
    text: &str,
    others: &str,
) -> Option<StatusPattern> {
    let digits = |text: &str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let exact = || text.parse().ok().filter(|code| digits(text) && (100..600).contains(code));
    let class = || text.strip_suffix("xx")?.parse().ok().filter(|class| (1..6).contains(class));
    let found = exact().map(StatusPattern::Exact).or_else(|| class().map(StatusPattern::Class));
    if found.is_none() {
        let message = format!("`{}` is not a status", text.escape_debug());
        let fix = format!("write a status such as \"404\", a class such as \"5xx\"{others}");
        report.error("bad-status", location, message, fix);
    }
    found
}
