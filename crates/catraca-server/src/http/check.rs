//! The check route: the one that everybody calls, served before the general router.
//!
//! Must not allocate more than the answer and the body.

use bytes::Bytes;
use catraca::{Check, Decision};

use super::Front;
use super::auth::Caller;
use super::decide::Verb;
use super::problem::{Answer, Problem, json};
use super::quick;
use super::wire::{LIST_MAX, WireCheck, is_list, read, read_list};
use crate::observe::traces::Span;

/// Who asks, for what, and where it is noted.
pub struct Asking<'a> {
    /// Whose key it is.
    pub by: &'a Caller,
    /// The call's span.
    pub span: &'a Span,
    /// How the checks are made.
    pub verb: Verb,
}

/// Answers one check, or a list of them, each on its own.
pub async fn answer(front: &Front, asking: &Asking<'_>, body: &Bytes) -> Answer {
    let body = match is_list(body) {
        // Boxed, so that the single one does not carry its weight.
        true => Box::pin(many(front, asking, body)).await,
        false => single(front, asking, body).await,
    };
    body.map_or_else(|problem| problem.answer(), json)
}

async fn single(front: &Front, asking: &Asking<'_>, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let wire: WireCheck<'_> = read(body)?;
    let mut out = Vec::with_capacity(quick::USUAL_BYTES);
    let decision = one(front, asking, &wire).await?;
    asking.span.decided(&wire.gate, &decision);
    quick::write(&decision, &mut out);
    Ok(out)
}

async fn many(front: &Front, asking: &Asking<'_>, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let checks: Vec<WireCheck<'_>> = read_list(body)?;
    if checks.len() > LIST_MAX {
        let detail = format!("a list may have {LIST_MAX} checks and this one has {}", checks.len());
        return Err(Problem::bad("list-too-long", detail));
    }
    let (mut out, mut denied) = (vec![b'['], 0);
    for (place, check) in checks.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        match one(front, asking, check).await {
            Ok(decision) => {
                denied += usize::from(!decision.allowed);
                quick::write(&decision, &mut out);
            }
            Err(problem) => out.extend(problem.to_json()),
        }
    }
    asking.span.decided_many(checks.len(), denied);
    out.push(b']');
    Ok(out)
}

async fn one(
    front: &Front,
    asking: &Asking<'_>,
    wire: &WireCheck<'_>,
) -> Result<Decision, Problem> {
    let by = asking.by;
    let mut check = Check::new(&wire.gate, by.subject(wire.subject.subject())?);
    check.namespace = by.namespace();
    check.cost = wire.cost;
    check.reference = wire.r#ref.as_deref();
    check.lists = wire.lists.unwrap_or(true);
    Ok(front.decide(&check, asking.verb).await?)
}
