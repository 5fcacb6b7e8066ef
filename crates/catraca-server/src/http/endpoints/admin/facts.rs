//! Facts about attribute values, such as a category or a plan: list, show, set and delete.
//!
//! Facts that operators set take precedence over those of the catalog. The records hold
//! pseudonyms in place of private values.

use std::collections::BTreeMap;

use catraca::app::{FACTS_MAX, FactMap, TEXT_MAX};
use catraca::records::{FactCursor, Incomplete};
use hyper::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiRequest, ApiResult, Problem, parse_limit, to_json};
use crate::http::bodies::schema_values;

/// Default number of rows in a page.
const PAGE: u32 = 50;

/// A page of the facts that operators set.
#[derive(Serialize, JsonSchema)]
pub struct FactPage {
    facts: Vec<StatedFact>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
    /// Why the newest entries may be missing; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<&'static str>,
}

/// A fact that an operator set.
#[derive(Serialize, JsonSchema)]
pub struct StatedFact {
    /// The only namespace in which it applies; null if it applies in all.
    #[schemars(example = &"shop")]
    namespace: Option<String>,
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
    /// Whether no caller can have the value under the catalog in use.
    orphaned: bool,
}

/// `GET /v1/facts`: the facts that operators set, ordered by attribute, value, name
/// and namespace.
pub async fn list(request: &ApiRequest) -> ApiResult {
    let [namespace, after, limit] = request.query_params(["namespace", "after", "limit"])?;
    let namespace = request.entry_namespace(namespace).await?;
    let namespace = namespace.as_deref();
    let invalid = |_| Problem::bad("bad-query", "`after` must be the `next` of the previous page");
    let after = after.map(serde_json::from_str::<FactCursor>).transpose().map_err(invalid)?;
    let limit = parse_limit(limit, PAGE)?;
    let page = request.app().stated_facts(namespace, after, limit).await?;
    let app = request.app();
    let facts = page.rows.into_iter().map(|row| StatedFact {
        orphaned: app.engine().is_orphaned_value(&row.about.attribute, &row.about.value),
        namespace: row.namespace,
        attribute: row.about.attribute,
        value: row.about.value,
        name: row.name,
        fact: row.fact,
        at: row.at.to_rfc3339(),
        by: row.by,
    });
    let next = page.next.map(|cursor| serde_json::to_string(&cursor)).transpose();
    let next = next.map_err(|error| Problem::internal(&error))?;
    let incomplete = page.incomplete.map(Incomplete::as_str);
    to_json(&FactPage { facts: facts.collect(), next, incomplete })
}

/// The facts about one value.
#[derive(Serialize, JsonSchema)]
pub struct ValueFacts {
    /// The namespace in which operators set them; null for those of all namespaces.
    #[schemars(example = &"shop")]
    namespace: Option<String>,
    #[schemars(example = &"participant")]
    attribute: String,
    #[schemars(example = example())]
    facts: FactMap,
}

/// `GET /v1/facts/{attribute}/{value}`.
pub async fn show(request: &ApiRequest) -> ApiResult {
    let [namespace] = request.query_params(["namespace"])?;
    let namespace = request.entry_namespace(namespace).await?;
    let namespace = namespace.as_deref();
    let attribute = request.path_param(0).to_owned();
    let facts = request.app().facts_about(namespace, &attribute, request.path_param(1))?;
    if facts.is_empty() {
        let detail = format!("there are no facts about this value of `{attribute}`");
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown-value", detail));
    }
    to_json(&ValueFacts { namespace: namespace.map(str::to_owned), attribute, facts })
}

/// Facts to set.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFacts {
    /// The only namespace in which they apply; the default is all, or that of the key.
    namespace: Option<String>,
    #[schemars(extend("minProperties" = 1, "maxProperties" = FACTS_MAX), example = example())]
    facts: FactMap,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// Which facts to delete, and why.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactsToForget {
    /// The namespace of the facts; the default is those of all, or of that of the key.
    namespace: Option<String>,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"the plan has ended")]
    why: Option<String>,
}

/// The facts about one value, before and after a change.
#[derive(Serialize, JsonSchema)]
pub struct ChangedFacts {
    /// The only namespace in which they apply; null if they apply in all.
    #[schemars(example = &"shop")]
    namespace: Option<String>,
    #[schemars(example = &"participant")]
    attribute: String,
    before: FactMap,
    #[schemars(example = example())]
    after: FactMap,
    /// How many facts of single namespaces are ignored from now on, by namespace: they have the
    /// same name, and are about another attribute. Empty for facts of one namespace.
    #[schemars(example = BTreeMap::from([("shop", 2)]))]
    ignored: BTreeMap<String, usize>,
    /// The names of the facts that nothing in the catalog reads: they have no effect, and most
    /// likely are misspelt.
    unread: Vec<String>,
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
    let namespace = request.entry_namespace(body.namespace.as_deref()).await?;
    let own = namespace.as_deref();
    let changed = app.set_facts(&operator, own, attribute, value, body.facts).await?;
    to_json(&ChangedFacts::new(namespace, attribute, changed))
}

/// `DELETE /v1/facts/{attribute}/{value}`.
pub async fn delete(request: &ApiRequest) -> ApiResult {
    let body: FactsToForget =
        if request.body.is_empty() { FactsToForget::default() } else { request.json_body()? };
    let operator = request.operator(body.why.as_deref());
    let attribute = request.path_param(0);
    let value = request.path_param(1);
    let app = &request.app();
    let namespace = request.entry_namespace(body.namespace.as_deref()).await?;
    let changed = app.forget_facts(&operator, namespace.as_deref(), attribute, value).await?;
    to_json(&ChangedFacts::new(namespace, attribute, changed))
}

impl ChangedFacts {
    fn new(
        namespace: Option<String>,
        attribute: &str,
        changed: catraca::app::ChangedFacts,
    ) -> Self {
        let catraca::app::ChangedFacts { before, after, ignored, unread, durable } = changed;
        let attribute = attribute.to_owned();
        Self { namespace, attribute, before, after, ignored, unread, durable }
    }
}
