//! Export and erasure by identifier.
//!
//! Must not write the identifier anywhere: the audit says only whose attribute it was.

use catraca::Time;
use catraca::records::{Deed, Noted};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::shown;
use super::{Answered, Call, Desk, Problem, bounded};

/// What neither call can reach, and why that is well.
const COUNTERS: &str = "counters are keyed digests without names; each lapses with its window";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    attribute: String,
    value: String,
    why: Option<String>,
}

/// `POST /v1/privacy/export`.
pub fn export(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Wire = call.wire()?;
    let about = desk.engine.known_as(&wire.attribute, &wire.value)?;
    let durable = noted(desk, &wire, "export")?;
    let found = desk.records()?.export(&about)?;
    let blocks = found.blocks.iter().map(|(row, history)| {
        let mut shown = shown::block(row);
        shown["history"] = history.iter().map(shown::history).collect();
        shown
    });
    let lists = found.lists.iter().map(|(list, reason, until)| {
        let until = until.map(|until| Time::from_micros(until).to_rfc3339());
        json!({ "list": list, "reason": reason, "until": until })
    });
    let facts = found.facts.iter().map(|(name, fact)| (name.clone(), Value::from(&**fact)));
    Ok(json!({
        "attribute": wire.attribute,
        "blocks": blocks.collect::<Vec<_>>(),
        "lists": lists.collect::<Vec<_>>(),
        "facts": facts.collect::<serde_json::Map<_, _>>(),
        "acts": found.audit.iter().map(shown::audited).collect::<Vec<_>>(),
        "counters": COUNTERS,
        "durable": durable,
    }))
}

/// `POST /v1/privacy/erase`.
pub fn erase(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Wire = call.wire()?;
    let about = desk.engine.known_as(&wire.attribute, &wire.value)?;
    let erased = desk.records()?.erase(&about, desk.engine.now())?;
    desk.engine.forget_facts(&wire.attribute, &wire.value)?;
    let durable = noted(desk, &wire, "erase")?;
    Ok(json!({
        "attribute": wire.attribute,
        "erased": { "blocks": erased.blocks, "facts": erased.facts, "acts": erased.audit },
        "retained": {
            "blocks": erased.retained_blocks,
            "lists": erased.retained_lists,
            "debts": erased.retained_debts,
        },
        "counters": COUNTERS,
        "durable": durable,
    }))
}

fn noted(desk: &Desk<'_>, wire: &Wire, act: &str) -> Result<bool, Problem> {
    let why = bounded("why", wire.why.as_deref())?;
    let target = format!("one value of {}", wire.attribute);
    desk.recorded(why, vec![Deed::Note(Noted { act: act.to_owned(), target })])
}
