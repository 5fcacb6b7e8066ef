//! SPDX licence expressions: OR, AND, WITH, parentheses, and the old `A/B`.
//!
//! OR needs one side on the list, AND both. Must not know any licence by name.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec::IntoIter;

use anyhow::{Result, bail, ensure};

/// Whether the expression can be satisfied with licences of the list alone.
pub(crate) fn is_allowed(expression: &str, list: &BTreeSet<String>) -> Result<bool> {
    let mut parser = Parser { tokens: tokens(expression).into_iter().peekable(), list };
    let verdict = parser.any()?;
    ensure!(parser.tokens.next().is_none(), "`{expression}` is not a licence expression");
    Ok(verdict)
}

fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Parser<'a> {
    tokens: Peekable<IntoIter<String>>,
    list: &'a BTreeSet<String>,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<bool> {
        let mut verdict = self.all()?;
        while self.takes("OR") {
            verdict |= self.all()?;
        }
        Ok(verdict)
    }

    fn all(&mut self) -> Result<bool> {
        let mut verdict = self.one()?;
        while self.takes("AND") {
            verdict &= self.one()?;
        }
        Ok(verdict)
    }

    fn one(&mut self) -> Result<bool> {
        if self.takes("(") {
            let verdict = self.any()?;
            ensure!(self.takes(")"), "a parenthesis is not closed");
            return Ok(verdict);
        }
        let mut name = self.word()?;
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.word()?);
        }
        Ok(self.list.contains(&name))
    }

    fn word(&mut self) -> Result<String> {
        match self.tokens.next() {
            Some(word) if !matches!(word.as_str(), "(" | ")" | "AND" | "OR" | "WITH") => Ok(word),
            Some(word) => bail!("a licence was expected, not `{word}`"),
            None => bail!("a licence was expected at the end"),
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        self.tokens.next_if(|token| token == word).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(expression: &str) -> Result<bool> {
        let list = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC", "Unicode-3.0"];
        is_allowed(expression, &list.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn either_side_of_or_suffices_and_both_of_and_are_needed() {
        assert!(verdict("Unlicense OR MIT").unwrap());
        assert!(!verdict("Unlicense OR GPL-3.0-only").unwrap());
        assert!(verdict("MIT AND ISC").unwrap());
        assert!(!verdict("MIT AND GPL-3.0-only").unwrap());
    }

    #[test]
    fn and_binds_tighter_and_parentheses_tightest() {
        assert!(verdict("MIT OR ISC AND GPL-3.0-only").unwrap());
        assert!(!verdict("(MIT OR ISC) AND GPL-3.0-only").unwrap());
        assert!(verdict("(MIT OR Apache-2.0) AND Unicode-3.0").unwrap());
    }

    #[test]
    fn an_exception_is_part_of_the_name() {
        assert!(verdict("Apache-2.0 WITH LLVM-exception").unwrap());
        assert!(!verdict("MIT WITH LLVM-exception").unwrap());
    }

    #[test]
    fn the_old_slash_means_or() {
        assert!(verdict("Unlicense/MIT").unwrap());
    }

    #[test]
    fn nonsense_is_an_error_and_never_allowed() {
        for text in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC", "AND MIT", "MIT WITH"] {
            assert!(verdict(text).is_err(), "{text}");
        }
    }
}
