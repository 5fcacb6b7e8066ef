//! Passwords that are in files, so that the catalog does not contain them.

use std::path::Path;

use anyhow::{Context, Result};

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
