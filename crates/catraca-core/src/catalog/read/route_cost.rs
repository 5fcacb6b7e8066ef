//! `cost` of a route: how many units the check of a request asks for.

use toml::de::DeValue;

use super::route_source::{self, SOURCE};
use super::scalar;
use crate::catalog::RouteCost;
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, TableFields, TableSchema, ValueSchema,
};
use crate::request::COST_MAX;

/// `cost` of a route.
pub(super) const COST: FieldSchema = FieldSchema::new(
    "cost",
    ValueSchema::AnyOf(&[
        ValueSchema::Integer { least: 0, most: COST_MAX },
        SOURCE,
        ValueSchema::Table(&BODY_BYTES),
    ]),
    "the cost of the request: an integer, a part of the request with a whole number, such as \
     `body:max_tokens`, or `{ bytes_per_unit = N }` by the length of the body",
)
.or(DefaultValue::Absent("that of the policy"));

/// The fields of a `cost` by the length of the body.
pub(super) const BODY_BYTES: TableSchema = TableSchema {
    name: "cost by bytes",
    fields: &[FieldSchema::new(
        "bytes_per_unit",
        ValueSchema::Integer { least: 1, most: COST_MAX },
        "one unit for each such number of bytes of the body, rounded up",
    )
    .require()],
};

/// Reads `cost`.
pub(super) fn read(report: &mut Report, node: Node<'_>) -> Option<RouteCost> {
    match node.value {
        DeValue::Integer(_) => scalar::cost(report, node, 0).map(RouteCost::Units),
        DeValue::Table(_) => {
            let fields = TableFields::read_item(report, node, &BODY_BYTES)?;
            let bytes = fields.require(report, "bytes_per_unit", "4")?;
            scalar::cost(report, bytes, 1).map(RouteCost::BytesPerUnit)
        }
        DeValue::String(_) => route_source::read(report, node).map(RouteCost::Source),
        _ => node.report_wrong_type(report, "an integer, \"body:max_tokens\" or a table"),
    }
}
