//! Who claims to cover what: lines above tests of Rust, TypeScript, JavaScript and Go, and `covers`
//! in scenario files.
//!
//! A claim must stand on a test: it is the last line of the comment directly above the test, with
//! nothing but attributes between them. So a test that is inserted between a claim and its test is
//! seen, unless it comes without a comment of its own; `cargo xtask trace 002-21` names the test of
//! each claim. Must not run anything.

use anyhow::{Context, Result};
use catraca_conformance::Repo;

use super::ids::{Id, expand};
use crate::test::SCENARIO_SUFFIX;

/// The words that start a claim in Rust, in two pieces so that this line is none.
const MARK: &str = concat!("/// ", "covers:");
/// The same in TypeScript, JavaScript and Go.
const COMMENT_MARK: &str = concat!("// ", "covers:");
const NODE_SUFFIXES: [&str; 2] = [".test.ts", ".test.js"];
const GO_SUFFIX: &str = "_test.go";

/// One test's word that it covers one requirement.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) id: Id,
    pub(crate) place: String,
    /// The line that starts the test, or the title of the scenario's step.
    pub(crate) test: String,
}

/// All claims of the project; unreadable ones become problems.
pub(crate) fn collect(repo: &Repo, problems: &mut Vec<String>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for file in repo.files()? {
        if file.ends_with(".rs") {
            let text = repo.read(&file)?;
            claims.extend(in_code(&file, &text, MARK, starts_a_test, problems));
        } else if NODE_SUFFIXES.iter().any(|suffix| file.ends_with(suffix)) {
            let text = repo.read(&file)?;
            claims.extend(in_code(&file, &text, COMMENT_MARK, starts_node_test, problems));
        } else if file.ends_with(GO_SUFFIX) {
            let text = repo.read(&file)?;
            claims.extend(in_code(&file, &text, COMMENT_MARK, starts_go_test, problems));
        } else if file.ends_with(SCENARIO_SUFFIX) {
            claims.extend(in_scenario(&file, &repo.read(&file)?, problems)?);
        }
    }
    Ok(claims)
}

fn in_code(
    file: &str,
    text: &str,
    mark: &str,
    starts_test: fn(&str) -> bool,
    problems: &mut Vec<String>,
) -> Vec<Claim> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut claims = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(list) = line.strip_prefix(mark) else { continue };
        let place = format!("{file}:{}", index + 1);
        let test = match claimed_test(&lines[index + 1..], mark, starts_test) {
            Ok(test) => test.to_owned(),
            Err(problem) => {
                problems.push(format!("{place}: {problem}"));
                continue;
            }
        };
        for id in read_list(list.split(','), &place, problems) {
            claims.push(Claim { id, place: place.clone(), test: test.clone() });
        }
    }
    claims
}

/// The line that starts the test which the lines below a claim belong to.
fn claimed_test<'a>(
    below: &[&'a str],
    mark: &str,
    starts_test: fn(&str) -> bool,
) -> Result<&'a str, &'static str> {
    for line in below {
        if line.starts_with("//") && !line.starts_with(mark) {
            return Err("a comment is between this claim and its test; claims come last");
        }
        if !line.starts_with("//") && !line.starts_with("#[") {
            return if starts_test(line) { Ok(line) } else { Err("no test follows this claim") };
        }
    }
    Err("no test follows this claim")
}

/// `pub(crate) async fn name(`, also of a check that a part of `xtask` runs.
fn starts_a_test(line: &str) -> bool {
    line.split_whitespace().any(|word| word == "fn")
}

/// A test of Node's test runner.
fn starts_node_test(line: &str) -> bool {
    line.starts_with("test(")
}

/// `func TestName(t *testing.T) {`
fn starts_go_test(line: &str) -> bool {
    line.starts_with("func Test")
}

fn in_scenario(file: &str, text: &str, problems: &mut Vec<String>) -> Result<Vec<Claim>> {
    let table: toml::Table = text.parse().with_context(|| format!("cannot read {file}"))?;
    let whole = toml::Value::Table(table);
    let mut lists = Vec::new();
    find_lists(&whole, "the whole file", &mut lists);
    let mut claims = Vec::new();
    for (title, list) in lists {
        let Some(items) = list.as_array() else {
            problems.push(format!("{file}: `covers` is not a list"));
            continue;
        };
        let texts = items.iter().map(|item| item.as_str().unwrap_or("(not a string)"));
        for id in read_list(texts, file, problems) {
            claims.push(Claim { id, place: file.to_owned(), test: title.clone() });
        }
    }
    Ok(claims)
}

/// A file may cover as a whole, and so may each table in it.
fn find_lists<'a>(value: &'a toml::Value, title: &str, lists: &mut Vec<(String, &'a toml::Value)>) {
    match value {
        toml::Value::Table(table) => {
            let own = table.get("name").and_then(toml::Value::as_str).unwrap_or(title);
            lists.extend(table.get("covers").map(|list| (own.to_owned(), list)));
            table.values().for_each(|inner| find_lists(inner, own, lists));
        }
        toml::Value::Array(items) => items.iter().for_each(|item| find_lists(item, title, lists)),
        _ => {}
    }
}

fn read_list<'a>(
    texts: impl Iterator<Item = &'a str>,
    place: &str,
    problems: &mut Vec<String>,
) -> Vec<Id> {
    let mut ids = Vec::new();
    for text in texts {
        match expand(text) {
            Ok(listed) => ids.extend(listed),
            Err(error) => problems.push(format!("{place}: {error}")),
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(list: &str, below: &str) -> (Vec<String>, Vec<String>) {
        let mut problems = Vec::new();
        let text = format!("    {MARK} {list}\n{below}");
        let claims = in_code("a.rs", &text, MARK, starts_a_test, &mut problems);
        (claims.iter().map(|claim| claim.id.to_string()).collect(), problems)
    }

    #[test]
    fn a_claim_above_a_test_lists_ids_and_ranges() {
        let (ids, problems) = rust("002-21, X-01..X-03", "    #[test]\n    fn a() {}");
        assert_eq!(ids, ["002-21", "X-01", "X-02", "X-03"]);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn other_test_attributes_and_helper_functions_count() {
        let attributes = "#[tokio::test(start_paused = true)]\n#[cfg(unix)]\nasync fn a() {";
        for below in [attributes, "pub(crate) async fn suite() {"] {
            assert!(rust("X-01", below).1.is_empty(), "{below}");
        }
    }

    #[test]
    fn a_go_test_claims_in_its_comment() {
        let text = format!("{COMMENT_MARK} X-01\nfunc TestA(t *testing.T) {{}}\n");
        let mut problems = Vec::new();
        let claims = in_code("a_test.go", &text, COMMENT_MARK, starts_go_test, &mut problems);
        assert_eq!((claims.len(), problems.len()), (1, 0));
        let helper = text.replace("TestA", "helper");
        in_code("a_test.go", &helper, COMMENT_MARK, starts_go_test, &mut problems);
        assert_eq!(problems.len(), 1);
    }

    #[test]
    fn a_claim_in_the_air_is_a_problem() {
        let none = "no test follows this claim";
        for below in ["", "struct Fn;", "\n#[test]\nfn a() {}", "let a = 1;\nfn a() {}"] {
            let (ids, problems) = rust("X-01", below);
            assert_eq!((ids.len(), problems), (0, vec![format!("a.rs:1: {none}")]), "{below}");
        }
    }

    #[test]
    fn a_claim_that_another_tests_comment_has_taken_over_is_a_problem() {
        let (ids, problems) = rust("X-01", "/// Regression: b.\n#[test]\nfn b() {}");
        assert!(ids.is_empty());
        assert!(problems[0].contains("a comment is between"), "{problems:?}");
        let two = format!("{MARK} X-02\n#[test]\nfn a() {{}}");
        assert_eq!(rust("X-01", &two), (vec!["X-01".to_owned(), "X-02".to_owned()], Vec::new()));
    }

    #[test]
    fn a_claim_names_its_test() {
        let mut problems = Vec::new();
        let text = format!("{MARK} X-01\n#[test]\nfn a() {{}}");
        let claims = in_code("a.rs", &text, MARK, starts_a_test, &mut problems);
        assert_eq!(claims[0].test, "fn a() {}");
        let text = "[[scenario]]\nname = \"n\"\n[[scenario.step]]\ncovers = [\"X-01\"]\n";
        assert_eq!(in_scenario("s", text, &mut problems).unwrap()[0].test, "n");
    }

    #[test]
    fn a_claim_above_a_test_of_typescript_counts_and_one_above_nothing_does_not() {
        let mut problems = Vec::new();
        let mut read = |below: &str| {
            let text = format!("{COMMENT_MARK} 003-35, 003-36\n{below}");
            let problems = &mut problems;
            in_code("a.test.ts", &text, COMMENT_MARK, starts_node_test, problems).len()
        };
        assert_eq!(read("test(\"a denial\", async () => {"), 2);
        assert_eq!(read("const test = 1;"), 0);
        assert_eq!(problems, ["a.test.ts:1: no test follows this claim"]);
    }

    #[test]
    fn a_misspelt_id_is_a_problem_and_the_others_still_count() {
        let (ids, problems) = rust("X-1, X-02", "fn a() {}");
        assert_eq!(ids, ["X-02"]);
        assert!(problems[0].starts_with("a.rs:1: `X-1` is not"), "{problems:?}");
    }

    #[test]
    fn scenarios_cover_as_a_whole_and_by_step() {
        let text = "covers = [\"000-01..000-02\"]\n[[step]]\nat = 0\ncovers = [\"B-19\"]\n";
        let mut problems = Vec::new();
        let claims = in_scenario("s", text, &mut problems).unwrap();
        let ids: Vec<String> = claims.iter().map(|claim| claim.id.to_string()).collect();
        assert_eq!(ids, ["000-01", "000-02", "B-19"]);
        assert!(problems.is_empty());
    }

    #[test]
    fn a_scenario_whose_covers_is_not_a_list_of_ids_is_a_problem() {
        for text in ["covers = \"000-01\"", "covers = [1]", "covers = [\"all\"]"] {
            let mut problems = Vec::new();
            assert!(in_scenario("s", text, &mut problems).unwrap().is_empty());
            assert_eq!(problems.len(), 1, "{text}");
        }
    }
}
