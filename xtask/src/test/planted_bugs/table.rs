//! The table of planted bugs: its format, and the edits on the text of a file.
//!
//! Must not touch files.

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

use crate::change_switch;

/// A bug, its edits, and the tests that must notice it.
#[derive(Debug)]
pub(super) struct PlantedBug {
    pub(super) name: String,
    pub(super) what: String,
    /// Paths of tests, such as `oracle::engine_and_oracle_agree`.
    pub(super) noticed_by: Vec<String>,
    pub(super) edits: Vec<Edit>,
}

/// One change of one file.
#[derive(Debug)]
pub(super) struct Edit {
    /// Relative to `crates/`.
    file: String,
    /// The text that must occur exactly once.
    anchor: String,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// The anchor is an expression, and this is the wrong one.
    Expression(String),
    /// These statements come before the anchor.
    Statements(String),
}

/// Reads the table.
pub(super) fn parse(text: &str) -> Result<Vec<PlantedBug>> {
    let table: Table = text.parse()?;
    let bugs: Vec<PlantedBug> =
        tables(&table, "bug")?.into_iter().map(parse_bug).collect::<Result<_>>()?;
    for (index, bug) in bugs.iter().enumerate() {
        let is_new = bugs[..index].iter().all(|other| other.name != bug.name);
        ensure!(is_new, "two bugs are named {}", bug.name);
    }
    Ok(bugs)
}

fn parse_bug(table: &Table) -> Result<PlantedBug> {
    let name = string(table, "name")?;
    let context = || format!("bug {name}");
    let edits = tables(table, "edit").with_context(context)?;
    let edits = edits.into_iter().map(parse_edit).collect::<Result<Vec<_>>>();
    let tests = table.get("noticed_by").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let tests = tests.iter().map(parse_test).collect::<Result<Vec<_>>>();
    let bug = PlantedBug {
        what: string(table, "what").with_context(context)?,
        noticed_by: tests.with_context(context)?,
        edits: edits.with_context(context)?,
        name: name.clone(),
    };
    ensure!(!bug.noticed_by.is_empty(), "bug {name}: `noticed_by` names no test");
    Ok(bug)
}

fn parse_test(value: &Value) -> Result<String> {
    let path = value.as_str().filter(|text| text.contains("::"));
    Ok(path.with_context(|| format!("{value} is not `module::function`"))?.to_owned())
}

fn parse_edit(table: &Table) -> Result<Edit> {
    let file = string(table, "file")?;
    let (anchor, form) = match (table.get("right"), table.get("before")) {
        (Some(_), None) => (string(table, "right")?, Form::Expression(string(table, "wrong")?)),
        (None, Some(_)) => (string(table, "before")?, Form::Statements(string(table, "insert")?)),
        _ => bail!("an edit has either `right` and `wrong`, or `before` and `insert`"),
    };
    Ok(Edit { file, anchor, form })
}

fn tables<'a>(table: &'a Table, key: &str) -> Result<Vec<&'a Table>> {
    let list = table.get(key).and_then(Value::as_array).with_context(|| format!("no `{key}`"))?;
    list.iter()
        .map(|item| item.as_table().with_context(|| format!("`{key}` is no table")))
        .collect()
}

fn string(table: &Table, key: &str) -> Result<String> {
    let text = table.get(key).and_then(Value::as_str).with_context(|| format!("no `{key}`"))?;
    Ok(text.to_owned())
}

/// The text of a file with all its bugs, none of them enabled.
pub(super) fn plant(bugs: &[PlantedBug], file: &str, text: &str) -> Result<String> {
    let mut text = text.to_owned();
    for (index, bug) in bugs.iter().enumerate() {
        for edit in bug.edits.iter().filter(|edit| edit.path() == file) {
            text = edit.apply(index, &text).with_context(|| format!("bug {}", bug.name))?;
        }
    }
    Ok(text)
}

impl Edit {
    /// The path of the file, relative to the root of the checkout.
    pub(super) fn path(&self) -> String {
        format!("crates/{}", self.file)
    }

    fn apply(&self, bug: usize, text: &str) -> Result<String> {
        let anchor = &self.anchor;
        let count = text.matches(anchor.as_str()).count();
        ensure!(
            count == 1,
            "`{anchor}` must occur exactly once in {}, not {count} times",
            self.file
        );
        let condition = change_switch::condition(bug);
        let planted = match &self.form {
            Form::Expression(wrong) => {
                format!("(if {condition} {{ {wrong} }} else {{ {anchor} }})")
            }
            Form::Statements(insert) => format!("if {condition} {{ {insert} }}\n{anchor}"),
        };
        Ok(text.replacen(anchor.as_str(), &planted, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(edit: &str) -> String {
        let head = "[[bug]]\nname = 'off'\nwhat = 'one too many'\nnoticed_by = ['t::f']";
        format!("{head}\n[[bug.edit]]\nfile = 'a/src/lib.rs'\n{edit}\n")
    }

    fn planted(edit: &str, text: &str) -> Result<String> {
        plant(&parse(&bug(edit))?, "crates/a/src/lib.rs", text)
    }

    #[test]
    fn an_expression_chooses_between_right_and_wrong() {
        let text = planted("right = 'a < b'\nwrong = 'a <= b'", "if a < b { 1 }").unwrap();
        let expected =
            "if (if ::catraca_core::is_change_enabled(0) { a <= b } else { a < b }) { 1 }";
        assert_eq!(text, expected);
    }

    #[test]
    fn statements_come_before_the_text() {
        let text = planted("before = 'last()'\ninsert = 'return;'", "first(); last()").unwrap();
        assert_eq!(text, "first(); if ::catraca_core::is_change_enabled(0) { return; }\nlast()");
    }

    #[test]
    fn a_text_that_is_missing_or_occurs_twice_names_its_bug() {
        for text in ["", "a a"] {
            let error = planted("right = 'a'\nwrong = 'b'", text).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains("bug off") && error.contains("exactly once"), "{error}");
        }
    }

    #[test]
    fn a_row_without_a_form_a_test_or_a_name_of_its_own_is_refused() {
        let refused = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert!(refused(&bug("right = 'a'\nbefore = 'b'")).contains("either"));
        let right = bug("right = 'a'\nwrong = 'b'");
        assert!(refused(&right.replace("'t::f'", "")).contains("names no test"));
        assert!(refused(&right.replace("t::f", "f")).contains("module::function"));
        assert!(refused(&format!("{right}{right}")).contains("two bugs are named off"));
    }
}
