//! The text of a catalog, and which field each of its lines is.

use super::table::{Table, TomlKey};

/// A catalog as TOML. Every field is one line, so the line of a diagnostic names the field.
#[derive(Debug, Default)]
pub(super) struct CatalogText {
    pub text: String,
    /// The section of each line, and its field; a header has none.
    lines: Vec<(String, Option<String>)>,
}

impl CatalogText {
    /// Adds the fields of the catalog itself.
    pub fn root(&mut self, table: &Table) {
        self.fields("the catalog", table);
    }

    /// Adds a table with a header such as `[policy.login]`. `owner` names it in errors.
    pub fn table(&mut self, path: &[&str], owner: &str, table: &Table) {
        let path: Vec<String> = path.iter().map(|name| TomlKey(name).to_string()).collect();
        self.line(format!("[{}]", path.join(".")), owner, None);
        self.fields(owner, table);
    }

    /// Adds an item of a list of tables, such as `[[route]]`.
    pub fn item(&mut self, section: &str, owner: &str, table: &Table) {
        self.line(format!("[[{section}]]"), owner, None);
        self.fields(owner, table);
    }

    /// The section and the field of a line, counted from one.
    pub fn owner(&self, line: usize) -> Option<&(String, Option<String>)> {
        self.lines.get(line.checked_sub(1)?)
    }

    fn fields(&mut self, owner: &str, table: &Table) {
        for (name, value) in &table.fields {
            self.line(format!("{} = {value}", TomlKey(name)), owner, Some(name));
        }
    }

    fn line(&mut self, line: String, owner: &str, field: Option<&str>) {
        self.text.push_str(&line);
        self.text.push('\n');
        self.lines.push((owner.to_owned(), field.map(str::to_owned)));
    }
}
