//! Facts about attribute values, such as a category or a plan: list, show, set and delete.
//!
//! Facts that operators set take precedence over those of the catalog. The records hold
//! pseudonyms in place of private values.

use std::collections::BTreeMap;

use catraca::records::{AttributeValue, FactCursor, RecordKind};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AdminContext, AdminResult, ApiRequest, Problem, TEXT_MAX, check_text, not_found, parse_number,
    to_json,
};
use crate::http::bodies::schema_values;

/// Maximum number of facts in one request.
const FACTS_MAX: usize = 32;

/// Held while facts change, so that two changes of one value are recorded in the order in which
/// they took effect.
static CHANGE_LOCK: Mutex<()> = Mutex::new(());

/// Facts by name.
type FactMap = BTreeMap<String, String>;

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
pub fn list(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let [after, limit] = request.query_params(["after", "limit"])?;
    let invalid = |_| Problem::bad("bad-query", "`after` must be the `next` of the previous page");
    let after = after.map(serde_json::from_str::<FactCursor>).transpose().map_err(invalid)?;
    let page = context.records()?.facts(after, parse_number("limit", limit)?.unwrap_or(PAGE))?;
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
pub fn show(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let [] = request.query_params([])?;
    let facts = facts_of(context, request)?;
    if facts.is_empty() {
        let detail = format!("there are no facts about this value of `{}`", request.path_param(0));
        return Err(not_found("unknown-value", detail));
    }
    to_json(&ValueFacts { attribute: request.path_param(0).to_owned(), facts })
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
pub fn set(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let body: NewFacts = request.json_body()?;
    let why = check_text("why", body.why.as_deref())?;
    let fits = |text: &String| (1..=TEXT_MAX).contains(&text.len());
    if body.facts.is_empty() || body.facts.len() > FACTS_MAX {
        let detail = format!("send 1 to {FACTS_MAX} facts, such as {{\"plan\":\"gold\"}}");
        return Err(Problem::bad("bad-facts", detail));
    }
    if !body.facts.iter().all(|(name, fact)| fits(name) && fits(fact)) {
        let detail = format!("a fact's name and its text have 1 to {TEXT_MAX} bytes each");
        return Err(Problem::bad("bad-facts", detail));
    }
    // Refused before anything changes: without records the change would be lost at a restart.
    context.records()?;
    let attribute = request.path_param(0);
    let value = request.path_param(1);
    let _lock = CHANGE_LOCK.lock();
    let before = facts_of(context, request)?;
    let pairs: Vec<(&str, &str)> = body.facts.iter().map(|(n, f)| (&**n, &**f)).collect();
    context.engine.state_facts(attribute, value, &pairs)?;
    let stored = stored_value(context, request)?;
    let act = RecordKind::SetFacts(stored, body.facts.into_iter().collect());
    let durable = context.record_acts(why, vec![act])?;
    let attribute = attribute.to_owned();
    let after = facts_of(context, request)?;
    to_json(&ChangedFacts { attribute, before, after, durable })
}

/// `DELETE /v1/facts/{attribute}/{value}`.
pub fn delete(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let reason = request.audit_reason()?;
    let why = check_text("why", reason.why.as_deref())?;
    // Refused before anything changes: without records the change would be lost at a restart.
    context.records()?;
    let _lock = CHANGE_LOCK.lock();
    let before = facts_of(context, request)?;
    if !context.engine.forget_facts(request.path_param(0), request.path_param(1))? {
        let detail = format!(
            "no operator set a fact about this value of `{}`; the catalog's facts are changed in \
             its file",
            request.path_param(0)
        );
        return Err(not_found("unknown-value", detail));
    }
    let act = RecordKind::ForgetFacts(stored_value(context, request)?);
    let durable = context.record_acts(why, vec![act])?;
    let attribute = request.path_param(0).to_owned();
    let after = facts_of(context, request)?;
    to_json(&ChangedFacts { attribute, before, after, durable })
}

/// The facts about the value in the path, of operators and of the catalog.
fn facts_of(context: &AdminContext<'_>, request: &ApiRequest) -> Result<FactMap, Problem> {
    let facts = context.engine.facts_about(request.path_param(0), request.path_param(1))?;
    Ok(facts.iter().map(|(name, fact)| (name.to_string(), fact.to_string())).collect())
}

/// The attribute and value in the path, as the records store them.
fn stored_value(
    context: &AdminContext<'_>,
    request: &ApiRequest,
) -> Result<AttributeValue, Problem> {
    let known = context
        .engine
        .stored_names(request.path_param(0), request.path_param(1))?
        .into_iter()
        .next();
    known.ok_or_else(|| Problem::bad("bad-attribute", "the value has no stored form"))
}
