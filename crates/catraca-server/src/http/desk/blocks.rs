//! Blocks: who is blocked, until when, why; block and release with a reason.
//!
//! Must not show a private value, and finds one only by its pseudonym.

use catraca::core::cell::block::Origin;
use catraca::core::time::parse_span;
use catraca::records::{About, BlockQuery, BlockRow};
use catraca::settlement::BlockedKey;
use catraca::shape::origin;
use catraca::{BlockOrder, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::wire::OwnedSubject;
use super::super::{shown, words};
use super::{Answered, Call, Desk, Problem, TEXT_MAX, bounded, missing, number, told};

/// A page of the blocks that stand.
#[derive(Serialize, JsonSchema)]
pub struct BlockPage {
    blocks: Vec<shown::Block>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
}

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
    let blocks = page.rows.iter().map(shown::Block::from).collect();
    told(&BlockPage { blocks, next: page.next.map(|next| next.to_string()) })
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

/// A block to make.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBlock {
    #[schemars(example = &"login")]
    policy: String,
    /// Whom; every key that the policy counts them under is blocked.
    subject: OwnedSubject,
    /// How long, such as `30m`, `24h` or `forever`.
    #[schemars(example = &"2h")]
    r#for: String,
    /// For whoever looks at the block.
    #[schemars(length(max = TEXT_MAX), example = &"scanning accounts")]
    reason: Option<String>,
    /// For the audit; the reason unless it is given.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// What an operator blocked.
#[derive(Serialize, JsonSchema)]
pub struct NewlyBlocked {
    blocks: Vec<BlockedKeyShown>,
    /// Whether it is on disk.
    durable: bool,
}

/// One key that an operator blocked.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BlockedKey")]
pub struct BlockedKeyShown {
    /// Null while it is not on disk.
    #[schemars(example = 7)]
    id: Option<i64>,
    #[schemars(example = &"login")]
    policy: String,
    #[schemars(example = words::subject())]
    subject: shown::Parts,
    /// The first free instant; null if it has no end.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    until: Option<String>,
    /// What holds it: the later end's origin.
    #[schemars(with = "words::Origin")]
    origin: &'static str,
    /// Whether this call moved the end.
    changed: bool,
}

/// `POST /v1/blocks`.
pub fn add(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: NewBlock = call.wire()?;
    let reason = bounded("reason", wire.reason.as_deref())?;
    let order = BlockOrder {
        namespace: desk.by.namespace(),
        policy: &wire.policy,
        subject: desk.by.subject(wire.subject.subject())?,
        span: span("for", &wire.r#for)?,
        reason,
    };
    let why = bounded("why", wire.why.as_deref())?.or(reason);
    let (blocked, durable) = desk.acted(why, || desk.front.block(&order))?;
    let records = desk.records()?;
    let shown = blocked.iter().map(|key| {
        // What is not on disk yet has no id yet.
        let row = if durable { records.block_of(key.key)? } else { None };
        Ok(one_blocked(&wire.policy, key, row.as_ref()))
    });
    let blocks = shown.collect::<Result<_, Problem>>()?;
    told(&NewlyBlocked { blocks, durable })
}

fn one_blocked(policy: &str, key: &BlockedKey, row: Option<&BlockRow>) -> BlockedKeyShown {
    BlockedKeyShown {
        id: row.map(|row| row.id),
        policy: policy.to_owned(),
        subject: shown::subject(&key.parts),
        until: shown::until(key.until),
        origin: origin(key.origin),
        changed: key.changed,
    }
}

/// A length of time in a body.
pub fn span(name: &str, text: &str) -> Result<Span, Problem> {
    parse_span(text).map_err(|error| Problem::bad("bad-duration", format!("`{name}`: {error}")))
}

/// A block with its history.
#[derive(Serialize, JsonSchema)]
pub struct BlockHistory {
    #[serde(flatten)]
    block: shown::Block,
    /// Whether it stands now.
    standing: bool,
    /// Every act, the first first.
    history: Vec<shown::Act>,
}

/// `GET /v1/blocks/{id}`.
pub fn one(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let row = found(desk, call)?;
    let standing = row.until > desk.engine.now();
    let history = desk.records()?.history(row.id)?;
    let history = history.iter().map(shown::Act::from).collect();
    told(&BlockHistory { block: shown::Block::from(&row), standing, history })
}

/// A block that an operator ended.
#[derive(Serialize, JsonSchema)]
pub struct Released {
    /// Always true: a block that has ended already is a problem.
    released: bool,
    /// As it was.
    block: shown::Block,
    /// When it ended.
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    until: Option<String>,
    /// Whether it is on disk.
    durable: bool,
}

/// `DELETE /v1/blocks/{id}`.
pub fn release(desk: &Desk<'_>, call: &Call) -> Answered {
    let motive = call.motive()?;
    let row = found(desk, call)?;
    let why = bounded("why", motive.why.as_deref())?;
    let (released, durable) = desk.acted(why, || desk.front.release(&row))?;
    if !released {
        return Err(missing("not-blocked", format!("block {} has ended already", row.id)));
    }
    let after = desk.records()?.block(row.id)?;
    let until = after.and_then(|row| shown::until(row.until));
    told(&Released { released: true, block: shown::Block::from(&row), until, durable })
}

fn found(desk: &Desk<'_>, call: &Call) -> Result<BlockRow, Problem> {
    let shown: String = call.part(0).chars().take(40).collect();
    let unknown = || missing("unknown-block", format!("there is no block {shown}"));
    let id = call.part(0).parse().map_err(|_| unknown())?;
    desk.records()?.block(id)?.ok_or_else(unknown)
}
