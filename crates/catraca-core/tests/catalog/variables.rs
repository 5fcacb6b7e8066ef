//! Variables of the environment in the texts of a catalog.

use catraca_core::catalog::read::{ParsedCatalog, VARIABLE_MAX, read};

use crate::helpers::{LogOwner, read_as};

fn find(set: &[(&str, &str)], name: &str) -> Option<String> {
    let found = set.iter().find(|(own, _)| *own == name);
    found.map(|(_, value)| (*value).to_owned())
}

fn read_with(text: &str, set: &[(&str, &str)]) -> Result<ParsedCatalog, Vec<&'static str>> {
    let variable = |name: &str| find(set, name);
    let mut load = |_: &str| Err("none".to_owned());
    read("catalog.toml", text, &mut load, &variable)
        .map_err(|refused| refused.all.iter().map(|found| found.code).collect())
}

/// The value of a catalog's text after expansion of its variables.
fn expand(written: &str, set: &[(&str, &str)]) -> String {
    let mut owner = LogOwner::default();
    let text = format!("[server]\nlog = '{written}'\n");
    read_as(&mut owner, &text, &|name| find(set, name)).unwrap();
    owner.log.unwrap()
}

#[test]
fn a_variable_stands_for_what_it_holds_and_else_for_what_is_written() {
    let set = [("A", "one"), ("B_2", "two"), ("EMPTY", ""), ("BRACES", "x}y${A}")];
    for (written, wanted) in [
        ("${A} and ${B_2}!", "one and two!"),
        ("${A:1}${NONE:2}", "one2"),
        ("${EMPTY:nothing}", "nothing"),
        ("${NONE:}", ""),
        ("${NONE:memory:}", "memory:"),
        ("$${A} $$${A}", "${A} $${A}"),
        ("$ {A} $A {A}", "$ {A} $A {A}"),
        ("${BRACES}", "x}y${A}"),
    ] {
        assert_eq!(expand(written, &set), wanted, "{written}");
    }
}

/// The value of a variable is never parsed as syntax and never expanded again.
#[test]
fn a_variable_cannot_change_what_a_catalog_is_made_of() {
    for value in ["'\n[policy.b]\n", "${A}", "}", "$${", "\\u0041", "\""] {
        assert_eq!(expand("${LOG}", &[("LOG", value), ("A", "b")]), value);
    }
}

#[test]
fn names_and_keys_are_as_they_are_written() {
    let found = read_with("[policy.\"${A}\"]\nby = []\nwindow = '1 per 1s'\n", &[("A", "x")]);
    assert_eq!(found.unwrap_err(), ["bad-name"]);
}

#[test]
fn what_is_no_variable_is_refused_and_so_is_one_that_holds_too_much() {
    let long = "9".repeat(VARIABLE_MAX + 1);
    for (written, code) in [
        ("${", "bad-variable"),
        ("${A", "bad-variable"),
        ("${}", "bad-variable"),
        ("${:x}", "bad-variable"),
        ("${1A}", "bad-variable"),
        ("${A-B}", "bad-variable"),
        ("${É}", "bad-variable"),
        ("${LONG:1}", "bad-variable"),
        // Regression: a value of `1m` before `s` was a millisecond.
        ("${MINUTE}s", "bad-variable"),
        ("${NONE:5m}s", "bad-variable"),
        ("${NONE}", "unset-variable"),
        ("${EMPTY}", "unset-variable"),
    ] {
        let text = format!("[server]\nlisten = '{written}'\n");
        let set = [("A", "x"), ("LONG", long.as_str()), ("EMPTY", ""), ("MINUTE", "1m")];
        assert_eq!(read_with(&text, &set).unwrap_err()[0], code, "{written}");
    }
}

/// Nodes with different variables decide differently, so their revisions must differ.
#[test]
fn what_is_set_is_part_of_the_revision() {
    let text = "[policy.a]\nby = []\nwindow = '${N:5} per 1s'\n";
    let revision = |set: &[(&str, &str)]| read_with(text, set).unwrap().catalog.revision;
    assert_eq!(revision(&[]), revision(&[("OTHER", "1")]));
    assert_ne!(revision(&[]), revision(&[("N", "6")]));
    assert_ne!(revision(&[("N", "7")]), revision(&[("N", "6")]));
    // Passwords do not change decisions, and with them in the revision, guesses could be verified.
    let text = "[store]\nurl = 'redis://:${N}@h:1'\n";
    let revision = |value: &str| read_with(text, &[("N", value)]).unwrap().catalog.revision;
    assert_eq!(revision("s3cret"), revision("other"));
}
