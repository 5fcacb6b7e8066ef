//! `cost` of a policy that is a table with `from`: the fields of the outcome's body with the cost.

use std::collections::BTreeMap;

use super::attribute::AttributeTable;
use super::scalar;
use super::schema;
use crate::json_path::JsonPath;
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, TableFields, TableSchema, ValueSchema,
};
use crate::price::{BodyCost, CostWeights};
use crate::request::COST_MAX;

/// The most fields that are added up.
const FIELDS_MAX: usize = 8;

/// The fields of a `cost` from the body of the outcome.
pub(super) const BODY_COST: TableSchema = TableSchema {
    name: "cost from the body",
    fields: &[
        FieldSchema::new(
            "from",
            ValueSchema::AnyOf(&[FIELD, ValueSchema::List { of: &FIELD, most: FIELDS_MAX }]),
            "the field of the outcome's JSON body that has the cost, such as \
             `body.usage.total_tokens`; several fields are added up",
        )
        .require(),
        FieldSchema::new(
            "weight_by",
            schema::NAME,
            "an attribute of the request, such as `model`, whose value chooses the weight",
        )
        .or(DefaultValue::Absent("none: every unit costs one")),
        FieldSchema::new(
            "weights",
            ValueSchema::Map(&WEIGHT),
            "what one unit costs for each value; `default` for all others, which else have the \
             largest weight",
        ),
    ],
};

const FIELD: ValueSchema = ValueSchema::Pattern {
    pattern: "^body[.]",
    words: "a field such as `body.usage.total_tokens`",
};
const WEIGHT: ValueSchema = ValueSchema::Integer { least: 0, most: COST_MAX };

/// Reads a `cost` with `from`.
pub(super) fn read(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<BodyCost> {
    #[cfg(not(feature = "outcome-body"))]
    super::feature::report_missing(report, node.location, "a cost from the body", "cel");
    let fields = TableFields::read_item(report, node, &BODY_COST)?;
    let from = fields.require(report, "from", "\"body.usage.total_tokens\"");
    let from = from.and_then(|node| paths(report, node));
    let weights = weights(report, &fields, attributes);
    Some(BodyCost { from: from?, weights: weights? })
}

fn paths(report: &mut Report, node: Node<'_>) -> Option<Vec<JsonPath>> {
    let wanted = "a field such as \"body.usage.total_tokens\"";
    let texts = node.texts(report, wanted)?;
    let paths: Vec<_> = texts
        .iter()
        .map(|(item, text)| {
            let path = text.strip_prefix("body.").and_then(JsonPath::parse);
            if path.is_none() {
                let message = format!("`{}` is not a field of a body", text.escape_debug());
                report.error("bad-pick", item.location, message, format!("write {wanted}"));
            }
            path
        })
        .collect();
    if !(1..=FIELDS_MAX).contains(&texts.len()) {
        let message = format!("{} fields are named", texts.len());
        report.error("bad-pick", node.location, message, format!("name 1 to {FIELDS_MAX}"));
        return None;
    }
    paths.into_iter().collect()
}

/// The weights; the outer `None` means that they are invalid.
fn weights(
    report: &mut Report,
    fields: &TableFields<'_>,
    attributes: &AttributeTable,
) -> Option<Option<CostWeights>> {
    let (by, table) = match (fields.get("weight_by"), fields.get("weights")) {
        (None, None) => return Some(None),
        (Some(by), Some(table)) => (by, table),
        (by, table) => {
            let location = by.or(table).map_or(fields.location, |node| node.location);
            let message = "`weight_by` and `weights` belong together";
            report.error("bad-weight", location, message, "write both, or none");
            return None;
        }
    };
    let by = weighing_attribute(report, by, attributes)?;
    let mut weights = BTreeMap::new();
    let mut default = None;
    let mut is_valid = true;
    for (key, node) in table.entries(report, "a table such as { large = 10, default = 1 }")? {
        let weight = scalar::cost(report, node, 0);
        is_valid &= weight.is_some();
        if key.text == "default" {
            default = weight;
            continue;
        }
        let value = attributes.normalise_value(report, by, key.location, key.text);
        is_valid &= value.is_some();
        weights.extend(value.zip(weight));
    }
    // An unknown value must not be the cheapest.
    let largest = weights.values().copied().max();
    let Some(default) = default.or(largest).filter(|_| is_valid) else {
        if is_valid {
            let message = "no weight is given";
            report.error("bad-weight", table.location, message, "write one, such as default = 1");
        }
        return None;
    };
    Some(Some(CostWeights { by: by.into(), weights, default }))
}

/// The attribute that weights are chosen by; the settle sees only what the ticket has.
fn weighing_attribute<'t>(
    report: &mut Report,
    node: Node<'t>,
    attributes: &AttributeTable,
) -> Option<&'t str> {
    let name = node.text(report, "the name of an attribute")?;
    let why = if attributes.source(name).is_some() {
        "is a fact or derived"
    } else if attributes.by_name.get(name).is_some_and(|attribute| attribute.private) {
        "is private"
    } else {
        return Some(name);
    };
    let message = format!("`{name}` {why}, and a ticket does not contain its value");
    report.error("bad-weight", node.location, message, "write another attribute, or use tiers");
    None
}
