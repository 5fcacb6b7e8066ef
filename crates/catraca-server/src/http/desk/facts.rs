//! Facts: categories, plans, known tokens; what is stated here comes before the catalog's.
//!
//! Must not keep a private value: the records hold its pseudonym.

use std::collections::BTreeMap;

use catraca::records::{About, Deed, FactPlace};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::words;
use super::{Answered, Call, Desk, Problem, TEXT_MAX, bounded, missing, number, told};

/// Facts in one call.
const FACTS_MAX: usize = 32;

/// Two statements about one value must be recorded in the order in which they came in force.
static TURN: Mutex<()> = Mutex::new(());

/// Facts by their names.
type Facts = BTreeMap<String, String>;

/// Rows of a page, unless asked otherwise.
const PAGE: u32 = 50;

/// A page of facts that were stated.
#[derive(Serialize, JsonSchema)]
pub struct FactPage {
    facts: Vec<StatedFact>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
}

/// A fact that was stated.
#[derive(Serialize, JsonSchema)]
pub struct StatedFact {
    #[schemars(example = &"participant")]
    attribute: String,
    /// Its pseudonym, if the attribute is private.
    #[schemars(example = &"12345678")]
    value: String,
    #[schemars(example = &"category")]
    name: String,
    #[schemars(example = &"A")]
    fact: String,
    /// When it was stated.
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    at: String,
    /// By whom.
    #[schemars(example = &"ana")]
    by: Option<String>,
}

/// `GET /v1/facts`: all that was stated, by attribute, value and name.
pub fn stated(desk: &Desk<'_>, call: &Call) -> Answered {
    let [after, limit] = call.asked(["after", "limit"])?;
    let bad = |_| Problem::bad("bad-query", "`after` must be the `next` of the page before");
    let after = after.map(serde_json::from_str::<FactPlace>).transpose().map_err(bad)?;
    let page = desk.records()?.facts(after, number("limit", limit)?.unwrap_or(PAGE))?;
    let facts = page.rows.into_iter().map(|row| StatedFact {
        attribute: row.about.attribute,
        value: row.about.value,
        name: row.name,
        fact: row.fact,
        at: row.at.to_rfc3339(),
        by: row.by,
    });
    let next = page.next.map(|place| serde_json::to_string(&place)).transpose();
    let next = next.map_err(|error| Problem::internal(&error))?;
    told(&FactPage { facts: facts.collect(), next })
}

/// What is known of a value.
#[derive(Serialize, JsonSchema)]
pub struct Known {
    #[schemars(example = &"participant")]
    attribute: String,
    #[schemars(example = example())]
    facts: Facts,
}

/// `GET /v1/facts/{attribute}/{value}`.
pub fn all(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let facts = known(desk, call)?;
    if facts.is_empty() {
        let detail = format!("nothing is known of this value of `{}`", call.part(0));
        return Err(missing("unknown-value", detail));
    }
    told(&Known { attribute: call.part(0).to_owned(), facts })
}

/// Facts to state.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFacts {
    #[schemars(extend("minProperties" = 1, "maxProperties" = FACTS_MAX), example = example())]
    facts: Facts,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// What is known of a value, before and after a change.
#[derive(Serialize, JsonSchema)]
pub struct ChangedFacts {
    #[schemars(example = &"participant")]
    attribute: String,
    before: Facts,
    #[schemars(example = example())]
    after: Facts,
    /// Whether it is on disk.
    durable: bool,
}

fn example() -> Facts {
    Facts::from([("category".to_owned(), "A".to_owned())])
}

/// `PUT /v1/facts/{attribute}/{value}`: states these; what it does not name stays as it is.
pub fn state(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: NewFacts = call.wire()?;
    let why = bounded("why", wire.why.as_deref())?;
    let fits = |text: &String| (1..=TEXT_MAX).contains(&text.len());
    if wire.facts.is_empty() || wire.facts.len() > FACTS_MAX {
        let detail = format!("state 1 to {FACTS_MAX} facts, such as {{\"plan\":\"gold\"}}");
        return Err(Problem::bad("bad-facts", detail));
    }
    if !wire.facts.iter().all(|(name, fact)| fits(name) && fits(fact)) {
        let detail = format!("a fact's name and its text have 1 to {TEXT_MAX} bytes each");
        return Err(Problem::bad("bad-facts", detail));
    }
    desk.records()?;
    let (attribute, value) = (call.part(0), call.part(1));
    let _turn = TURN.lock();
    let before = known(desk, call)?;
    let pairs: Vec<(&str, &str)> = wire.facts.iter().map(|(n, f)| (&**n, &**f)).collect();
    desk.engine.state_facts(attribute, value, &pairs)?;
    let deed = Deed::State(about(desk, call)?, wire.facts.into_iter().collect());
    let durable = desk.recorded(why, vec![deed])?;
    let (attribute, after) = (attribute.to_owned(), known(desk, call)?);
    told(&ChangedFacts { attribute, before, after, durable })
}

/// `DELETE /v1/facts/{attribute}/{value}`.
pub fn forget(desk: &Desk<'_>, call: &Call) -> Answered {
    let motive = call.motive()?;
    let why = bounded("why", motive.why.as_deref())?;
    desk.records()?;
    let _turn = TURN.lock();
    let before = known(desk, call)?;
    if !desk.engine.forget_facts(call.part(0), call.part(1))? {
        let detail = format!(
            "nothing was stated about this value of `{}`; the catalog's facts are changed there",
            call.part(0)
        );
        return Err(missing("unknown-value", detail));
    }
    let durable = desk.recorded(why, vec![Deed::Forget(about(desk, call)?)])?;
    let (attribute, after) = (call.part(0).to_owned(), known(desk, call)?);
    told(&ChangedFacts { attribute, before, after, durable })
}

fn known(desk: &Desk<'_>, call: &Call) -> Result<Facts, Problem> {
    let facts = desk.engine.facts_about(call.part(0), call.part(1))?;
    Ok(facts.iter().map(|(name, fact)| (name.to_string(), fact.to_string())).collect())
}

fn about(desk: &Desk<'_>, call: &Call) -> Result<About, Problem> {
    let known = desk.engine.known_as(call.part(0), call.part(1))?.into_iter().next();
    known.ok_or_else(|| Problem::bad("bad-attribute", "the value is no name"))
}
