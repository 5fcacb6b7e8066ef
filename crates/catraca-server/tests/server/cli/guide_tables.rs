//! The tables of settings in the guide, from `catraca config schema`. The test writes them with
//! `CATRACA_BLESS=1` (`cargo xtask docs-tables`), and compares them otherwise.
//!
//! A table is between `<!-- fields of PATH -->` and `<!-- end -->`. PATH leads to a table of the
//! schema, such as `server` or `policy.*`; `: NAME…` after it selects fields.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::cli::config_schema::{root, schema};

const START: &str = "<!-- fields of ";
const END: &str = "<!-- end -->";
const PAGES: [&str; 5] = ["catalog.md", "proxy.md", "serve.md", "shared.md", "records.md"];

#[test]
fn the_tables_of_the_guide_are_those_of_the_schema() {
    let schema = schema();
    let mut tables = 0;
    for name in PAGES {
        let path = root().join("docs/guide").join(name);
        let page = fs::read_to_string(&path).unwrap();
        let wanted = with_tables(&page, &schema, name);
        if std::env::var_os("CATRACA_BLESS").is_some() {
            fs::write(&path, &wanted).unwrap();
        }
        let now = fs::read_to_string(&path).unwrap();
        let difference = now.lines().zip(wanted.lines()).find(|(now, wanted)| now != wanted);
        assert_eq!(difference, None, "{name}: run `cargo xtask docs-tables`");
        assert!(now == wanted, "{name}: run `cargo xtask docs-tables`");
        tables += page.matches(START).count();
    }
    assert!(tables > 15, "{tables} tables");
}

/// Every field of the sections that the server reads is in a table of `catalog.md`, and every field
/// of a policy.
#[test]
fn no_field_is_left_out_of_the_guide() {
    let page = fs::read_to_string(root().join("docs/guide/catalog.md")).unwrap();
    let schema = schema();
    let sections = [
        "server",
        "proxy",
        "dict",
        "auth",
        "auth.key[]",
        "jwt",
        "records",
        "store",
        "policy.*",
        "gate.*",
        "route[]",
        "attribute.*",
        "allowlist[]",
        "blocklist[]",
        "network",
        "locks",
        "locks.kind.*",
        "settle",
    ];
    for path in sections {
        for field in table_at(&schema, path)["x-order"].as_array().unwrap() {
            let row = format!("| `{}` |", field.as_str().unwrap());
            assert!(page.contains(&row), "{path}: {row}");
        }
    }
}

/// The page with its tables replaced.
fn with_tables(page: &str, schema: &Value, name: &str) -> String {
    let mut parts = page.split(START);
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (marker, rest) = part.split_once(" -->\n").unwrap();
        let (_, rest) = rest.split_once(END).unwrap_or_else(|| panic!("{name}: {marker}"));
        let (path, fields) = marker.split_once(": ").unwrap_or((marker, ""));
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let rows = rows(table_at(schema, path), &fields, name);
        write!(text, "{START}{marker} -->\n{rows}{END}{rest}").unwrap();
    }
    text
}

/// The schema of a table: `*` is any key of a map, and `[]` an item of a list.
fn table_at<'s>(schema: &'s Value, path: &str) -> &'s Value {
    path.split('.').fold(schema, |schema, part| {
        let (name, is_list) = part.strip_suffix("[]").map_or((part, false), |name| (name, true));
        let found = match name {
            "catalog" => schema,
            "*" => &schema["additionalProperties"],
            name => &schema["properties"][name],
        };
        let found = if is_list { &found["items"] } else { found };
        assert!(found.is_object(), "{path}: {part}");
        // A table may be one of several forms.
        let forms = found["anyOf"].as_array();
        forms.and_then(|any| any.iter().find(|form| form["x-order"].is_array())).unwrap_or(found)
    })
}

fn rows(table: &Value, only: &[&str], page: &str) -> String {
    let order = table["x-order"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let all: Vec<&str> = order.collect();
    let names = if only.is_empty() { &all[..] } else { only };
    let restart = |name: &str| &table["properties"][name]["x-restart"];
    let any_restarts = all.iter().any(|name| !restart(name).is_null());
    let mut rows = match any_restarts {
        true => "| Field | Meaning | Default | Values | Applied |\n|---|---|---|---|---|\n",
        false => "| Field | Meaning | Default | Values |\n|---|---|---|---|\n",
    }
    .to_owned();
    for name in names {
        let field = &table["properties"][name];
        assert!(field.is_object(), "no field {name}");
        let required =
            table["required"].as_array().is_some_and(|all| all.contains(&(*name).into()));
        let about = field.get("x-markdown").unwrap_or(&field["description"]).as_str().unwrap();
        // A link to the page itself is only its anchor.
        let about = about.replace(&format!("({page}#"), "(#").replace('|', "\\|");
        let applied = match (any_restarts, restart(name)) {
            (false, _) => "",
            (true, Value::Null) => " at once |",
            (true, Value::Bool(_)) => " at the next start |",
            (true, _) => " at once; added or removed: at the next start |",
        };
        let default = default(field, required);
        let values = values(field).replace('|', "\\|");
        writeln!(rows, "| `{name}` | {about} | {default} | {values} |{applied}").unwrap();
    }
    rows
}

fn default(field: &Value, required: bool) -> String {
    if required {
        return "required".to_owned();
    }
    match (&field["default"], field["x-default"].as_str()) {
        (_, Some(words)) => words.to_owned(),
        (Value::Null, None) => "none".to_owned(),
        (value, None) => format!("`{value}`"),
    }
}

/// The accepted values in words.
fn values(schema: &Value) -> String {
    if let Some(words) = schema["x-values"].as_str() {
        return bounds(schema).unwrap_or_else(|| words.to_owned());
    }
    if let Some(any) = schema["anyOf"].as_array() {
        if let Some(words) = any[0]["enum"].as_array() {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            return words.join(", ");
        }
        let mut all: Vec<_> = any.iter().map(values).filter(|words| !words.is_empty()).collect();
        all.dedup();
        return all.join(", or ");
    }
    match schema["type"].as_str().unwrap_or_default() {
        "boolean" => "`true`, `false`".to_owned(),
        "integer" => integers(schema),
        "array" => match schema["maxItems"].as_u64() {
            Some(most) => format!("a list, at most {}", grouped(most)),
            None => "a list".to_owned(),
        },
        "object" => "a table".to_owned(),
        _ => String::new(),
    }
}

fn integers(schema: &Value) -> String {
    let least = schema["minimum"].as_i64().unwrap();
    match schema["maximum"].as_u64().unwrap() {
        most if most >= 1 << 40 => format!("from {least}"),
        most => format!("{least} to {}", grouped(most)),
    }
}

/// The bounds of a duration, if it has any.
fn bounds(schema: &Value) -> Option<String> {
    match (schema["x-minimum"].as_str(), schema["x-maximum"].as_str()) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("from {least}, or `forever`")),
        (None, Some(most)) => Some(format!("up to {most}")),
        (None, None) => None,
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}
