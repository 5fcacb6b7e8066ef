//! The key that a call is made with, from a file or from the environment.
//!
//! Must not show any of it, also not when it is wrong.

use std::path::Path;

use anyhow::{Context, Result, bail};
use axum::http::HeaderValue;

/// The variable that holds a key.
const VARIABLE: &str = "CATRACA_KEY";

/// The key as a header, if there is one.
pub fn read(file: Option<&Path>) -> Result<Option<HeaderValue>> {
    let Some(file) = file else {
        let Some(key) = std::env::var_os(VARIABLE).filter(|key| !key.is_empty()) else {
            return Ok(None);
        };
        return bearer(&key.to_string_lossy(), VARIABLE).map(Some);
    };
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the key file {shown} (--key-file)"))?;
    bearer(&text, &format!("the key file {shown}")).map(Some)
}

fn bearer(text: &str, place: &str) -> Result<HeaderValue> {
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "{place} holds no key: a key is one line without spaces, such as the first line that \
             `catraca keygen` prints"
        );
    }
    let mut value = HeaderValue::try_from(format!("Bearer {key}"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word_and_is_never_shown() {
        let key = bearer(" catraca_abc\n", "FILE").unwrap();
        assert_eq!(key.as_bytes(), b"Bearer catraca_abc");
        assert!(!format!("{key:?}").contains("abc"));
        for text in ["", "\n", "two words", "first\nsecond", "né"] {
            let said = bearer(text, "FILE").unwrap_err().to_string();
            assert!(said.starts_with("FILE holds no key"), "{said}");
            assert!(text.trim().is_empty() || !said.contains(text), "{said}");
        }
    }
}
