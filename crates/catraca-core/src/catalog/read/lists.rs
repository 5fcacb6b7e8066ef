//! `[[allowlist]]` and `[[blocklist]]`: standing entries for ranges and values.
//!
//! Must not resolve which entry wins: the lists do.

use toml::de::DeValue;

use super::attribute::Known;
use super::names;
use super::node::{Fields, Node};
use super::report::Report;
use super::scalar;
use super::section::Sections;
use crate::address::Range;
use crate::lists::{Entry, What};
use crate::time::Time;

const FIELDS: [&str; 5] = ["range", "attribute", "value", "reason", "until"];

/// Reads one of the lists.
pub(super) fn read(
    report: &mut Report,
    sections: &Sections<'_>,
    known: &Known,
    list: &str,
) -> Vec<Entry> {
    let items = sections.listed(report, list);
    items.into_iter().filter_map(|item| entry(report, known, (item, list))).collect()
}

fn entry(report: &mut Report, known: &Known, (item, list): (Node<'_>, &str)) -> Option<Entry> {
    let fields = Fields::item(report, item, &format!("{list} entry"), &FIELDS)?;
    let what = what(report, known, &fields);
    let reason = fields.given("reason", |node| scalar::prose(report, node)).optional();
    let until = fields.given("until", |node| instant(report, node)).optional();
    Some(Entry { what: what?, reason: reason?.map(|reason| reason.to_string()), until: until? })
}

fn what(report: &mut Report, known: &Known, fields: &Fields<'_>) -> Option<What> {
    let has = ["range", "attribute", "value"].map(|name| fields.has(name));
    match has {
        [true, false, false] => range(report, fields.get("range")?).map(What::Range),
        [false, true, true] => value(report, known, fields),
        _ => {
            let message = "an entry is about one range, or about one value of an attribute";
            let fix = "write range = \"203.0.113.0/24\", or attribute = \"…\" with value = \"…\"";
            report.error("bad-entry", fields.place, message, fix);
            None
        }
    }
}

fn value(report: &mut Report, known: &Known, fields: &Fields<'_>) -> Option<What> {
    let attribute = fields.get("attribute")?;
    let node = fields.get("value")?;
    let name = attribute.text(report, "the name of an attribute");
    let text = node.text(report, "the value of the attribute");
    let name = name.filter(|name| names::check_at(report, attribute.place, name, "attribute"))?;
    let value = known.normal(report, name, (node.place, text?))?;
    Some(What::Value { attribute: name.to_owned(), value })
}

/// Reads a range of addresses.
pub(super) fn range(report: &mut Report, node: Node<'_>) -> Option<Range> {
    let text = node.text(report, "a range such as \"203.0.113.0/24\"")?;
    let read = Range::parse(text);
    read.map_err(|error| scalar::refuse(report, "bad-address", node.place, &error)).ok()
}

/// An instant, as a text or in TOML's own notation.
fn instant(report: &mut Report, node: Node<'_>) -> Option<Time> {
    let text = match node.value {
        DeValue::Datetime(datetime) => datetime.to_string(),
        _ => node.text(report, "an instant such as 2026-01-01T00:30:00Z")?.to_owned(),
    };
    let read = Time::parse_rfc3339(&text);
    read.map_err(|error| scalar::refuse(report, "bad-instant", node.place, &error)).ok()
}
