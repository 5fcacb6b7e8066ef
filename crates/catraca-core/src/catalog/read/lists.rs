//! `[[allowlist]]` and `[[blocklist]]`: entries for address ranges and attribute values.

use toml::de::DeValue;

use super::attribute::AttributeTable;
use super::scalar;
use super::schema;
use super::section::Sections;
use crate::address::AddressRange;
use crate::lists::{AccessListEntry, ListTarget};
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, SourceLocation, TableFields, TableSchema, ValueSchema,
    names,
};
use crate::time::Time;

/// The fields of `[[allowlist]]`.
pub(super) static ALLOWLIST: TableSchema =
    TableSchema { name: "allowlist entry", fields: &ENTRY_FIELDS };
/// The fields of `[[blocklist]]`, which are the same.
pub(super) static BLOCKLIST: TableSchema =
    TableSchema { name: "blocklist entry", fields: &ENTRY_FIELDS };

static ENTRY_FIELDS: [FieldSchema; 6] = [
    FieldSchema::new("range", ValueSchema::Text, "an address or an address range")
        .or(DefaultValue::Absent("`range`, or `attribute` and `value`, is required")),
    FieldSchema::new("attribute", schema::NAME, "the attribute by whose `value` callers are found"),
    FieldSchema::new("value", ValueSchema::Text, "the value of the `attribute`"),
    FieldSchema::new("namespace", schema::NAME, "the only namespace in which the entry applies")
        .or(DefaultValue::Absent("all namespaces")),
    FieldSchema::new("reason", ValueSchema::Text, "a text for operators"),
    FieldSchema::new(
        "until",
        ValueSchema::Instant,
        "when the entry expires: RFC 3339, in quotes or not",
    )
    .or(DefaultValue::Absent("never")),
];

/// Reads `allowlist` or `blocklist`.
pub(super) fn read(
    report: &mut Report,
    sections: &Sections<'_>,
    attributes: &AttributeTable,
    list: &str,
) -> Vec<AccessListEntry> {
    let schema = if list == "allowlist" { &ALLOWLIST } else { &BLOCKLIST };
    let items = sections.list_items(report, list);
    items.into_iter().filter_map(|item| entry(report, attributes, item, schema)).collect()
}

fn entry(
    report: &mut Report,
    attributes: &AttributeTable,
    item: Node<'_>,
    schema: &'static TableSchema,
) -> Option<AccessListEntry> {
    let fields = TableFields::read_item(report, item, schema)?;
    let target = target(report, attributes, &fields);
    let namespace =
        fields.parse("namespace", |node| scalar::name(report, node, "namespace")).optional();
    let reason = fields.parse("reason", |node| scalar::reason(report, node)).optional();
    let until = fields.parse("until", |node| instant(report, node)).optional();
    Some(AccessListEntry {
        namespace: namespace?.map(|name| name.to_string()),
        target: target?,
        reason: reason?.map(|reason| reason.to_string()),
        until: until?,
    })
}

fn target(
    report: &mut Report,
    attributes: &AttributeTable,
    fields: &TableFields<'_>,
) -> Option<ListTarget> {
    match ["range", "attribute", "value"].map(|name| fields.has(name)) {
        [true, false, false] => range(report, fields.get("range")?).map(ListTarget::Range),
        [false, true, true] => value(report, attributes, fields),
        _ => {
            let message = "an entry needs one range, or one attribute and its value";
            let fix = "write range = \"203.0.113.0/24\", or attribute = \"…\" with value = \"…\"";
            report.error("bad-entry", fields.location, message, fix);
            None
        }
    }
}

fn value(
    report: &mut Report,
    attributes: &AttributeTable,
    fields: &TableFields<'_>,
) -> Option<ListTarget> {
    let attribute = fields.get("attribute")?;
    let node = fields.get("value")?;
    let name = attribute.text(report, "the name of an attribute");
    let text = node.text(report, "the value of the attribute");
    let name =
        name.filter(|name| names::check_name(report, attribute.location, name, "attribute"))?;
    let value = attributes.normalise_value(report, name, node.location, text?)?;
    Some(ListTarget::Value { attribute: name.to_owned(), value })
}

/// The entries of all lists that end at `now` or earlier, with the location of their end. Mistakes
/// are not reported: `read` does that.
pub fn ended_entries(sections: &Sections<'_>, now: Time) -> Vec<(SourceLocation, Time)> {
    let lists = ["allowlist", "blocklist"].into_iter().flat_map(|list| sections.all(list));
    let items = lists.filter_map(|(_, node)| node.as_items()).flatten();
    let ends = items.filter_map(|item| {
        let fields = item.as_entries()?;
        let (_, node) = fields.into_iter().find(|(key, _)| key.text == "until")?;
        let text = match node.value {
            DeValue::Datetime(datetime) => datetime.to_string(),
            DeValue::String(text) => text.to_string(),
            _ => return None,
        };
        let until = Time::parse_rfc3339(&text).ok()?;
        (until <= now).then_some((node.location, until))
    });
    ends.collect()
}

/// Reads an address range.
pub(super) fn range(report: &mut Report, node: Node<'_>) -> Option<AddressRange> {
    let text = node.text(report, "a range such as \"203.0.113.0/24\"")?;
    let read = AddressRange::parse(text);
    read.map_err(|error| scalar::report_parse_error(report, "bad-address", node.location, &error))
        .ok()
}

/// An instant, as a text or in TOML's own notation.
fn instant(report: &mut Report, node: Node<'_>) -> Option<Time> {
    let text = match node.value {
        DeValue::Datetime(datetime) => datetime.to_string(),
        _ => node.text(report, "an instant such as 2026-01-01T00:30:00Z")?.to_owned(),
    };
    let read = Time::parse_rfc3339(&text);
    read.map_err(|error| scalar::report_parse_error(report, "bad-instant", node.location, &error))
        .ok()
}
