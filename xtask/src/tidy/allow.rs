//! The ratchet: exceptions with a ceiling, each of which must still be needed.
//!
//! A line is `rule place ceiling`. A breach below its ceiling must lower it, one that is gone must
//! be taken out, so the list only shrinks. Must not allow a rule as a whole.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

use super::{ALLOW, Finding};

/// The ceiling of each (rule, place).
pub(crate) type Ceilings = BTreeMap<(String, String), usize>;

pub(crate) fn parse(text: &str) -> Result<Ceilings> {
    let mut allowed = Ceilings::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [rule, place, ceiling] = words[..] else {
            bail!("{ALLOW}: `{line}` is not `rule place ceiling`");
        };
        let ceiling = ceiling.parse().with_context(|| format!("{ALLOW}: `{line}`"))?;
        let fresh = allowed.insert((rule.to_owned(), place.to_owned()), ceiling).is_none();
        ensure!(fresh, "{ALLOW}: `{line}` is listed twice");
    }
    Ok(allowed)
}

/// What is left to complain about once the exceptions are taken into account.
pub(crate) fn settle(findings: Vec<Finding>, allowed: &Ceilings) -> Vec<String> {
    let mut sizes = Ceilings::new();
    for finding in &findings {
        *sizes.entry(key(finding)).or_default() += finding.size;
    }
    let excused = |key: &(String, String)| allowed.get(key).is_some_and(|top| sizes[key] <= *top);
    let breaches = findings.iter().filter(|finding| !excused(&key(finding)));
    let mut problems: Vec<String> = breaches.map(|finding| finding.message.clone()).collect();
    for ((rule, place), ceiling) in allowed {
        match sizes.get(&(rule.clone(), place.clone())) {
            None => problems.push(format!("{ALLOW}: `{rule} {place}` is no longer needed")),
            Some(size) if size < ceiling => {
                problems.push(format!("{ALLOW}: lower `{rule} {place}` to {size}"));
            }
            Some(_) => {}
        }
    }
    problems
}

fn key(finding: &Finding) -> (String, String) {
    (finding.rule.to_owned(), finding.place.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(sizes: &[usize], list: &str) -> Vec<String> {
        let finding = |size: &usize| Finding::new("file-lines", "a.rs", *size, "breach".to_owned());
        settle(sizes.iter().map(finding).collect(), &parse(list).unwrap())
    }

    #[test]
    fn without_an_exception_a_breach_stands() {
        assert_eq!(problems(&[450], "# none\n"), ["breach"]);
        assert_eq!(problems(&[450], "file-lines b.rs 450")[0], "breach");
    }

    #[test]
    fn an_exception_excuses_up_to_its_ceiling() {
        assert!(problems(&[450], "file-lines a.rs 450").is_empty());
        assert!(problems(&[1, 1], "file-lines a.rs 2").is_empty());
        assert_eq!(problems(&[451], "file-lines a.rs 450"), ["breach"]);
    }

    #[test]
    fn an_exception_must_shrink_with_its_breach() {
        assert!(problems(&[449], "file-lines a.rs 450")[0].contains("lower"));
        assert!(problems(&[], "file-lines a.rs 450")[0].contains("no longer needed"));
    }

    #[test]
    fn a_malformed_list_is_an_error() {
        for list in ["file-lines a.rs", "file-lines a.rs many", "a b 1\na b 2"] {
            assert!(parse(list).is_err(), "{list}");
        }
    }
}
