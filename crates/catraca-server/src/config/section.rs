//! What the sections of the catalog about the process share: texts, unknown fields, and passwords
//! that are in files.

use std::path::Path;

use anyhow::{Context, Result, bail};
use catraca::Catalog;

use crate::regular_file;

/// Adds the password of a file to a URL, so that the catalog does not contain it.
pub fn add_password(section: &str, url: &str, file: Option<&str>, folder: &Path) -> Result<String> {
    let Some(file) = file else { return Ok(url.to_owned()) };
    let password = read_password(section, "password_file", file, folder)?;
    let with_password = url.split_once("://").and_then(|(scheme, rest)| {
        let (user, host) = rest.split_once('@').filter(|(user, _)| !user.contains(':'))?;
        Some(format!("{scheme}://{user}:{password}@{host}"))
    });
    with_password.with_context(|| {
        format!(
            "[{section}] password_file needs a url with a user and without a password, such as \
             \"postgres://USER@HOST/DATABASE\" or \"redis://default@HOST:6379\""
        )
    })
}

/// Reads a password file, percent-encoded for a URL.
pub fn read_password(section: &str, field: &str, file: &str, folder: &Path) -> Result<String> {
    let path = folder.join(file);
    let read = regular_file::read(&path)
        .with_context(|| format!("[{section}] {field}: cannot read {}", path.display()))?;
    let bytes = form_urlencoded::byte_serialize(read.trim_end().as_bytes());
    // Form encoding writes a blank as `+`, which is a plus sign in the user info of a URL.
    Ok(bytes.collect::<String>().replace('+', "%20"))
}

/// The table of a section; empty if the catalog has none.
pub fn section(catalog: &Catalog, name: &str) -> toml::Table {
    catalog.settings.sections.get(name).cloned().unwrap_or_default()
}

/// Refuses a field that the section does not have.
pub fn refuse_unknown(name: &str, table: &toml::Table, known: &[&str]) -> Result<()> {
    match table.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => bail!("[{name}] has no field `{field}`; it has: {}", known.join(", ")),
        None => Ok(()),
    }
}

/// The text of a field; an empty one or another type is an error.
pub fn text<'t>(name: &str, table: &'t toml::Table, field: &str) -> Result<Option<&'t str>> {
    let Some(value) = table.get(field) else { return Ok(None) };
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(Some).with_context(|| format!("[{name}] {field} = {value}: write it between quotes"))
}
