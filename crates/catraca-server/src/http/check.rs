//! The check route: the one that everybody calls, served before the general router.
//!
//! Must not allocate more than the answer and the body.

use bytes::Bytes;
use catraca::Check;

use super::Front;
use super::auth::Caller;
use super::decide::Verb;
use super::problem::{Answer, Problem, json};
use super::quick;
use super::wire::{LIST_MAX, WireCheck, is_list, read, read_list};

/// Answers one check, or a list of them, each on its own.
pub async fn answer(front: &Front, by: &Caller, body: &Bytes, verb: Verb) -> Answer {
    let body = match is_list(body) {
        // Boxed, so that the single one does not carry its weight.
        true => Box::pin(many(front, by, body, verb)).await,
        false => single(front, by, body, verb).await,
    };
    body.map_or_else(|problem| problem.answer(), json)
}

async fn single(front: &Front, by: &Caller, body: &[u8], verb: Verb) -> Result<Vec<u8>, Problem> {
    let mut out = Vec::with_capacity(quick::USUAL_BYTES);
    one(front, by, &read(body)?, verb, &mut out).await?;
    Ok(out)
}

async fn many(front: &Front, by: &Caller, body: &[u8], verb: Verb) -> Result<Vec<u8>, Problem> {
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
        if let Err(problem) = one(front, by, check, verb, &mut out).await {
            out.extend(problem.to_json());
        }
    }
    out.push(b']');
    Ok(out)
}

async fn one(
    front: &Front,
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
    quick::write(&front.decide(&check, verb).await?, out);
    Ok(())
}
