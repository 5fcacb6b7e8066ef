//! Facts about attribute values, such as a category or a plan: list, show, set and delete.
//!
//! Facts that operators set take precedence over those of the catalog. The records hold
//! pseudonyms in place of private values.

use catraca::app::{FACTS_MAX, FactMap, TEXT_MAX};
use catraca::records::FactCursor;
use hyper::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiRequest, ApiResult, Problem, parse_number, to_json};
use crate::http::bodies::schema_values;

/// Default number of rows in a page.
const PAGE: u32 = 50;

/// A page of the facts that operators set.
#[derive(Serialize, JsonSchema)]
pub struct FactPage {
    facts: Vec<StatedFact>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
}

/// A fact that an operator set.
#[derive(Serialize, JsonSchema)]
pub struct StatedFact {
    #[schemars(example = &"participant")]
    attribute: String,
    /// The value, or its pseudonym if the attribute is private.
    #[schemars(example = &"12345678")]
    value: String,
    #[schemars(example = &"category")]
    name: String,
    #[schemars(example = &"A")]
    fact: String,
    /// When it was set.
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    at: String,
    /// The operator who set it.
    #[schemars(example = &"ana")]
    by: Option<String>,
}

/// `GET /v1/facts`: the facts that operators set, ordered by attribute, value and name.
pub async fn list(request: &ApiRequest) -> ApiResult {
    let [after, limit] = request.query_params(["after", "limit"])?;
    let invalid = |_| Problem::bad("bad-query", "`after` must be the `next` of the previous page");
    let after = after.map(serde_json::from_str::<FactCursor>).transpose().map_err(invalid)?;
    let limit = parse_number("limit", limit)?.unwrap_or(PAGE);
    let page = request.app().stated_facts(after, limit).await?;
    let facts = page.rows.into_iter().map(|row| StatedFact {
        attribute: row.about.attribute,
        value: row.about.value,
        name: row.name,
        fact: row.fact,
        at: row.at.to_rfc3339(),
        by: row.by,
    });
    let next = page.next.map(|cursor| serde_json::to_string(&cursor)).transpose();
    let next = next.map_err(|error| Problem::internal(&error))?;
    to_json(&FactPage { facts: facts.collect(), next })
}

/// The facts about one value.
#[derive(Serialize, JsonSchema)]
pub struct ValueFacts {
    #[schemars(example = &"participant")]
    attribute: String,
    #[schemars(example = example())]
    facts: FactMap,
}

/// `GET /v1/facts/{attribute}/{value}`.
pub async fn show(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let attribute = request.path_param(0).to_owned();
    let facts = request.app().facts_about(&attribute, request.path_param(1))?;
    if facts.is_empty() {
        let detail = format!("there are no facts about this value of `{attribute}`");
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown-value", detail));
    }
    to_json(&ValueFacts { attribute, facts })
}

/// Facts to set.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFacts {
    #[schemars(extend("minProperties" = 1, "maxProperties" = FACTS_MAX), example = example())]
    facts: FactMap,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// The facts about one value, before and after a change.
#[derive(Serialize, JsonSchema)]
pub struct ChangedFacts {
    #[schemars(example = &"participant")]
    attribute: String,
    before: FactMap,
    #[schemars(example = example())]
    after: FactMap,
    /// Whether it is on disk.
    durable: bool,
}

fn example() -> FactMap {
    FactMap::from([("category".to_owned(), "A".to_owned())])
}

/// `PUT /v1/facts/{attribute}/{value}`: sets these facts; others stay as they are.
pub async fn set(request: &ApiRequest) -> ApiResult {
    let body: NewFacts = request.json_body()?;
    let operator = request.operator(body.why.as_deref());
    let attribute = request.path_param(0);
    let value = request.path_param(1);
    let app = &request.app();
    let changed = app.set_facts(&operator, attribute, value, body.facts).await?;
    to_json(&ChangedFacts::new(attribute, changed))
}

/// `DELETE /v1/facts/{attribute}/{value}`.
pub async fn delete(request: &ApiRequest) -> ApiResult {
    let reason = request.audit_reason()?;
    let operator = request.operator(reason.why.as_deref());
    let attribute = request.path_param(0);
    let app = &request.app();
    let changed = app.forget_facts(&operator, attribute, request.path_param(1)).await?;
    to_json(&ChangedFacts::new(attribute, changed))
}

impl ChangedFacts {
    fn new(attribute: &str, changed: catraca::app::ChangedFacts) -> Self {
        let catraca::app::ChangedFacts { before, after, durable } = changed;
        Self { attribute: attribute.to_owned(), before, after, durable }
    }
}
