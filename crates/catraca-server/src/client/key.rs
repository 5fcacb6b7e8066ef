//! Reads the API key of a call, from `--key-file` or `CATRACA_KEY`.
//!
//! Error messages must not contain the key, not even an invalid one.

use std::path::Path;

use anyhow::{Context, Result, bail};
use hyper::http::HeaderValue;

/// The environment variable with the key itself.
const VARIABLE: &str = "CATRACA_KEY";

/// The `Authorization` header for the key, if there is one; the file has precedence.
pub fn read(file: Option<&Path>) -> Result<Option<HeaderValue>> {
    let Some(file) = file else {
        let Some(key) = std::env::var_os(VARIABLE).filter(|key| !key.is_empty()) else {
            return Ok(None);
        };
        return bearer(&key.to_string_lossy(), VARIABLE).map(Some);
    };
    let path = file.display();
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the key file {path} (--key-file)"))?;
    bearer(&text, &format!("the key file {path}")).map(Some)
}

fn bearer(text: &str, source: &str) -> Result<HeaderValue> {
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "{source} contains no key: a key is one line without spaces, such as the first line \
             that `catraca keygen` prints"
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
            let message = bearer(text, "FILE").unwrap_err().to_string();
            assert!(message.starts_with("FILE contains no key"), "{message}");
            assert!(text.trim().is_empty() || !message.contains(text), "{message}");
        }
    }
}
