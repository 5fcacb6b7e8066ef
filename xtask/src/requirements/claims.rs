//! Who claims to cover what: lines above tests of Rust, TypeScript, JavaScript and Go, and `covers`
//! in scenario files.
//!
//! A claim must stand on a test; one in the air is a problem. Must not run anything.

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
/// How far below its claim a test may begin.
const REACH: usize = 6;

/// One test's word that it covers one requirement.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) id: Id,
    pub(crate) place: String,
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
        let below = &lines[index + 1..lines.len().min(index + 1 + REACH)];
        if !below.iter().any(|line| starts_test(line)) {
            problems.push(format!("{place}: no test within {REACH} lines below this claim"));
        }
        claims.extend(read_list(list.split(','), &place, problems));
    }
    claims
}

fn starts_a_test(line: &str) -> bool {
    let attribute = line.starts_with("#[") && line.contains("test");
    let prose = line.starts_with("//");
    attribute || (!prose && line.split_whitespace().any(|word| word == "fn"))
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
    find_lists(&whole, &mut lists);
    let mut claims = Vec::new();
    for list in lists {
        let Some(items) = list.as_array() else {
            problems.push(format!("{file}: `covers` is not a list"));
            continue;
        };
        let texts = items.iter().map(|item| item.as_str().unwrap_or("(not a string)"));
        claims.extend(read_list(texts, file, problems));
    }
    Ok(claims)
}

/// A file may cover as a whole, and so may each table in it.
fn find_lists<'a>(value: &'a toml::Value, lists: &mut Vec<&'a toml::Value>) {
    match value {
        toml::Value::Table(table) => {
            lists.extend(table.get("covers"));
            table.values().for_each(|inner| find_lists(inner, lists));
        }
        toml::Value::Array(items) => items.iter().for_each(|inner| find_lists(inner, lists)),
        _ => {}
    }
}

fn read_list<'a>(
    texts: impl Iterator<Item = &'a str>,
    place: &str,
    problems: &mut Vec<String>,
) -> Vec<Claim> {
    let mut claims = Vec::new();
    for text in texts {
        match expand(text) {
            Ok(ids) => {
                claims.extend(ids.into_iter().map(|id| Claim { id, place: place.to_owned() }));
            }
            Err(error) => problems.push(format!("{place}: {error}")),
        }
    }
    claims
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
        for below in ["#[tokio::test(start_paused = true)]", "pub(crate) async fn suite() {"] {
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
        let far = "// a\n".repeat(REACH) + "#[test]";
        assert_eq!(rust("X-01", &far).1.len(), 1);
        assert_eq!(rust("X-01", "struct Fn;\n// a fn in prose").1.len(), 1);
        assert_eq!(rust("X-01", "").1.len(), 1);
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
        assert_eq!(read("const test = 1;"), 2);
        assert_eq!(problems, ["a.test.ts:1: no test within 6 lines below this claim"]);
    }

    #[test]
    fn a_misspelt_id_is_a_problem_and_the_others_still_count() {
        let (ids, problems) = rust("X-1, X-02", "#[test]");
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
