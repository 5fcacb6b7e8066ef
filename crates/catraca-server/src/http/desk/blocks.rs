//! Blocks: who is blocked, until when, why; block and release with a reason.
//!
//! Must not show a private value, and finds one only by its pseudonym.

use catraca::core::cell::block::Origin;
use catraca::core::time::parse_span;
use catraca::records::{About, BlockQuery, BlockRow};
use catraca::settlement::BlockedKey;
use catraca::shape::origin;
use catraca::{BlockOrder, Span};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::shown;
use super::super::wire::OwnedSubject;
use super::{Answered, Call, Desk, Problem, bounded, missing, number};

/// `GET /v1/blocks`.
pub fn list(desk: &Desk<'_>, call: &Call) -> Answered {
    let names = ["namespace", "policy", "attribute", "value", "origin", "after", "limit"];
    let [namespace, policy, attribute, value, from, after, limit] = call.asked(names)?;
    let usual = BlockQuery::default();
    let query = BlockQuery {
        namespace: namespace.map(str::to_owned),
        policy: policy.map(str::to_owned),
        about: about(desk, attribute, value)?,
        origin: from.map(read_origin).transpose()?,
        after: after.map(read_cursor).transpose()?,
        limit: number("limit", limit)?.unwrap_or(usual.limit),
    };
    let page = desk.records()?.blocks(&query, desk.engine.now())?;
    let blocks: Vec<Value> = page.rows.iter().map(shown::block).collect();
    Ok(json!({ "blocks": blocks, "next": page.next.map(|next| next.to_string()) }))
}

/// The names under which the records may know a real value.
fn about(
    desk: &Desk<'_>,
    attribute: Option<&str>,
    value: Option<&str>,
) -> Result<Vec<About>, Problem> {
    match (attribute, value) {
        (Some(attribute), Some(value)) => Ok(desk.engine.known_as(attribute, value)?),
        (None, None) => Ok(Vec::new()),
        _ => {
            let detail = "`attribute` and `value` go together, such as attribute=ip and \
                          value=198.51.100.7";
            Err(Problem::bad("bad-query", detail))
        }
    }
}

fn read_origin(word: &str) -> Result<Origin, Problem> {
    let all = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
    let detail = "`origin` is one of excess, ban, operator and upstream";
    let found = all.into_iter().find(|one| origin(*one) == word);
    found.ok_or_else(|| Problem::bad("bad-query", detail))
}

fn read_cursor(text: &str) -> Result<catraca::records::Cursor, Problem> {
    text.parse().map_err(|_| {
        Problem::bad("bad-query", "`after` must be the `next` of the page before, unchanged")
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    policy: String,
    subject: OwnedSubject,
    r#for: String,
    reason: Option<String>,
    why: Option<String>,
}

/// `POST /v1/blocks`.
pub fn add(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Wire = call.wire()?;
    let reason = bounded("reason", wire.reason.as_deref())?;
    let order = BlockOrder {
        namespace: desk.by.namespace(),
        policy: &wire.policy,
        subject: desk.by.subject(wire.subject.subject())?,
        span: span("for", &wire.r#for)?,
        reason,
    };
    let why = bounded("why", wire.why.as_deref())?.or(reason);
    let (blocked, durable) = desk.acted(why, || desk.engine.block(&order))?;
    let records = desk.records()?;
    let shown = blocked.iter().map(|key| {
        // What is not on disk yet has no id yet.
        let row = if durable { records.block_of(key.key)? } else { None };
        Ok(one_blocked(&wire.policy, key, row.as_ref()))
    });
    let blocks: Vec<Value> = shown.collect::<Result<_, Problem>>()?;
    Ok(json!({ "blocks": blocks, "durable": durable }))
}

fn one_blocked(policy: &str, key: &BlockedKey, row: Option<&BlockRow>) -> Value {
    json!({
        "id": row.map(|row| row.id),
        "policy": policy,
        "subject": shown::subject(&key.parts),
        "until": shown::until(key.until),
        "origin": origin(key.origin),
        "changed": key.changed,
    })
}

/// A length of time in a body.
pub fn span(name: &str, text: &str) -> Result<Span, Problem> {
    parse_span(text).map_err(|error| Problem::bad("bad-duration", format!("`{name}`: {error}")))
}

/// `GET /v1/blocks/{id}`.
pub fn one(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let row = found(desk, call)?;
    let mut shown = shown::block(&row);
    shown["standing"] = (row.until > desk.engine.now()).into();
    let history = desk.records()?.history(row.id)?;
    shown["history"] = history.iter().map(shown::history).collect();
    Ok(shown)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Motive {
    why: Option<String>,
}

/// `DELETE /v1/blocks/{id}`.
pub fn release(desk: &Desk<'_>, call: &Call) -> Answered {
    let motive: Motive = if call.body.is_empty() { Motive::default() } else { call.wire()? };
    let row = found(desk, call)?;
    let why = bounded("why", motive.why.as_deref())?;
    let (released, durable) = desk.acted(why, || desk.engine.release(&row))?;
    if !released {
        return Err(missing("not-blocked", format!("block {} has ended already", row.id)));
    }
    let after = desk.records()?.block(row.id)?;
    let after = after.map(|row| shown::until(row.until));
    Ok(json!({ "released": true, "block": shown::block(&row), "until": after, "durable": durable }))
}

fn found(desk: &Desk<'_>, call: &Call) -> Result<BlockRow, Problem> {
    let shown: String = call.part(0).chars().take(40).collect();
    let unknown = || missing("unknown-block", format!("there is no block {shown}"));
    let id = call.part(0).parse().map_err(|_| unknown())?;
    desk.records()?.block(id)?.ok_or_else(unknown)
}
