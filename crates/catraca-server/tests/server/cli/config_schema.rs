//! `catraca config schema` against the catalogs of the presets and of the guide.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Map, Value};

use crate::cli::helpers::codes;
use crate::cli::test_dir::TestDir;

/// Errors that no schema can find: they depend on other files and names.
const BEYOND_A_SCHEMA: [&str; 4] =
    ["include-unreadable", "unknown-gate", "unknown-policy", "unset-variable"];

#[test]
fn the_schema_accepts_every_preset_and_every_catalog_of_the_guide() {
    let schema = schema();
    let mut accepted = 0;
    for (name, text) in catalogs() {
        // Catalogs with deliberate mistakes are in the guide too.
        let codes = codes(&text);
        if codes.iter().all(|code| BEYOND_A_SCHEMA.contains(code) || is_warning(code)) {
            assert_eq!(errors(&schema, &to_json(&text)), [""; 0], "{name}");
            accepted += 1;
        }
    }
    assert!(accepted > 40, "{accepted} catalogs");
}

#[test]
fn the_schema_refuses_a_misspelt_field() {
    let schema = schema();
    for text in [
        "[polic.a]\nby = []\n",
        "[policy.a]\nby = []\nwindw = '1 per 1s'\n",
        "[policy.a]\nby = []\nbucket = { siz = 1, refill = '1 per 1s' }\n",
        "[gate.g]\npolicie = ['a']\n",
        "[[route]]\nmatch = '/'\ngat = 'a'\n",
        "[server]\nlisen = '127.0.0.1:1'\n",
        "[store]\nnode = 3\n",
        "[records]\nkeep_adit = '1d'\n",
        "[[auth.key]]\nnam = 'x'\n",
        "[policy.'a b']\nby = []\nwindow = '1 per 1s'\n",
        "[gate.'']\npolicies = ['a']\n",
    ] {
        assert!(!errors(&schema, &to_json(text)).is_empty(), "{text}");
        assert!(!codes(text).is_empty(), "{text}");
    }
}

#[test]
fn the_schema_refuses_values_of_the_wrong_kind() {
    let schema = schema();
    for text in [
        "[server]\nconnections_max = 0\n",
        "[server]\nhead_timeout = 10\n",
        "[server]\nhead_timeout = 'soon'\n",
        "[server]\nlog = 'xml'\n",
        "[policy.a]\nby = 'ip'\n",
        "[policy.a]\nby = []\nwindow = '10/s'\n",
        "[policy.a]\nby = []\nmode = 'on'\n",
        "[store]\nurl = 'memcached://x'\n",
    ] {
        assert!(!errors(&schema, &to_json(text)).is_empty(), "{text}");
        assert!(!codes(text).is_empty(), "{text}");
    }
    let variables = "[server]\nlog = '${LOG:json}'\nhead_timeout = '${T}'\n";
    assert_eq!(errors(&schema, &to_json(variables)), [""; 0]);
}

/// What `catraca config schema` prints.
pub fn schema() -> Value {
    let output = TestDir::new().run(&["config", "schema"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    serde_json::from_str(&output.out).unwrap()
}

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Regression: an editor showed links into the guide, which lead nowhere there.
#[test]
fn no_description_has_a_link() {
    fn check(value: &Value) {
        let fields = value.as_object().into_iter().flatten();
        for (name, value) in fields {
            if name == "description" && value.is_string() {
                assert!(!value.as_str().unwrap().contains("]("), "{value}");
            }
            check(value);
        }
        value.as_array().into_iter().flatten().for_each(check);
    }
    check(&schema());
}

fn is_warning(code: &str) -> bool {
    matches!(
        code,
        "block-below-window"
            | "condition-reads-fact"
            | "condition-reads-private"
            | "cost-unused"
            | "debt-unused"
            | "large-tickets"
            | "never-admits"
            | "reserve-unused"
            | "route-unreachable"
            | "tier-unreachable"
    )
}

/// Every catalog of the presets, of the fixtures and of the guide, with its name.
fn catalogs() -> Vec<(String, String)> {
    let mut catalogs = Vec::new();
    let good = root().join("crates/catraca-core/tests/fixtures/catalog/good");
    let mut folders = vec![good];
    folders.extend(paths(&root().join("presets")));
    for file in folders.iter().filter(|path| path.is_dir()).flat_map(|folder| paths(folder)) {
        let name = file.display().to_string();
        if name.ends_with(".toml") && !name.ends_with(".scenario.toml") {
            catalogs.push((name, fs::read_to_string(&file).unwrap()));
        }
    }
    for page in paths(&root().join("docs/guide")) {
        let name = page.display().to_string();
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("\n```toml").skip(1) {
            let (tag, body) = block.split_once('\n').unwrap();
            let (body, _) = body.split_once("\n```").unwrap();
            if !tag.ends_with(".scenario.toml") && toml::from_str::<toml::Table>(body).is_ok() {
                catalogs.push((format!("{name}{tag}"), format!("{body}\n")));
            }
        }
    }
    catalogs
}

fn paths(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn to_json(text: &str) -> Value {
    json_of(toml::Value::Table(toml::from_str(text).unwrap()))
}

fn json_of(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(json_of).collect(),
        toml::Value::Table(table) => {
            let fields = table.into_iter().map(|(name, value)| (name, json_of(value)));
            Value::Object(fields.collect())
        }
    }
}

/// Why a schema refuses a value. A validator for the keywords that the schema uses; another keyword
/// is a panic, so that none is ignored.
fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let keywords = schema.as_object().unwrap();
    keywords
        .iter()
        .flat_map(|(keyword, wanted)| violations(keywords, keyword, wanted, value))
        .collect()
}

fn violations(
    schema: &Map<String, Value>,
    keyword: &str,
    wanted: &Value,
    value: &Value,
) -> Vec<String> {
    let fails = |is_valid: bool| match is_valid {
        true => Vec::new(),
        false => vec![format!("{value} is not {keyword} {wanted}")],
    };
    match keyword {
        "type" => fails(match wanted.as_str().unwrap() {
            "string" => value.is_string(),
            "integer" => value.is_i64(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("type {other}"),
        }),
        "enum" => fails(wanted.as_array().unwrap().contains(value)),
        "pattern" => {
            let pattern = Regex::new(wanted.as_str().unwrap()).unwrap();
            fails(value.as_str().is_none_or(|text| pattern.is_match(text)))
        }
        "minimum" => fails(value.as_i64().is_none_or(|number| number >= wanted.as_i64().unwrap())),
        "maximum" => fails(value.as_i64().is_none_or(|number| number <= wanted.as_i64().unwrap())),
        "maxItems" => {
            let most = usize::try_from(wanted.as_u64().unwrap()).unwrap();
            fails(value.as_array().is_none_or(|items| items.len() <= most))
        }
        "items" => {
            value.as_array().into_iter().flatten().flat_map(|item| errors(wanted, item)).collect()
        }
        "anyOf" => {
            fails(wanted.as_array().unwrap().iter().any(|one| errors(one, value).is_empty()))
        }
        "required" => {
            let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
            fails(!value.is_object() || wanted.as_array().unwrap().iter().all(has))
        }
        "properties" => {
            let properties = wanted.as_object().unwrap();
            let given = properties.iter().filter_map(|(name, one)| Some((one, value.get(name)?)));
            given.flat_map(|(one, value)| errors(one, value)).collect()
        }
        "propertyNames" => {
            let names = value.as_object().into_iter().flat_map(Map::keys);
            names.flat_map(|name| errors(wanted, &name.as_str().into())).collect()
        }
        "additionalProperties" => additional(schema, wanted, value),
        "$schema" | "title" | "description" | "default" => Vec::new(),
        own if own.starts_with("x-") => Vec::new(),
        other => panic!("the keyword {other}"),
    }
}

fn additional(schema: &Map<String, Value>, wanted: &Value, value: &Value) -> Vec<String> {
    let is_declared = |name: &str| {
        schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
    };
    let fields = value.as_object().into_iter().flatten();
    let others = fields.filter(|(name, _)| !is_declared(name));
    others
        .flat_map(|(name, value)| match wanted {
            Value::Bool(false) => vec![format!("{name} is not declared")],
            schema => errors(schema, value),
        })
        .collect()
}
