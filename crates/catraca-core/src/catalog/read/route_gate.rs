//! `gate` of a route: a name, or a map from the values of an attribute to names.
//!
//! Every name is that of a declared gate or policy. A request can choose one of them by a value,
//! and never name one.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::attribute::AttributeTable;
use super::gate::Gates;
use super::schema;
use crate::catalog::{GateMap, RouteGate};
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, TableFields, TableSchema, ValueSchema, names,
};
use crate::policy::Name;

/// `gate` of a route.
pub(super) const GATE: FieldSchema = FieldSchema::new(
    "gate",
    ValueSchema::AnyOf(&[schema::NAME, ValueSchema::Table(&GATE_MAP)]),
    "the gate or policy, or a table that chooses one by the value of an attribute; see below",
)
.require();

/// The fields of a `gate` that is chosen by a value.
pub(super) const GATE_MAP: TableSchema = TableSchema {
    name: "gate map",
    fields: &[
        FieldSchema::new(
            "by",
            schema::NAME,
            "an attribute that the route sets, or the name that is derived from it (`person`, \
             `key_type`)",
        )
        .require(),
        FieldSchema::new("map", ValueSchema::Map(&schema::NAME), "the gate of each value")
            .require(),
        FieldSchema::new("absent", schema::NAME, "the gate of requests without a value")
            .or(DefaultValue::Absent("none: they are refused")),
        FieldSchema::new("default", schema::NAME, "the gate of all other values")
            .or(DefaultValue::Absent("none: they are refused")),
    ],
};

/// Reads `gate`; `sets` returns whether the route sets an attribute.
pub(super) fn read(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
    gates: &Gates,
    sets: impl Fn(&str) -> bool,
) -> Option<RouteGate> {
    match node.value {
        DeValue::Table(_) => {
            let fields = TableFields::read_item(report, node, &GATE_MAP)?;
            let by = fields.require(report, "by", "\"tenant\"");
            let by = by.and_then(|node| by_name(report, node, attributes, sets));
            let map = fields.require(report, "map", "{ value = \"gate\" }");
            let map = map.and_then(|node| {
                map_gates(report, node, by.as_ref().map(|(name, _)| name), attributes, gates)
            });
            let absent = fields.parse("absent", |node| gate_name(report, node, gates)).optional();
            let default = fields.parse("default", |node| gate_name(report, node, gates)).optional();
            let (by, attribute) = by?;
            let map = GateMap { by, attribute, gates: map?, absent: absent?, default: default? };
            Some(RouteGate::Map(Box::new(map)))
        }
        _ => gate_name(report, node, gates).map(RouteGate::Fixed),
    }
}

/// The name that chooses, and the attribute of the route that it comes from.
fn by_name(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
    sets: impl Fn(&str) -> bool,
) -> Option<(Name, Name)> {
    let name = node.text(report, "the name of an attribute")?;
    let derived = attributes.derived_name(name).map(|(_, attribute)| attribute.clone());
    let attribute = derived.unwrap_or_else(|| name.into());
    if !sets(&attribute) {
        let message = format!("the route does not set `{attribute}`");
        let fix = format!("add it to the route, such as set = {{ {attribute} = \"path:2\" }}");
        report.error("gate-by-unset", node.location, message, fix);
        return None;
    }
    Some((name.into(), attribute))
}

/// The gates by their values in normal form.
fn map_gates(
    report: &mut Report,
    node: Node<'_>,
    by: Option<&Name>,
    attributes: &AttributeTable,
    gates: &Gates,
) -> Option<BTreeMap<String, Name>> {
    let mut map = BTreeMap::new();
    let mut is_valid = true;
    for (key, node) in node.entries(report, "a table such as { value = \"gate\" }")? {
        let value =
            by.and_then(|by| attributes.normalise_value(report, by, key.location, key.text));
        let gate = gate_name(report, node, gates);
        let (Some(value), Some(gate)) = (value, gate) else {
            is_valid = false;
            continue;
        };
        if map.insert(value, gate).is_some() {
            let message = "two keys are the same value";
            report.private_error("duplicate-name", key.location, message, "keep one of them");
            is_valid = false;
        }
    }
    is_valid.then_some(map)
}

fn gate_name(report: &mut Report, node: Node<'_>, gates: &Gates) -> Option<Name> {
    let name = node.text(report, "the name of a gate")?;
    let found = gates.all.get_key_value(name).map(|(name, _)| name.clone());
    if found.is_none() {
        let known: Vec<&str> = gates.names.iter().map(|name| &**name).collect();
        let message = format!("no gate or policy is named `{}`", name.escape_debug());
        report.error("unknown-gate", node.location, message, names::suggest(report, name, &known));
    }
    found
}
