//! `cost` of a route: how many units the check of a request asks for.

use toml::de::DeValue;

use super::route_source;
use super::scalar;
use crate::catalog::{AttributeSource, PartsCost, RouteCost, RouteCostTerm};
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, TableFields, TableSchema, ValueSchema,
};
use crate::request::COST_MAX;

/// The most terms of a sum, and the most parts of the request for one term.
const TERMS_MAX: usize = 8;

/// `cost` of a route.
pub(super) const COST: FieldSchema = FieldSchema::new(
    "cost",
    ValueSchema::AnyOf(&[
        UNITS,
        SOURCES,
        ValueSchema::Table(&SOURCE_COST),
        ValueSchema::Table(&BODY_BYTES),
        ValueSchema::List { of: &TERM, most: TERMS_MAX },
    ]),
    "the cost of the request: an integer, a part of the request with a whole number, such as \
     `body:max_tokens`, or `{ bytes_per_unit = N }` by the length of the body. Of \
     `\"body:a|body:b\"` the first that is present counts, and `{ from = \"body:a\", default = N \
     }` has a default. A list is a sum",
)
.or(DefaultValue::Absent("that of the policy"));

const TERM: ValueSchema = ValueSchema::AnyOf(&[
    UNITS,
    SOURCES,
    ValueSchema::Table(&SOURCE_COST),
    ValueSchema::Table(&BODY_BYTES),
]);
const UNITS: ValueSchema = ValueSchema::Integer { least: 0, most: COST_MAX };
const SOURCES: ValueSchema = route_source::SOURCE;

/// The fields of a `cost` from a part of the request.
const SOURCE_COST: TableSchema = TableSchema {
    name: "cost from the request",
    fields: &[
        FieldSchema::new(
            "from",
            SOURCES,
            "a part of the request with a whole number, or several parts, of which the first that \
             is present counts: `\"body:max_completion_tokens|body:max_tokens\"`",
        )
        .require(),
        FieldSchema::new("default", UNITS, "the units of a request without such a part")
            .or(DefaultValue::Absent("the cost is that of the policy")),
        FieldSchema::new(
            "largest",
            ValueSchema::Flag,
            "`true`: of several parts, the largest number counts, not the first one",
        )
        .or(DefaultValue::Flag(false)),
        FieldSchema::new(
            "times",
            SOURCES,
            "a part of the request, or several, with a whole number by which the units are \
             multiplied, such as `body:n`, the number of answers",
        )
        .or(DefaultValue::Absent("1, also for requests without such a part")),
    ],
};

/// The fields of a `cost` by the length of the body.
const BODY_BYTES: TableSchema = TableSchema {
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
    let Some(items) = node.as_items() else {
        return Some(RouteCost { terms: vec![term(report, node)?] });
    };
    if !(1..=TERMS_MAX).contains(&items.len()) {
        let message = format!("{} costs are added up", items.len());
        report.error("bad-pick", node.location, message, format!("write 1 to {TERMS_MAX}"));
        return None;
    }
    let terms: Vec<_> = items.into_iter().map(|item| term(report, item)).collect();
    Some(RouteCost { terms: terms.into_iter().collect::<Option<_>>()? })
}

fn term(report: &mut Report, node: Node<'_>) -> Option<RouteCostTerm> {
    match node.value {
        DeValue::Integer(_) => scalar::cost(report, node, 0).map(RouteCostTerm::Units),
        DeValue::Table(table) if table.contains_key("bytes_per_unit") => {
            let fields = TableFields::read_item(report, node, &BODY_BYTES)?;
            let bytes = fields.require(report, "bytes_per_unit", "4")?;
            scalar::cost(report, bytes, 1).map(RouteCostTerm::BytesPerUnit)
        }
        DeValue::Table(_) => {
            let fields = TableFields::read_item(report, node, &SOURCE_COST)?;
            let from = fields.require(report, "from", "\"body:max_tokens\"");
            let from = from.and_then(|node| sources(report, node));
            let default = fields.parse("default", |node| scalar::cost(report, node, 0)).optional();
            let largest = fields.parse("largest", |node| node.flag(report)).or(false);
            let times = fields.parse("times", |node| sources(report, node)).or(Vec::new());
            Some(RouteCostTerm::Parts(PartsCost {
                sources: from?,
                is_largest: largest?,
                times: times?,
                default: default?,
            }))
        }
        DeValue::String(_) => {
            let sources = sources(report, node)?;
            Some(RouteCostTerm::Parts(PartsCost { sources, ..PartsCost::default() }))
        }
        _ => node.report_wrong_type(report, "an integer, \"body:max_tokens\" or a table"),
    }
}

/// Parts of the request, of which the first that is present counts.
fn sources(report: &mut Report, node: Node<'_>) -> Option<Vec<AttributeSource>> {
    let text = node.text(report, route_source::WANTED)?;
    let texts: Vec<&str> = text.split('|').map(str::trim).collect();
    if texts.len() > TERMS_MAX {
        let message = format!("{} parts of the request are named", texts.len());
        report.error("bad-pick", node.location, message, format!("name 1 to {TERMS_MAX}"));
        return None;
    }
    let found: Vec<_> =
        texts.into_iter().map(|text| route_source::read_text(report, node, text)).collect();
    found.into_iter().collect()
}
