//! Rows of a table as PostgreSQL exports them: CSV with a head, and quotes where needed.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};

/// A row of a table: its line in the file, and its fields by column. An empty field without quotes
/// is NULL, and missing here.
pub struct TableRow {
    pub line: usize,
    fields: HashMap<String, String>,
}

impl TableRow {
    /// The value of a column, unless it is NULL.
    pub fn get(&self, column: &str) -> Option<&str> {
        self.fields.get(column).map(String::as_str)
    }
}

/// Reads a table that has these columns, and maybe others.
pub fn read(text: &str, columns: &[&str]) -> Result<Vec<TableRow>> {
    let mut records = parse(text.trim_start_matches('\u{feff}'))?.into_iter();
    let (_, head) = records.next().context("the file is empty: export the table with its head")?;
    let head: Vec<String> = head.into_iter().map(Option::unwrap_or_default).collect();
    for column in columns {
        ensure!(
            head.iter().any(|own| own == column),
            "the head has no column {column}; it has {}",
            head.join(", ")
        );
    }
    let row = |(line, values): (usize, Vec<Option<String>>)| {
        ensure!(
            values.len() == head.len(),
            "line {line} has {} fields, and the head {}",
            values.len(),
            head.len()
        );
        let fields = head.iter().cloned().zip(values);
        let fields = fields.filter_map(|(name, value)| Some((name, value?))).collect();
        Ok(TableRow { line, fields })
    };
    records.map(row).collect()
}

type CsvRecord = (usize, Vec<Option<String>>);

/// All records with the lines on which they start.
fn parse(text: &str) -> Result<Vec<CsvRecord>> {
    let mut records = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let start = line;
        let mut values = Vec::new();
        loop {
            let (value, after) = field(rest).with_context(|| format!("line {start}"))?;
            line += rest[..rest.len() - after.len()].matches('\n').count();
            values.push(value);
            rest = after;
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => break,
            }
        }
        // Some programs end a line with more than one return.
        let after = rest.trim_start_matches('\r');
        let end = after.strip_prefix('\n');
        ensure!(end.is_some() || after.is_empty(), "line {line}: a return without a new line");
        line += usize::from(end.is_some());
        rest = end.unwrap_or(after);
        if values != [None] {
            records.push((start, values));
        }
    }
    Ok(records)
}

/// One field, and the text after it.
fn field(text: &str) -> Result<(Option<String>, &str)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\n']).unwrap_or(text.len());
        let value = text[..end].trim_end_matches('\r');
        let after = &text[value.len()..];
        return Ok(((!value.is_empty()).then(|| value.to_owned()), after));
    };
    let mut value = String::new();
    loop {
        let end = rest.find('"').context("a quote is not closed")?;
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                value.push('"');
                rest = after;
            }
            None => break,
        }
    }
    let is_end = rest.is_empty() || rest.starts_with([',', '\n', '\r']);
    ensure!(is_end, "there is text after a closing quote");
    Ok((Some(value), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_commas_lines_and_nulls_are_read() {
        let text = "id,reason,until\r\n1,\"a, \"\"b\"\"\nc\",\n\n2,,\"\"\n3,x,y";
        let rows = read(text, &["id", "until"]).unwrap();
        let seen: Vec<_> =
            rows.iter().map(|row| (row.line, row.get("reason"), row.get("until"))).collect();
        let expected =
            [(2, Some("a, \"b\"\nc"), None), (5, None, Some("")), (6, Some("x"), Some("y"))];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_line_may_end_with_several_returns() {
        for text in ["id\r\r\n1\r\r\n", "id\n1\r", "id\r\n\"1\"\r"] {
            let rows = read(text, &["id"]).unwrap();
            let seen: Vec<_> = rows.iter().map(|row| row.get("id")).collect();
            assert_eq!(seen, [Some("1")], "{text:?}");
        }
    }

    #[test]
    fn mistakes_name_their_line() {
        let wrong = |text: &str| format!("{:#}", read(text, &["id"]).err().unwrap());
        assert!(wrong("").contains("its head"));
        assert!(wrong("a,b\n1,2").contains("no column id; it has a, b"));
        assert_eq!(wrong("id,b\n1"), "line 2 has 1 fields, and the head 2");
        assert_eq!(wrong("id\n\"1"), "line 2: a quote is not closed");
        assert_eq!(wrong("id,b\n1\r,2"), "line 2: a return without a new line");
        assert_eq!(wrong("id\n\"1\"x"), "line 2: there is text after a closing quote");
    }
}
