//! The secret for the pseudonyms that `explain` and `simulate` print.
//!
//! With a known secret, the pseudonym of a taxpayer number could be reversed by trying all numbers.
//! So the secret is random for each run; `--secret-file` sets it, for the same pseudonyms again.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use catraca::Secret;

const BYTES: usize = 32;

/// One per process, so that both sides of a comparison print the same pseudonyms.
static SECRET: OnceLock<Secret> = OnceLock::new();

/// The secret of this run: the file's, else a random one.
pub fn secret() -> Secret {
    SECRET.get_or_init(|| Secret::from_bytes(random())).clone()
}

/// Sets the secret from a file; must be called before [`secret`].
pub fn set_from_file(file: &Path) -> Result<()> {
    let path = file.display();
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read the secret {path}"))?;
    let secret = parse(text.trim()).with_context(|| {
        let digits = BYTES * 2;
        format!("the secret {path} must contain {digits} hexadecimal digits and nothing else")
    })?;
    ensure!(SECRET.set(secret).is_ok(), "the secret {path} was read too late");
    Ok(())
}

fn parse(text: &str) -> Option<Secret> {
    // `from_str_radix` alone would accept a sign.
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if text.len() != BYTES * 2 || !is_hex {
        return None;
    }
    let byte = |index: usize| u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..BYTES).filter_map(byte).collect();
    bytes.try_into().ok().map(Secret::from_bytes)
}

/// Panics without a source of randomness: pseudonyms from a guessable secret would hide nothing.
#[expect(clippy::expect_used, reason = "there is no safe fallback")]
fn random() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the system provides random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_secrets_are_read() {
        assert!(parse(&"0f".repeat(BYTES)).is_some());
        for wrong in ["", "0f", &"0g".repeat(BYTES), &"+f".repeat(BYTES), &"0f".repeat(BYTES + 1)] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
