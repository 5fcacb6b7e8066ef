//! Requirement ids: `002-21`, `X-04`, `B-36`, and ranges of them.
//!
//! Must not know which ids exist; that is the register's.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

/// One requirement: the source document and a number inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) source: String,
    pub(crate) number: u32,
}

impl FromStr for Id {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (source, number) = text.split_once('-').with_context(|| not_an_id(text))?;
        let named = matches!(source, "X" | "B");
        let numbered = source.len() == 3 && digits(source);
        ensure!((named || numbered) && number.len() == 2 && digits(number), not_an_id(text));
        Ok(Self { source: source.to_owned(), number: number.parse()? })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}", self.source, self.number)
    }
}

/// One id, or all from `a` to `b` in `a..b`, both included.
pub(crate) fn expand(text: &str) -> Result<Vec<Id>> {
    let text = text.trim();
    let Some((first, last)) = text.split_once("..") else { return Ok(vec![text.parse()?]) };
    let first: Id = first.parse()?;
    let last: Id = last.parse()?;
    if first.source != last.source || first.number >= last.number {
        bail!("`{text}` is not a range inside one document");
    }
    let id = |number| Id { source: first.source.clone(), number };
    Ok((first.number..=last.number).map(id).collect())
}

fn digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn not_an_id(text: &str) -> String {
    format!("`{text}` is not a requirement id such as 002-21, X-04 or B-36")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        expand(text).unwrap().iter().map(Id::to_string).collect()
    }

    #[test]
    fn single_ids_read_back_as_written() {
        assert_eq!(shown("002-21"), ["002-21"]);
        assert_eq!(shown(" X-04 "), ["X-04"]);
    }

    #[test]
    fn a_range_includes_both_ends() {
        assert_eq!(shown("003-09..003-11"), ["003-09", "003-10", "003-11"]);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "2-21", "002-1", "002-211", "Y-01", "0a2-11", "002-1x", "X-02 B-03"] {
            assert!(expand(text).is_err(), "{text}");
        }
        for range in ["002-03..003-04", "002-04..002-03", "002-03..", "002-03..002-03"] {
            assert!(expand(range).is_err(), "{range}");
        }
    }
}
