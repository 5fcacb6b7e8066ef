//! Tests of the scenario parser and runner.

use std::path::Path;

use super::{ScenarioError, ScenarioResult, Suite, parse};

const CATALOG: &str = r#"
catalog_text = '''
[policy.login]
by     = ["ip"]
window = "2 per 1m"
block  = "15m"

[policy.lookup]
by     = ["payer"]
bucket = { size = 10, refill = "1 per 1m" }
cost   = { "404" = 5, default = 1 }
credit = { payment = { amount = 1 } }
debt   = true
'''
"#;

fn read(scenario: &str) -> Result<Suite, ScenarioError> {
    parse("a.scenario.toml", &format!("{CATALOG}{scenario}"), Path::new("."))
}

fn run(steps: &str) -> ScenarioResult {
    let suite = read(&format!("[[scenario]]\nname = \"a\"\n{steps}"));
    let suite = suite.unwrap_or_else(|error| panic!("{error}"));
    suite.run().scenarios.remove(0)
}

/// The codes of the errors, each with the text of its line.
fn errors(steps: &str) -> Vec<(&'static str, String)> {
    let read = read(&format!("[[scenario]]\nname = \"a\"\n{steps}"));
    let Err(ScenarioError::Invalid(found)) = read else { panic!("nothing is wrong") };
    found
        .all
        .into_iter()
        .map(|diagnostic| (diagnostic.code, diagnostic.line_text.trim().to_owned()))
        .collect()
}

fn codes(steps: &str) -> Vec<&'static str> {
    errors(steps).into_iter().map(|(code, _)| code).collect()
}

const CHECK: &str = "check = { gate = \"login\", subject = { ip = \"198.51.100.7\" } }";

#[test]
fn a_scenario_that_holds_passes() {
    let result = run(&format!(
        "[[scenario.step]]\n{CHECK}\ntimes = 3\nexpect = {{ allowed = true }}\n\
         expect_last = {{ allowed = false, reason = \"over_limit\", retry_after_ms = 900000 }}\n\
         [[scenario.step]]\nat = \"14m59.999999s\"\n{CHECK}\nexpect = {{ reason = \"blocked\" }}\n\
         [[scenario.step]]\nat = \"15m\"\n{CHECK}\nexpect = {{ allowed = true, remaining = 1 }}\n"
    ));
    assert!(result.passed, "{:?}", result.mismatch);
    assert_eq!(result.steps, 5);
}

#[test]
fn the_first_difference_ends_the_run_and_says_where() {
    let result = run(&format!(
        "[[scenario.step]]\n{CHECK}\n\
         [[scenario.step]]\nat = \"1s\"\n{CHECK}\ntimes = 3\n\
         expect = {{ allowed = true, policies = [{{ charged = 1, reason = \"ok\" }}] }}\n\
         [[scenario.step]]\n{CHECK}\nexpect = {{ allowed = true }}\n"
    ));
    let mismatch = result.mismatch.unwrap();
    assert_eq!((mismatch.step, mismatch.repetition), (2, (2, 3)));
    assert_eq!(mismatch.at.to_string(), "2026-01-01T00:00:01Z");
    let paths: Vec<_> = mismatch.diff.iter().map(|found| &*found.path).collect();
    assert_eq!(paths, ["allowed", "policies[0].charged", "policies[0].reason"]);
    let text = mismatch.to_string();
    assert!(text.contains("step 2 at 2026-01-01T00:00:01Z, time 2 of 3"), "{text}");
    assert!(text.contains("allowed: expected true, got false"), "{text}");
    assert_eq!(result.steps, 3);
}

#[test]
fn a_refusal_must_be_expected_by_its_code() {
    let missing = "check = { gate = \"login\", subject = {} }";
    let step = format!("[[scenario.step]]\n{missing}\n");
    assert!(run(&format!("{step}error = \"missing-attribute\"\n")).passed);
    let other = run(&format!("{step}error = \"bad-cost\"\n")).mismatch.unwrap();
    assert!(other.diff[0].got.starts_with("missing-attribute: "), "{other}");
    let none = run(&format!("{step}expect = {{ allowed = true }}\n")).mismatch.unwrap();
    assert_eq!(none.diff[0].expected, "no refusal");
    let answered = run(&format!("[[scenario.step]]\n{CHECK}\nerror = \"bad-cost\"\n"));
    assert_eq!(answered.mismatch.unwrap().diff[0].got, "an answer");
}

#[test]
fn tickets_references_and_outcomes_reach_the_engine() {
    let subject = "subject = { payer = \"a\" }";
    let result = run(&format!(
        "[[scenario.step]]\ncheck = {{ gate = \"lookup\", {subject}, ref = \"E1\" }}\nas = \"t\"\n\
         expect = {{ ticket = \"any\" }}\n\
         [[scenario.step]]\nat = \"1s\"\n\
         settle = {{ ticket = \"t\", outcome = {{ status = 404 }} }}\n\
         expect = {{ state = \"settled\", policies = [{{ charged = 5, balance = 5 }}] }}\n\
         [[scenario.step]]\nsettle = {{ ref = \"E1\", {subject}, outcome = {{ status = 200 }} }}\n\
         expect = {{ state = \"again\", policies = [{{ charged = 5 }}] }}\n\
         [[scenario.step]]\ncredit = {{ ref = \"E1\", event = \"payment\", {subject} }}\n\
         expect = {{ applied = true, policies = [{{ policy = \"lookup\", amount = 1 }}] }}\n"
    ));
    assert!(result.passed, "{:?}", result.mismatch);
}

#[test]
fn a_cycle_numbers_its_repetitions() {
    let subject = "subject = { payer = \"a\" }";
    let ask = format!(
        "check = {{ gate = \"lookup\", {subject}, ref = \"E{{n}}\", \
                       outcome = {{ status = 200 }} }}"
    );
    let credit = format!("credit = {{ ref = \"E{{n}}\", event = \"payment\", {subject} }}");
    let result = run(&format!(
        "[[scenario.step]]\ntimes = 100\nevery = \"1ms\"\ncycle = [\n\
         {{ {ask}, expect = {{ allowed = true, settled = {{ state = \"settled\" }} }} }},\n\
         {{ {credit}, expect = {{ applied = true }} }},\n]\n\
         [[scenario.step]]\nat = \"99ms\"\n{}\nexpect = {{ reason = \"duplicate\" }}\n",
        credit.replace("{n}", "100"),
    ));
    assert!(result.passed, "{:?}", result.mismatch);
    assert_eq!(result.steps, 201);
}

#[test]
fn unknown_names_are_located_and_corrected() {
    let steps = format!(
        "[[scenario.step]]\nchek = 1\n{CHECK}\n\
         expect = {{ retry_after = 1, policies = [{{ wait = 1 }}] }}\n"
    );
    let read = read(&format!("[[scenario]]\nname = \"a\"\n{steps}"));
    let Err(ScenarioError::Invalid(found)) = read else { panic!("nothing is wrong") };
    let lines: Vec<_> =
        found.all.iter().map(|diagnostic| (diagnostic.line, diagnostic.column)).collect();
    assert_eq!(lines, [(18, 1), (20, 12), (20, 43)]);
    let error = found.to_string();
    assert!(error.contains("did you mean `check`?"), "{error}");
    assert!(error.contains("did you mean `retry_after_ms`?"), "{error}");
    assert!(error.contains("a.scenario.toml:20:12: error[unknown-field]"), "{error}");
}

#[test]
fn every_mistake_of_a_step_is_found_at_once() {
    let all = codes(&format!(
        "[[scenario.step]]\nat = \"2s\"\n{CHECK}\npeek = {{}}\n\
         [[scenario.step]]\nat = \"1s\"\n{CHECK}\nexpect_last = {{ allowed = true }}\n\
         [[scenario.step]]\nat = \"3s\"\ntimes = 2\n\
         reset = {{ policy = \"login\", subject = {{}} }}\n\
         [[scenario.step]]\nsettle = {{ ticket = \"x\", outcome = {{}} }}\n\
         [[scenario.step]]\nat = \"4s\"\n"
    ));
    let expected = [
        "two-verbs",
        "time-reversed",
        "misplaced-field",
        "misplaced-field",
        "unknown-ticket",
        "no-verb",
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_scenario_that_cannot_fail_is_refused() {
    assert_eq!(codes(&format!("[[scenario.step]]\n{CHECK}\n")), ["expects-nothing"]);
    for field in ["expect", "times = 2\nexpect_last"] {
        let step = format!("[[scenario.step]]\n{CHECK}\n{field} = {{}}\n");
        assert_eq!(codes(&step), ["expects-nothing"], "{field}");
    }
}

#[test]
fn a_word_that_no_answer_says_is_located_and_corrected() {
    for (expected, proposal) in [
        ("reason = \"overlimit\"", "did you mean `over_limit`?"),
        ("mode = \"enforced\"", "did you mean `enforce`?"),
        ("policies = [{ reason = \"block\" }]", "did you mean `blocked`?"),
        ("settled = { state = \"setled\" }", "did you mean `settled`?"),
    ] {
        let steps = format!("[[scenario.step]]\n{CHECK}\nexpect = {{ {expected} }}\n");
        let read = read(&format!("[[scenario]]\nname = \"a\"\n{steps}"));
        let Err(ScenarioError::Invalid(found)) = read else {
            panic!("{expected}: nothing is wrong")
        };
        assert_eq!((found.all[0].code, found.all[0].line), ("unknown-word", 19), "{found}");
        assert!(found.to_string().contains(proposal), "{found}");
    }
}

/// The fix said `add scenario = [[scenario]]`, which is not TOML.
#[test]
fn a_missing_list_is_opened_by_its_header() {
    let error = parse("a", "", Path::new(".")).unwrap_err().to_string();
    assert!(error.contains("fix: add [[scenario]] with"), "{error}");
    let error = read("[[scenario]]\nname = \"a\"\n").unwrap_err().to_string();
    assert!(error.contains("fix: add [[scenario.step]] with"), "{error}");
}

#[test]
fn what_is_said_of_a_long_value_is_short() {
    let long = "x".repeat(1_000_000);
    let error = parse("a", &format!("{long} = 1\n"), Path::new(".")).unwrap_err();
    let ScenarioError::Invalid(found) = error else { panic!("{error}") };
    assert!(found.to_string().len() < 4_000 && found.all[0].line_text.len() < 1_000);
}

#[test]
fn a_catalogs_mistakes_are_found_at_their_lines_in_the_scenario() {
    let text = "catalog_text = '''\n[policy.login]\nby = [\"ip\"]\nwindow = \"ten per 1m\"\n'''\n";
    let Err(ScenarioError::Invalid(found)) = parse("a", text, Path::new(".")) else {
        panic!("nothing is wrong")
    };
    let positions: Vec<_> =
        found.all.iter().map(|diagnostic| (diagnostic.line, diagnostic.code)).collect();
    assert_eq!(positions, [(1, "missing-field"), (4, "bad-rate")]);
}

#[test]
fn a_missing_file_says_which() {
    let error = parse("a", "catalog = \"none.toml\"\nscenario = []", Path::new(".")).unwrap_err();
    assert!(error.to_string().contains("none.toml"), "{error}");
    let error = super::load(Path::new("none.scenario.toml")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read none.scenario.toml"), "{error}");
}

/// Expectations are checked by name, so the names must be those of real answers.
#[test]
fn every_field_of_a_real_answer_may_be_expected() {
    use super::schema;
    let subject = "subject = { payer = \"a\" }";
    let answers = [
        ("check = { gate = \"login\", subject = { ip = \"::1\" } }".to_owned(), schema::DECISION),
        (format!("check = {{ gate = \"lookup\", {subject}, outcome = {{}} }}"), schema::DECISION),
        (format!("buckets = {{ {subject} }}"), schema::BUCKETS),
        (format!("buckets = {{ policy = \"lookup\", {subject} }}"), schema::BUCKET),
        (format!("block = {{ policy = \"lookup\", for = \"1m\", {subject} }}"), schema::BLOCK),
        (format!("unblock = {{ policy = \"lookup\", {subject} }}"), schema::UNBLOCK),
        (format!("credit = {{ ref = \"x\", event = \"payment\", {subject} }}"), schema::CREDIT),
    ];
    for (verb, fields) in answers {
        let result = run(&format!("[[scenario.step]]\n{verb}\nerror = \"none\"\n"));
        let answer = result.mismatch.unwrap().got;
        assert_known(&answer, schema::FieldType::Table(fields), &verb);
    }
}

fn assert_known(answer: &serde_json::Value, shape: super::schema::FieldType, verb: &str) {
    use super::schema::FieldType;
    match (answer, shape) {
        (serde_json::Value::Object(map), FieldType::Table(fields) | FieldType::Tables(fields)) => {
            for (name, value) in map {
                let field = fields.iter().find(|(known, _)| known == name);
                let (_, shape) = field.unwrap_or_else(|| panic!("{verb}: `{name}` is unknown"));
                assert_known(value, *shape, verb);
            }
        }
        (serde_json::Value::Array(items), FieldType::Tables(_)) => {
            items.iter().for_each(|item| assert_known(item, shape, verb));
        }
        _ => {}
    }
}

#[test]
fn a_gate_that_the_catalog_does_not_declare_is_reported() {
    let with_default = |expect: &str| {
        let text = format!(
            "catalog_text = \"\"\"default = 'login'\n[policy.login]\nby = ['ip']\n\
             window = '2 per 1m'\"\"\"\n[[scenario]]\nname = 'a'\n[[scenario.step]]\n\
             check = {{ gate = 'logn', subject = {{ ip = '::1' }} }}\n{expect}\n"
        );
        let suite = parse("a.scenario.toml", &text, Path::new("."));
        suite.unwrap_or_else(|error| panic!("{error}")).run().scenarios.remove(0)
    };
    let result = with_default("expect = { allowed = true }");
    let mismatch = result.mismatch.expect("the gate is misspelt").to_string();
    assert!(mismatch.contains("did you mean `login`?"), "{mismatch}");
    assert!(with_default("expect = { allowed = true, unlisted = true }").passed);
    // Without a default the call is refused, and the report names the gate too.
    let misspelt = CHECK.replace("login", "logn");
    let result = run(&format!("[[scenario.step]]\n{misspelt}\nexpect = {{ allowed = true }}\n"));
    let mismatch = result.mismatch.expect("there is no such gate").to_string();
    assert!(mismatch.contains("did you mean `login`?"), "{mismatch}");
    let expected = format!("[[scenario.step]]\n{misspelt}\nerror = \"unknown-gate\"\n");
    assert!(run(&expected).passed);
}

/// Regression: every scenario was reported as having no catalog, too.
#[test]
fn a_catalog_that_is_invalid_or_missing_is_reported_once() {
    let scenarios = "[[scenario]]\nname = 'a'\n[[scenario.step]]\nat = '1s'\n\
                     check = { gate = 'x', subject = { ip = '::1' } }\n\
                     expect = { allowed = true }\n";
    for (catalog, code) in
        [("catalog = 'none.toml'", "no-catalog"), ("catalog_text = '[policy.p]'", "no-key")]
    {
        let read = parse("a.scenario.toml", &format!("{catalog}\n{scenarios}"), Path::new("."));
        let Err(ScenarioError::Invalid(found)) = read else { panic!("nothing is wrong") };
        let codes: Vec<_> = found.all.iter().map(|found| found.code).collect();
        assert_eq!(codes.iter().filter(|found| **found == code).count(), 1, "{codes:?}");
        assert!(code == "no-catalog" || !codes.contains(&"no-catalog"), "{codes:?}");
    }
}
