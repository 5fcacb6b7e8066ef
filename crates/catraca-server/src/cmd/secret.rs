//! The secret behind the pseudonyms that a command shows.
//!
//! Taxpayer numbers are few enough to try them all, so under a known secret a pseudonym hides
//! nobody. It is random for each run, unless a file gives one to show the same again.
//! Must not print it.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use catraca::Secret;

const BYTES: usize = 32;

/// One for the process, so that both sides of a comparison show the same pseudonyms.
static SECRET: OnceLock<Secret> = OnceLock::new();

/// The secret of this run: that of the file, else a random one.
pub fn secret() -> Secret {
    SECRET.get_or_init(|| Secret::from_bytes(random())).clone()
}

/// Takes the secret of a file, before anything is shown.
pub fn take(file: &Path) -> Result<()> {
    let shown = file.display();
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read the secret {shown}"))?;
    let secret = read(text.trim()).with_context(|| {
        let digits = BYTES * 2;
        format!("the secret {shown} must hold {digits} hexadecimal digits and nothing else")
    })?;
    ensure!(SECRET.set(secret).is_ok(), "the secret {shown} comes too late");
    Ok(())
}

fn read(text: &str) -> Option<Secret> {
    let digits = text.len() == BYTES * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..BYTES).filter_map(|at| byte(at).filter(|_| digits)).collect();
    bytes.try_into().ok().map(Secret::from_bytes)
}

/// A machine without random bytes cannot hide anybody, so nothing is shown.
#[expect(clippy::expect_used, reason = "there is nothing to fall back to")]
fn random() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_secrets_are_read() {
        assert!(read(&"0f".repeat(BYTES)).is_some());
        for wrong in ["", "0f", &"0g".repeat(BYTES), &"+f".repeat(BYTES), &"0f".repeat(BYTES + 1)] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
