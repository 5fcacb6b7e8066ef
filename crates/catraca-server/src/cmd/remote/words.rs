//! How parts of an answer read on a terminal.
//!
//! Everything in an answer may once have come from a stranger. Must not let any of it move the
//! cursor.

use catraca::Span;
use comfy_table::Table;
use serde_json::Value;

use crate::render::{count, plain, table};

/// A value in one cell; nothing is a dash.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => plain(text),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), count),
        Value::Object(pairs) => {
            let pair =
                |(name, value): (&String, &Value)| format!("{}={}", plain(name), bare(value));
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

/// A value inside another.
fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text),
        other => plain(&other.to_string()),
    }
}

/// An identifier, whose digits are not to be counted.
pub fn id(value: &Value) -> String {
    if value.is_null() { "-".to_owned() } else { bare(value) }
}

/// An instant to the second; nothing has no end.
pub fn moment(value: &Value) -> String {
    let Some(text) = value.as_str() else { return "forever".to_owned() };
    let text = plain(text);
    match text.split_once('.') {
        Some((seconds, _)) if text.ends_with('Z') => format!("{seconds}Z"),
        _ => text,
    }
}

/// Milliseconds as a length of time, if there are any; from a second on, whole ones are enough.
pub fn wait(value: &Value) -> String {
    let Some(millis) = value.as_i64() else { return "-".to_owned() };
    let span = Span::from_millis(millis);
    let span = if millis < 1_000 { span } else { Span::from_secs(span.ceil_secs()) };
    span.to_string()
}

/// Rows under their heads, or a sentence when there are none.
pub fn rows(
    (heads, numbers): (&[&str], &[usize]),
    rows: &Value,
    none: &str,
    row: impl Fn(&Value) -> Vec<String>,
) -> String {
    let all = rows.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return none.to_owned();
    }
    let mut shown = table(heads, numbers);
    for one in all {
        shown.add_row(row(one));
    }
    lines(&shown)
}

/// A table without the blanks that end its lines.
pub fn lines(table: &Table) -> String {
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Where the next page begins, below a page that is not the last.
pub fn more(page: &Value) -> String {
    match page["next"].as_str() {
        Some(next) => format!("\n\nmore: --after {}, or --all", plain(next)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_read_well_and_cannot_move_the_cursor() {
        let shown = |value| cell(&value);
        assert_eq!(shown(json!(null)), "-");
        assert_eq!(shown(json!(12_345)), "12,345");
        assert_eq!(shown(json!(-15)), "-15");
        assert_eq!(shown(json!({ "ip": "::1", "n": 1 })), "ip=::1 n=1");
        assert_eq!(shown(json!(["a", "b"])), "a, b");
        assert_eq!(shown(json!("a\u{1b}[2Jb")), "a\u{fffd}[2Jb");
        assert_eq!(moment(&json!("2026-01-31T12:00:00.123Z")), "2026-01-31T12:00:00Z");
        assert_eq!(moment(&json!(null)), "forever");
        let waits = [json!(90_000), json!(1_799_986), json!(50), json!(null)];
        assert_eq!(waits.map(|value| wait(&value)), ["1m30s", "30m", "50ms", "-"]);
    }
}
