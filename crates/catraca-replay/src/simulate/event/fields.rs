//! The JSON fields of a line and of the objects in it.

use serde::de::MapAccess;
use serde_json::Value;

use super::At;
use super::object::{EventFields, EventObject, Pairs, object, scalar};
use super::text::{EventText, Status, Whole};

/// All fields of a line. The rare ones are boxed, so that a line with a check is cheap to move.
#[derive(Debug, Default)]
pub struct LineFields<'a> {
    pub at: Option<At<'a>>,
    pub check: CheckFields<'a>,
    pub credit: Option<Box<EventObject<CreditFields<'a>>>>,
    pub block: Option<Box<EventObject<BlockFields<'a>>>>,
    pub unblock: Option<Box<EventObject<TargetFields<'a>>>>,
    pub reset: Option<Box<EventObject<TargetFields<'a>>>>,
}

/// The fields of a check.
#[derive(Debug, Default)]
pub struct CheckFields<'a> {
    pub gate: Option<EventText<'a>>,
    pub subject: Option<Pairs<'a>>,
    pub cost: Option<Whole>,
    pub reference: Option<EventText<'a>>,
    pub lists: Option<bool>,
    pub outcome: Option<EventObject<OutcomeFields<'a>>>,
    pub after_ms: Option<Whole>,
}

/// The fields of `outcome`.
#[derive(Debug, Default)]
pub struct OutcomeFields<'a> {
    pub status: Option<Status>,
    pub body: Option<Value>,
    pub headers: Option<Pairs<'a>>,
    pub cost: Option<Whole>,
    pub after_ms: Option<Whole>,
}

/// The fields of `credit`.
#[derive(Debug, Default)]
pub struct CreditFields<'a> {
    pub reference: Option<EventText<'a>>,
    pub event: Option<EventText<'a>>,
    pub subject: Option<Pairs<'a>>,
}

/// The fields of `block`.
#[derive(Debug, Default)]
pub struct BlockFields<'a> {
    pub policy: Option<EventText<'a>>,
    pub subject: Option<Pairs<'a>>,
    pub span: Option<EventText<'a>>,
    pub reason: Option<EventText<'a>>,
}

/// The fields of `unblock` and `reset`.
#[derive(Debug, Default)]
pub struct TargetFields<'a> {
    pub policy: Option<EventText<'a>>,
    pub subject: Option<Pairs<'a>>,
}

impl CheckFields<'_> {
    /// A field that only a check has, on a line without a gate.
    pub fn misplaced_field(&self) -> Option<&'static str> {
        if self.gate.is_some() {
            return None;
        }
        let fields = [
            ("subject", self.subject.is_some()),
            ("cost", self.cost.is_some()),
            ("ref", self.reference.is_some()),
            ("lists", self.lists.is_some()),
            ("outcome", self.outcome.is_some()),
            ("after_ms", self.after_ms.is_some()),
        ];
        fields.into_iter().find(|(_, present)| *present).map(|(name, _)| name)
    }
}

impl<'de> EventFields<'de> for LineFields<'de> {
    const OWNER: &'static str = "a line";
    const KNOWN: &'static str =
        "at, gate, subject, cost, ref, lists, outcome, after_ms, credit, block, unblock, reset";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        let check = &mut self.check;
        match name {
            "at" => scalar(map, name, &mut self.at),
            "gate" => scalar(map, name, &mut check.gate),
            "subject" => scalar(map, name, &mut check.subject),
            "cost" => scalar(map, name, &mut check.cost),
            "ref" => scalar(map, name, &mut check.reference),
            "lists" => scalar(map, name, &mut check.lists),
            "outcome" => object(map, name, &mut check.outcome),
            "after_ms" => scalar(map, name, &mut check.after_ms),
            "credit" => object(map, name, &mut self.credit),
            "block" => object(map, name, &mut self.block),
            "unblock" => scalar(map, name, &mut self.unblock),
            "reset" => scalar(map, name, &mut self.reset),
            _ => Ok(None),
        }
    }
}

impl<'de> EventFields<'de> for OutcomeFields<'de> {
    const OWNER: &'static str = "`outcome`";
    const KNOWN: &'static str = "status, body, headers, cost";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        match name {
            "status" => scalar(map, "outcome.status", &mut self.status),
            "body" => scalar(map, "outcome.body", &mut self.body),
            "headers" => scalar(map, "outcome.headers", &mut self.headers),
            "cost" => scalar(map, "outcome.cost", &mut self.cost),
            "after_ms" => scalar(map, "outcome.after_ms", &mut self.after_ms),
            _ => Ok(None),
        }
    }
}

impl<'de> EventFields<'de> for CreditFields<'de> {
    const OWNER: &'static str = "`credit`";
    const KNOWN: &'static str = "ref, event, subject";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        match name {
            "ref" => scalar(map, "credit.ref", &mut self.reference),
            "event" => scalar(map, "credit.event", &mut self.event),
            "subject" => scalar(map, "credit.subject", &mut self.subject),
            _ => Ok(None),
        }
    }
}

impl<'de> EventFields<'de> for BlockFields<'de> {
    const OWNER: &'static str = "`block`";
    const KNOWN: &'static str = "policy, subject, for, reason";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        match name {
            "policy" => scalar(map, "block.policy", &mut self.policy),
            "subject" => scalar(map, "block.subject", &mut self.subject),
            "for" => scalar(map, "block.for", &mut self.span),
            "reason" => scalar(map, "block.reason", &mut self.reason),
            _ => Ok(None),
        }
    }
}

impl<'de> EventFields<'de> for TargetFields<'de> {
    const OWNER: &'static str = "it";
    const KNOWN: &'static str = "policy, subject";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        match name {
            "policy" => scalar(map, "policy", &mut self.policy),
            "subject" => scalar(map, "subject", &mut self.subject),
            _ => Ok(None),
        }
    }
}
