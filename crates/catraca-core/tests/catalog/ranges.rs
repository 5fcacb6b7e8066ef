//! The ranges that the catalog's schema declares, against the readers: a value at each bound is
//! accepted, and the next value outside is refused.

use std::collections::BTreeMap;

use catraca_core::catalog::read::CATALOG;
use catraca_core::located::{TableSchema, ValueSchema};
use catraca_core::time::{LONGEST_DAYS, Span};

use crate::helpers::read_text;

const WINDOW: &str = "window = '9 per 1m'";
/// Large enough for every cost.
const BUCKET: &str = "bucket = { size = 2_000_000_000_000, refill = '1 per 1us' }";

/// The values around the bounds of a field, as TOML.
struct Range {
    accepted: Vec<String>,
    refused: Vec<String>,
}

#[test]
fn readers_accept_exactly_the_declared_ranges() {
    let mut ranges = BTreeMap::new();
    collect("", &CATALOG, &mut ranges);
    let missing: Vec<&String> =
        ranges.keys().filter(|path| catalog_with(path, "1").is_none()).collect();
    assert_eq!(missing, [""; 0], "fields with a range that this test has no catalog for");
    for (path, range) in &ranges {
        let read = |value: &String| {
            let text = catalog_with(path, value).unwrap();
            (read_text(&text), text)
        };
        for value in &range.accepted {
            let (result, text) = read(value);
            assert!(result.is_ok(), "{path} = {value}\n{text}\n{}", result.unwrap_err());
        }
        for value in &range.refused {
            let (result, text) = read(value);
            assert!(result.is_err(), "{path} = {value} is accepted\n{text}");
        }
    }
}

/// A catalog that is valid, apart from the value of this field.
fn catalog_with(path: &str, value: &str) -> Option<String> {
    let (section, field) = path.split_once('.')?;
    let text = match section {
        "policy" => return policy_with(field.strip_prefix("*.")?, value),
        "route[]" => {
            // One term, or a list of them.
            let (open, close) = if field.contains("[]") { ("[", "]") } else { ("", "") };
            let term = match field.replace("[]", "").as_str() {
                "cost" => value.to_owned(),
                "cost.default" => format!("{{ from = 'query:n', default = {value} }}"),
                "cost.bytes_per_unit" => format!("{{ bytes_per_unit = {value} }}"),
                _ => return None,
            };
            let policy = "[policy.a]\nby = []\nbucket = { size = 9, refill = '1 per 1s' }\n";
            let route = "[[route]]\nmatch = '/'\ngate = 'a'\nupstream = 'http://a'\n";
            format!("{policy}{route}cost = {open}{term}{close}\n")
        }
        "locks" => match field.strip_prefix("kind.*.") {
            Some(field) => {
                // The other durations of the kind leave room for this one.
                let lengths =
                    BTreeMap::from([("ttl", "'1us'"), ("ttl_max", "'1d'"), ("hold_max", "'7d'")]);
                let kept = lengths.iter().filter(|(name, _)| needs(field, name));
                let kept: String = kept.map(|(name, span)| format!("{name} = {span}\n")).collect();
                format!("[locks.kind.a]\n{kept}{field} = {value}\n")
            }
            None => format!("[locks]\n{field} = {value}\n"),
        },
        "network" | "settle" => format!("[{section}]\n{field} = {value}\n"),
        _ => return None,
    };
    Some(text)
}

/// Whether a kind of lock needs the other length to be stated.
fn needs(field: &str, other: &str) -> bool {
    match field {
        "ttl" => other != "ttl",
        "ttl_max" => other == "ttl" || other == "hold_max",
        _ => other == "ttl" || other == "ttl_max",
    }
}

fn policy_with(field: &str, value: &str) -> Option<String> {
    if let Some(field) = field.strip_prefix("tier[].") {
        let (limit, terms) = terms_with(field, value)?;
        let tier = format!("tier = [{{ when = {{ method = 'POST' }}, {terms} }}]");
        return Some(format!("[policy.a]\nby = ['ip']\n{limit}\n{tier}\n"));
    }
    let limited = |terms: &str| format!("[policy.a]\nby = ['ip']\n{WINDOW}\n{terms}\n");
    let banned = |terms: &str| format!("[policy.a]\nby = ['ip']\n{terms}\n");
    if let Some(field) = field.strip_prefix("ban[].") {
        let rule = match field.strip_prefix("for") {
            Some(part) => format!("for = {}", penalty_with(part, value)?),
            None => format!("for = '1m', {field} = {value}"),
        };
        return Some(banned(&format!("ban = [{{ when = 'status == 500', {rule} }}]")));
    }
    if let Some(field) = field.strip_prefix("watch.") {
        let mut rule = BTreeMap::from([
            ("min", "1".to_owned()),
            ("per", "'1d'".to_owned()),
            ("ban", "'1h'".to_owned()),
        ]);
        match field.strip_prefix("ban") {
            Some(part) => rule.insert("ban", penalty_with(part, value)?),
            None => rule.insert(field, value.to_owned()),
        };
        let rule: String = rule.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
        let counted = "share = '404', of = ['200', '404'], above = '20%'";
        return Some(banned(&format!("watch = {{ {counted}{rule} }}")));
    }
    if matches!(field, "hold" | "remember" | "reserve") {
        return Some(limited(&format!("cost = {{ '200' = 1 }}\n{field} = {value}")));
    }
    let (limit, terms) = terms_with(field, value)?;
    let own = terms.split(' ').next()?;
    let limit = if limit.starts_with(own) { "" } else { limit };
    Some(format!("[policy.a]\nby = ['ip']\n{limit}\n{terms}\n"))
}

/// A limit, and a field that a policy and a tier may have beside it.
fn terms_with(field: &str, value: &str) -> Option<(&'static str, String)> {
    if let Some(part) = field.strip_prefix("block") {
        return Some((WINDOW, format!("block = {}", penalty_with(part, value)?)));
    }
    let weights = |weights: &str| {
        let weighed = "from = { n = 'body.n' }, weight_by = 'model'";
        Some((BUCKET, format!("cost = {{ {weighed}, weights = {{ {weights} }} }}")))
    };
    match field {
        "inflight" => Some(("inflight = 5", format!("inflight = {value}"))),
        "bucket.size" => {
            Some((BUCKET, format!("bucket = {{ size = {value}, refill = '1 per 1us' }}")))
        }
        "cost" => Some((BUCKET, format!("cost = {value}"))),
        "cost.*" => Some((BUCKET, format!("cost = {{ '200' = {value} }}"))),
        "cost.weights.*" => weights(&format!("large = {value}")),
        "cost.weights.*.*" => weights(&format!("large = {{ n = {value} }}")),
        "credit.*.amount" => {
            Some((BUCKET, format!("credit = {{ paid = {{ amount = {value} }} }}")))
        }
        _ => None,
    }
}

/// A duration, or one field of an escalation.
fn penalty_with(part: &str, value: &str) -> Option<String> {
    let escalation = |first: &str, factor: &str, max: &str, forget: &str| {
        format!("{{ first = {first}, factor = {factor}, max = {max}, forget = {forget} }}")
    };
    match part {
        "" => Some(value.to_owned()),
        ".first" => Some(escalation(value, "2", "'forever'", "'1d'")),
        ".factor" => Some(escalation("'1us'", value, "'forever'", "'1d'")),
        ".max" => Some(escalation("'1us'", "2", value, "'1d'")),
        ".forget" => Some(escalation("'1us'", "2", "'1us'", value)),
        _ => None,
    }
}

/// Adds the ranges of a table's fields, by their paths.
fn collect(prefix: &str, table: &TableSchema, ranges: &mut BTreeMap<String, Range>) {
    for field in table.fields {
        collect_value(&format!("{prefix}{}", field.name), &field.value, ranges);
    }
}

fn collect_value(path: &str, value: &ValueSchema, ranges: &mut BTreeMap<String, Range>) {
    match value {
        ValueSchema::Integer { least, most } => {
            let range = Range {
                accepted: vec![least.to_string(), most.to_string()],
                refused: vec![(least - 1).to_string(), (most + 1).to_string()],
            };
            ranges.insert(path.to_owned(), range);
        }
        ValueSchema::Duration { least, most } => {
            ranges.insert(path.to_owned(), durations(*least, *most));
        }
        ValueSchema::List { of, .. } => collect_value(&format!("{path}[]"), of, ranges),
        ValueSchema::Map(of) => collect_value(&format!("{path}.*"), of, ranges),
        ValueSchema::Table(table) => collect(&format!("{path}."), table, ranges),
        ValueSchema::AnyOf(all) => {
            for one in *all {
                collect_value(path, one, ranges);
            }
        }
        _ => {}
    }
}

fn durations(least: Span, most: Span) -> Range {
    let text = |micros: i64| format!("'{micros}us'");
    let mut range =
        Range { accepted: vec![text(least.micros())], refused: vec!["'-1us'".to_owned()] };
    if least > Span::ZERO {
        range.refused.push(text(least.micros() - 1));
    }
    if most.is_forever() {
        range.accepted.push("'forever'".to_owned());
    } else {
        range.refused.push("'forever'".to_owned());
    }
    let longest = Span::from_secs(LONGEST_DAYS * 86_400);
    if most < longest {
        range.accepted.push(text(most.micros()));
        range.refused.push(text(most.micros() + 1));
    } else {
        range.accepted.push(format!("'{LONGEST_DAYS}d'"));
        range.refused.push(format!("'{}d'", LONGEST_DAYS + 1));
    }
    range
}
