//! The verbs of steps: what they carry, and how they are written.
//!
//! Must not do them.

mod ask;
mod order;

use std::sync::Arc;

use catraca::{Catalog, Outcome, Span, Time};
use catraca_core::policy::Mode;

use super::node::Node;
use super::read::Reader;
use super::schema::{self, Field};
use super::step::Step;

/// Every verb, as it is written.
pub(super) const VERBS: [&str; 13] = [
    "check",
    "peek",
    "settle",
    "credit",
    "block",
    "unblock",
    "reset",
    "buckets",
    "reconcile",
    "facts",
    "mode",
    "reload",
    "cycle",
];

/// Attributes as written; `{n}` in a value becomes the number of the repetition.
pub(super) type Pairs = Vec<(String, String)>;

/// What a step does.
#[derive(Clone, Debug)]
pub(super) enum Verb {
    Check(Ask),
    Peek(Ask),
    Settle(Settling),
    Credit(Crediting),
    Block(Blocking),
    Unblock(Target),
    Reset(Target),
    Buckets(Looking),
    Reconcile(Reconciling),
    Facts(Stating),
    Mode(String, Option<Mode>),
    Reload(Arc<Catalog>),
    Cycle(Vec<Step>),
}

/// A check or a peek.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub namespace: String,
    pub gate: String,
    pub subject: Pairs,
    pub cost: Option<i64>,
    pub reference: Option<String>,
    pub lists: bool,
    /// Settles an admitted check at once.
    pub outcome: Option<Outcome>,
}

/// A settle.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    pub namespace: String,
    pub stub: Stub,
    pub outcome: Outcome,
}

/// How a settle names its check.
#[derive(Clone, Debug)]
pub(super) enum Stub {
    /// By the name that `as` gave its ticket.
    Kept(String),
    /// By its reference and subject.
    Reference(String, Pairs),
}

/// A credit.
#[derive(Clone, Debug)]
pub(super) struct Crediting {
    pub namespace: String,
    pub reference: String,
    pub event: String,
    pub subject: Pairs,
}

/// A policy and whom.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub namespace: String,
    pub policy: String,
    pub subject: Pairs,
}

/// An operator's block.
#[derive(Clone, Debug)]
pub(super) struct Blocking {
    pub target: Target,
    pub span: Span,
    pub reason: Option<String>,
}

/// Bucket states: of one policy, or of all.
#[derive(Clone, Debug)]
pub(super) struct Looking {
    pub namespace: String,
    pub policy: Option<String>,
    pub subject: Pairs,
}

/// An upstream's view of buckets.
#[derive(Clone, Debug)]
pub(super) struct Reconciling {
    pub namespace: String,
    pub subject: Pairs,
    pub observed_at: Time,
    pub states: Vec<(String, i64)>,
}

/// Facts about a value; none means that what was stated is forgotten.
#[derive(Clone, Debug)]
pub(super) struct Stating {
    pub attribute: String,
    pub value: String,
    pub facts: Option<Pairs>,
}

/// Reads the verb of this name.
pub(super) fn read(reader: &mut Reader<'_>, name: &str, node: Node<'_>) -> Option<Verb> {
    Some(match name {
        "check" => Verb::Check(ask::ask(reader, node, true)?),
        "peek" => Verb::Peek(ask::ask(reader, node, false)?),
        "settle" => Verb::Settle(ask::settle(reader, node)?),
        "credit" => Verb::Credit(ask::credit(reader, node)?),
        "block" => Verb::Block(order::block(reader, node)?),
        "unblock" => Verb::Unblock(order::target(reader, node, "unblock")?),
        "reset" => Verb::Reset(order::target(reader, node, "reset")?),
        "buckets" => Verb::Buckets(order::buckets(reader, node)?),
        "reconcile" => Verb::Reconcile(order::reconcile(reader, node)?),
        "facts" => Verb::Facts(order::facts(reader, node)?),
        "mode" => order::mode(reader, node)?,
        "reload" => Verb::Reload(order::reload(reader, node)?),
        _ => Verb::Cycle(order::cycle(reader, node)?),
    })
}

/// The fields of the verb's answer.
pub(super) fn answer(name: &str, node: Node<'_>) -> &'static [Field] {
    let has = |field| node.value.as_table().is_some_and(|table| table.contains_key(field));
    match name {
        "check" | "peek" => schema::DECISION,
        "settle" => schema::SETTLEMENT,
        "credit" => schema::CREDIT,
        "block" => schema::BLOCK,
        "unblock" => schema::UNBLOCK,
        "buckets" if has("policy") => schema::BUCKET,
        "buckets" => schema::BUCKETS,
        "reconcile" => schema::RECONCILE,
        "facts" if has("forget") => schema::FACTS,
        _ => schema::NOTHING,
    }
}
