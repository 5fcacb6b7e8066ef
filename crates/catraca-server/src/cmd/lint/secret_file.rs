//! Warns of a secret file that other users of the machine can read.
//!
//! With the secret, a user can forge tickets and find out the values behind stored keys.

use std::path::Path;

use catraca_core::catalog::diagnostic::{Diagnostic, Severity};

use crate::config::{ProcessConfig, StorageConfig};

/// The code of the diagnostic, and its meaning.
pub(super) const READABLE_SECRET: (&str, &str) =
    ("readable-secret", "A secret file that other users of the machine can read.");

/// The warning, if the secret file exists and is not for its owner alone. A file that does not
/// exist yet is created with the right permissions.
#[cfg(unix)]
pub(super) fn warning(process: &ProcessConfig, folder: &Path) -> Option<Diagnostic> {
    use std::os::unix::fs::PermissionsExt;
    let secret = StorageConfig::resolve(process, folder).ok()??.secret;
    let mode = std::fs::metadata(&secret).ok()?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return None;
    }
    let file = secret.display().to_string();
    Some(Diagnostic {
        severity: Severity::Warning,
        code: READABLE_SECRET.0,
        start: 0,
        end: 0,
        line: 1,
        column: 1,
        text: String::new(),
        message: format!("other users can read the secret (its mode is {mode:o})"),
        fix: Some(format!("run `chmod 600 {file}`, and replace the secret if anyone has read it")),
        line_text: String::new(),
        file,
    })
}

#[cfg(not(unix))]
pub(super) fn warning(_: &ProcessConfig, _: &Path) -> Option<Diagnostic> {
    None
}
