//! The verbs of steps and their arguments; the submodules parse them.

mod decisions;
mod operator;

use std::sync::Arc;

use catraca::{Catalog, Outcome, Span, Time};
use catraca_core::located::Node;
use catraca_core::policy::Mode;

use super::parse::Reader;
use super::schema::{self, Field};
use super::step::Step;

/// The names of all verbs.
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

/// Attributes and values; `{n}` in a value is replaced by the number of the repetition.
pub(super) type Pairs = Vec<(String, String)>;

/// A verb with its arguments.
#[derive(Clone, Debug)]
pub(super) enum StepVerb {
    Check(CheckStep),
    Peek(CheckStep),
    Settle(SettleStep),
    Credit(CreditStep),
    Block(BlockStep),
    Unblock(KeyStep),
    Reset(KeyStep),
    Buckets(BucketsStep),
    Reconcile(ReconcileStep),
    Facts(FactStep),
    Mode(String, Option<Mode>),
    Reload(Arc<Catalog>),
    Cycle(Vec<Step>),
}

/// The arguments of a check or a peek.
#[derive(Clone, Debug)]
pub(super) struct CheckStep {
    pub namespace: String,
    pub gate: String,
    pub subject: Pairs,
    pub cost: Option<i64>,
    pub reference: Option<String>,
    pub lists: bool,
    /// If given, an admitted check is settled at once with this outcome.
    pub outcome: Option<Outcome>,
}

/// The arguments of a settle.
#[derive(Clone, Debug)]
pub(super) struct SettleStep {
    pub namespace: String,
    pub check: CheckReference,
    pub outcome: Outcome,
}

/// How a settle names its check.
#[derive(Clone, Debug)]
pub(super) enum CheckReference {
    /// By the name under which `as` saved its ticket.
    SavedTicket(String),
    /// By its reference and subject.
    Reference(String, Pairs),
}

/// The arguments of a credit.
#[derive(Clone, Debug)]
pub(super) struct CreditStep {
    pub namespace: String,
    pub reference: String,
    pub event: String,
    pub subject: Pairs,
}

/// The policy and subject whose keys a verb changes.
#[derive(Clone, Debug)]
pub(super) struct KeyStep {
    pub namespace: String,
    pub policy: String,
    pub subject: Pairs,
}

/// An operator's block.
#[derive(Clone, Debug)]
pub(super) struct BlockStep {
    pub target: KeyStep,
    pub span: Span,
    pub reason: Option<String>,
}

/// Whose bucket states to read: of one policy, or of all.
#[derive(Clone, Debug)]
pub(super) struct BucketsStep {
    pub namespace: String,
    pub policy: Option<String>,
    pub subject: Pairs,
}

/// An upstream's view of buckets.
#[derive(Clone, Debug)]
pub(super) struct ReconcileStep {
    pub namespace: String,
    pub subject: Pairs,
    pub observed_at: Time,
    pub states: Vec<(String, i64)>,
}

/// Facts about an attribute's value; `None` deletes the stored ones.
#[derive(Clone, Debug)]
pub(super) struct FactStep {
    pub namespace: Option<String>,
    pub attribute: String,
    pub value: String,
    pub facts: Option<Pairs>,
}

/// Reads the arguments of the verb with this name.
pub(super) fn read(reader: &mut Reader<'_>, name: &str, node: Node<'_>) -> Option<StepVerb> {
    Some(match name {
        "check" => StepVerb::Check(decisions::check(reader, node, true)?),
        "peek" => StepVerb::Peek(decisions::check(reader, node, false)?),
        "settle" => StepVerb::Settle(decisions::settle(reader, node)?),
        "credit" => StepVerb::Credit(decisions::credit(reader, node)?),
        "block" => StepVerb::Block(operator::block(reader, node)?),
        "unblock" => StepVerb::Unblock(operator::target(reader, node, "unblock")?),
        "reset" => StepVerb::Reset(operator::target(reader, node, "reset")?),
        "buckets" => StepVerb::Buckets(operator::buckets(reader, node)?),
        "reconcile" => StepVerb::Reconcile(operator::reconcile(reader, node)?),
        "facts" => StepVerb::Facts(operator::facts(reader, node)?),
        "mode" => operator::mode(reader, node)?,
        "reload" => StepVerb::Reload(operator::reload(reader, node)?),
        _ => StepVerb::Cycle(operator::cycle(reader, node)?),
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
