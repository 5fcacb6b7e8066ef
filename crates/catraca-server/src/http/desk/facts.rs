//! Facts: categories, plans, known tokens; what is stated here comes before the catalog's.
//!
//! Must not keep a private value: the records hold its pseudonym.

use std::collections::BTreeMap;

use catraca::records::{About, Deed};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answered, Call, Desk, Problem, TEXT_MAX, bounded, missing};

/// Facts in one call.
const FACTS_MAX: usize = 32;

/// Two statements about one value must be recorded in the order in which they came in force.
static TURN: Mutex<()> = Mutex::new(());

/// `GET /v1/facts/{attribute}/{value}`.
pub fn all(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let known = known(desk, call)?;
    if known.as_object().is_none_or(Map::is_empty) {
        let detail = format!("nothing is known of this value of `{}`", call.part(0));
        return Err(missing("unknown-value", detail));
    }
    Ok(json!({ "attribute": call.part(0), "facts": known }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    facts: BTreeMap<String, String>,
    why: Option<String>,
}

/// `PUT /v1/facts/{attribute}/{value}`: states these; what it does not name stays as it is.
pub fn state(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Wire = call.wire()?;
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
    Ok(json!({
        "attribute": attribute, "before": before, "after": known(desk, call)?, "durable": durable,
    }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Motive {
    why: Option<String>,
}

/// `DELETE /v1/facts/{attribute}/{value}`.
pub fn forget(desk: &Desk<'_>, call: &Call) -> Answered {
    let motive: Motive = if call.body.is_empty() { Motive::default() } else { call.wire()? };
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
    Ok(json!({
        "attribute": call.part(0), "before": before, "after": known(desk, call)?,
        "durable": durable,
    }))
}

fn known(desk: &Desk<'_>, call: &Call) -> Answered {
    let facts = desk.engine.facts_about(call.part(0), call.part(1))?;
    let facts = facts.iter().map(|(name, fact)| (name.to_string(), Value::from(&**fact)));
    Ok(Value::Object(facts.collect()))
}

fn about(desk: &Desk<'_>, call: &Call) -> Result<About, Problem> {
    let known = desk.engine.known_as(call.part(0), call.part(1))?.into_iter().next();
    known.ok_or_else(|| Problem::bad("bad-attribute", "the value is no name"))
}
