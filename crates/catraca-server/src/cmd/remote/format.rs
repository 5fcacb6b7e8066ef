//! Formats JSON values of a response for the terminal.
//!
//! Every text is sanitized, because it may come from an untrusted caller.

use catraca::Span;
use comfy_table::Table;
use serde_json::Value;

use crate::render::{count, new_table, sanitize};

/// A value for one cell of a table; `-` for null and for empty collections.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => sanitize(text),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), count),
        Value::Object(pairs) => {
            let pair =
                |(name, value): (&String, &Value)| format!("{}={}", sanitize(name), bare(value));
            if pairs.is_empty() {
                "-".to_owned()
            } else {
                pairs.iter().map(pair).collect::<Vec<_>>().join(" ")
            }
        }
        Value::Array(all) if all.is_empty() => "-".to_owned(),
        Value::Array(all) => all.iter().map(bare).collect::<Vec<_>>().join(", "),
        Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
    }
}

/// A value inside a list or object.
fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => sanitize(text),
        other => sanitize(&other.to_string()),
    }
}

/// An identifier: a number without thousands separators.
pub fn id(value: &Value) -> String {
    if value.is_null() { "-".to_owned() } else { bare(value) }
}

/// The namespace of a list entry or a fact; null means all namespaces.
pub fn namespace_or_all(value: &Value) -> String {
    value.as_str().map_or_else(|| "all".to_owned(), sanitize)
}

/// An instant without fractions of a second; null means that there is no end.
pub fn instant(value: &Value) -> String {
    let Some(text) = value.as_str() else { return "forever".to_owned() };
    let text = sanitize(text);
    match text.split_once('.') {
        Some((seconds, _)) if text.ends_with('Z') => format!("{seconds}Z"),
        _ => text,
    }
}

/// A duration from milliseconds; from one second on, rounded up to whole seconds.
pub fn duration(value: &Value) -> String {
    let Some(millis) = value.as_i64() else { return "-".to_owned() };
    let span = Span::from_millis(millis);
    let span = if millis < 1_000 { span } else { Span::from_secs(span.ceil_secs()) };
    span.to_string()
}

/// A table of the rows, or the text `none` if there are none.
pub fn rows(
    heads: &[&str],
    numbers: &[usize],
    rows: &Value,
    none: &str,
    row: impl Fn(&Value) -> Vec<String>,
) -> String {
    let all = rows.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return none.to_owned();
    }
    let mut table = new_table(heads, numbers);
    for one in all {
        table.add_row(row(one));
    }
    trimmed_lines(&table)
}

/// A table without trailing blanks.
fn trimmed_lines(table: &Table) -> String {
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The hint to the next page, below a page that is not the last.
pub fn next_page_hint(page: &Value) -> String {
    match page["next"].as_str() {
        Some(next) => format!("\n\nmore: --after {}, or --all", sanitize(next)),
        None => String::new(),
    }
}

/// Whose records a response is from, below it, if nodes do not share them.
pub fn scope_hint(reply: &Value) -> &'static str {
    match reply["scope"].as_str() {
        Some("node") => "\n\nThese are the records of one node: every node has its own.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_read_well_and_cannot_move_the_cursor() {
        let text = |value| cell(&value);
        assert_eq!(text(json!(null)), "-");
        assert_eq!(text(json!(12_345)), "12,345");
        assert_eq!(text(json!(-15)), "-15");
        assert_eq!(text(json!({ "ip": "::1", "n": 1 })), "ip=::1 n=1");
        assert_eq!(text(json!(["a", "b"])), "a, b");
        assert_eq!(text(json!("a\u{1b}[2Jb")), "a\u{fffd}[2Jb");
        assert_eq!(instant(&json!("2026-01-31T12:00:00.123Z")), "2026-01-31T12:00:00Z");
        assert_eq!(instant(&json!(null)), "forever");
        let waits = [json!(90_000), json!(1_799_986), json!(50), json!(null)];
        assert_eq!(waits.map(|value| duration(&value)), ["1m30s", "30m", "50ms", "-"]);
    }
}
