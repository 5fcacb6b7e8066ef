//! The check route: the one that everybody calls, served before the general router.
//!
//! Must not allocate more than the answer and the body.

use bytes::Bytes;
use catraca::{Check, Decision, Engine, Error};

use super::auth::Caller;
use super::problem::{Answer, Problem, json};
use super::quick;
use super::wire::{LIST_MAX, WireCheck, is_list, read, read_list};

/// How a check is made: for real, or only looked at.
pub type Verb = fn(&Engine, &Check<'_>) -> Result<Decision, Error>;

/// Answers one check, or a list of them, each on its own.
pub fn answer(engine: &Engine, by: &Caller, body: &Bytes, verb: Verb) -> Answer {
    let make = if is_list(body) { many } else { single };
    let body = make(engine, by, body, verb);
    body.map_or_else(|problem| problem.answer(), json)
}

fn single(engine: &Engine, by: &Caller, body: &[u8], verb: Verb) -> Result<Vec<u8>, Problem> {
    let mut out = Vec::with_capacity(quick::USUAL_BYTES);
    one(engine, by, &read(body)?, verb, &mut out)?;
    Ok(out)
}

fn many(engine: &Engine, by: &Caller, body: &[u8], verb: Verb) -> Result<Vec<u8>, Problem> {
    let checks: Vec<WireCheck<'_>> = read_list(body)?;
    if checks.len() > LIST_MAX {
        let detail = format!("a list may have {LIST_MAX} checks and this one has {}", checks.len());
        return Err(Problem::bad("list-too-long", detail));
    }
    let mut out = vec![b'['];
    for (place, check) in checks.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        if let Err(problem) = one(engine, by, check, verb, &mut out) {
            out.extend(problem.to_json());
        }
    }
    out.push(b']');
    Ok(out)
}

fn one(
    engine: &Engine,
    by: &Caller,
    wire: &WireCheck<'_>,
    verb: Verb,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    let mut check = Check::new(&wire.gate, by.subject(wire.subject.subject())?);
    check.namespace = by.namespace();
    check.cost = wire.cost;
    check.reference = wire.r#ref.as_deref();
    check.lists = wire.lists.unwrap_or(true);
    quick::write(&verb(engine, &check)?, out);
    Ok(())
}
