//! The fields of a line and of the objects in it.

use serde::de::MapAccess;
use serde_json::Value;

use super::At;
use super::object::{Fields, Object, Pairs, leaf, object};
use super::text::{Status, Text, Whole};

/// Everything a line may hold; what is rare stands apart, so that the usual is quick to hand on.
#[derive(Debug, Default)]
pub struct LineFields<'a> {
    pub at: Option<At<'a>>,
    pub check: CheckFields<'a>,
    pub credit: Option<Box<Object<CreditFields<'a>>>>,
    pub block: Option<Box<Object<BlockFields<'a>>>>,
    pub unblock: Option<Box<Object<TargetFields<'a>>>>,
    pub reset: Option<Box<Object<TargetFields<'a>>>>,
}

/// What a check has beside its instant.
#[derive(Debug, Default)]
pub struct CheckFields<'a> {
    pub gate: Option<Text<'a>>,
    pub subject: Option<Pairs<'a>>,
    pub cost: Option<Whole>,
    pub reference: Option<Text<'a>>,
    pub lists: Option<bool>,
    pub outcome: Option<Object<OutcomeFields<'a>>>,
    pub after_ms: Option<Whole>,
}

/// What happened after a check.
#[derive(Debug, Default)]
pub struct OutcomeFields<'a> {
    pub status: Option<Status>,
    pub body: Option<Value>,
    pub headers: Option<Pairs<'a>>,
    pub cost: Option<Whole>,
    pub after_ms: Option<Whole>,
}

/// A late event.
#[derive(Debug, Default)]
pub struct CreditFields<'a> {
    pub reference: Option<Text<'a>>,
    pub event: Option<Text<'a>>,
    pub subject: Option<Pairs<'a>>,
}

/// An operator's block.
#[derive(Debug, Default)]
pub struct BlockFields<'a> {
    pub policy: Option<Text<'a>>,
    pub subject: Option<Pairs<'a>>,
    pub span: Option<Text<'a>>,
    pub reason: Option<Text<'a>>,
}

/// A subject under one policy.
#[derive(Debug, Default)]
pub struct TargetFields<'a> {
    pub policy: Option<Text<'a>>,
    pub subject: Option<Pairs<'a>>,
}

impl CheckFields<'_> {
    /// A field of a check on a line that has no gate.
    pub fn stray(&self) -> Option<&'static str> {
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
        fields.into_iter().find(|(_, there)| *there).map(|(name, _)| name)
    }
}

impl<'de> Fields<'de> for LineFields<'de> {
    const OWNER: &'static str = "a line";
    const KNOWN: &'static str =
        "at, gate, subject, cost, ref, lists, outcome, after_ms, credit, block, unblock, reset";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        let check = &mut self.check;
        match name {
            "at" => leaf(map, name, &mut self.at),
            "gate" => leaf(map, name, &mut check.gate),
            "subject" => leaf(map, name, &mut check.subject),
            "cost" => leaf(map, name, &mut check.cost),
            "ref" => leaf(map, name, &mut check.reference),
            "lists" => leaf(map, name, &mut check.lists),
            "outcome" => object(map, name, &mut check.outcome),
            "after_ms" => leaf(map, name, &mut check.after_ms),
            "credit" => object(map, name, &mut self.credit),
            "block" => object(map, name, &mut self.block),
            "unblock" => leaf(map, name, &mut self.unblock),
            "reset" => leaf(map, name, &mut self.reset),
            _ => Ok(None),
        }
    }
}

impl<'de> Fields<'de> for OutcomeFields<'de> {
    const OWNER: &'static str = "`outcome`";
    const KNOWN: &'static str = "status, body, headers, cost";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        match name {
            "status" => leaf(map, "outcome.status", &mut self.status),
            "body" => leaf(map, "outcome.body", &mut self.body),
            "headers" => leaf(map, "outcome.headers", &mut self.headers),
            "cost" => leaf(map, "outcome.cost", &mut self.cost),
            "after_ms" => leaf(map, "outcome.after_ms", &mut self.after_ms),
            _ => Ok(None),
        }
    }
}

impl<'de> Fields<'de> for CreditFields<'de> {
    const OWNER: &'static str = "`credit`";
    const KNOWN: &'static str = "ref, event, subject";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        match name {
            "ref" => leaf(map, "credit.ref", &mut self.reference),
            "event" => leaf(map, "credit.event", &mut self.event),
            "subject" => leaf(map, "credit.subject", &mut self.subject),
            _ => Ok(None),
        }
    }
}

impl<'de> Fields<'de> for BlockFields<'de> {
    const OWNER: &'static str = "`block`";
    const KNOWN: &'static str = "policy, subject, for, reason";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        match name {
            "policy" => leaf(map, "block.policy", &mut self.policy),
            "subject" => leaf(map, "block.subject", &mut self.subject),
            "for" => leaf(map, "block.for", &mut self.span),
            "reason" => leaf(map, "block.reason", &mut self.reason),
            _ => Ok(None),
        }
    }
}

impl<'de> Fields<'de> for TargetFields<'de> {
    const OWNER: &'static str = "it";
    const KNOWN: &'static str = "policy, subject";

    fn take<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<Option<()>, A::Error> {
        match name {
            "policy" => leaf(map, "policy", &mut self.policy),
            "subject" => leaf(map, "subject", &mut self.subject),
            _ => Ok(None),
        }
    }
}
