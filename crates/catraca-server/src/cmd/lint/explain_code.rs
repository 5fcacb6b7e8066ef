//! `catraca lint --explain CODE`: prints a section of docs/diagnostics.md, which is compiled in.

use std::io::Write;

use anyhow::{Result, bail};
use catraca_core::catalog::diagnostic::CODES;
use catraca_core::catalog::read::nearest;

use super::secret_file::READABLE_SECRET;
use crate::config::PROCESS_CODES;

/// The page; the section of a code starts with `## CODE`.
const PAGE: &str = include_str!("../../../../../docs/diagnostics.md");

/// Prints the section of a code, or an error with the nearest code.
pub fn print(code: &str, out: &mut impl Write) -> Result<()> {
    if code == READABLE_SECRET.0 {
        writeln!(out, "{code}: {}", READABLE_SECRET.1)?;
        return Ok(());
    }
    let Some(section) = section(code) else {
        let known: Vec<&str> = codes().map(|(code, _)| code).collect();
        match nearest(code, &known) {
            Some(near) => bail!("no diagnostic has the code `{code}`: did you mean `{near}`?"),
            None => bail!("no diagnostic has the code `{code}`: lint shows codes in brackets"),
        }
    };
    writeln!(out, "{code}: {section}")?;
    Ok(())
}

/// All codes with their meanings.
fn codes() -> impl Iterator<Item = (&'static str, &'static str)> {
    CODES.into_iter().chain(PROCESS_CODES)
}

/// The text below the heading of a code.
fn section(code: &str) -> Option<&'static str> {
    let sections = PAGE.split("\n## ").skip(1);
    let mut named = sections.filter_map(|section| section.split_once("\n\n"));
    named.find(|(name, _)| *name == code).map(|(_, text)| text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_can_be_explained() {
        for (code, meaning) in codes() {
            let text = section(code).unwrap_or_else(|| panic!("{code}"));
            assert!(text.starts_with(meaning) && text.ends_with("```"), "{code}: {text}");
        }
    }
}
