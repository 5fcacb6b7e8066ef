//! One line of a history: a check with what came of it, an operator's act, or a late event.
//!
//! Parse, do not validate: an [`Event`] that exists has an instant in range and exactly one kind.
//! Texts are borrowed from the line where JSON allows it. Must not touch the engine.

mod fields;
mod object;
#[cfg(test)]
mod tests;
mod text;

use catraca::{BlockOrder, Check, Outcome, Span, Subject, Time};
use catraca_core::request::{DEFAULT_NAMESPACE, cost_in_bounds};
use catraca_core::time::parse_span;
use smallvec::SmallVec;

use fields::{BlockFields, CheckFields, CreditFields, LineFields, TargetFields};
use object::Object;
pub use text::Text;

/// One line of a history.
#[derive(Debug)]
pub struct Event<'a> {
    /// When.
    pub at: At<'a>,
    /// What.
    pub kind: Kind<'a>,
}

/// An instant, and how it was written.
#[derive(Debug, PartialEq)]
pub struct At<'a> {
    /// The instant.
    pub time: Time,
    /// What the line says.
    pub written: Written<'a>,
}

/// How an instant was written; answers show it the same way.
#[derive(Debug, PartialEq)]
pub enum Written<'a> {
    /// Milliseconds since the epoch.
    Millis(i64),
    /// RFC 3339.
    Text(Text<'a>),
    /// A server's log, in a way of its own; shown as RFC 3339.
    Logged(Time),
}

/// What a line is about.
#[derive(Debug)]
pub enum Kind<'a> {
    /// May this caller pass, and what came of it.
    Check(CheckEvent<'a>),
    /// A late event that gives back.
    Credit(CreditEvent<'a>),
    /// An operator blocks.
    Block(BlockEvent<'a>),
    /// An operator releases.
    Unblock(Target<'a>),
    /// An operator forgets.
    Reset(Target<'a>),
}

/// A check and, if known, its outcome.
#[derive(Debug)]
pub struct CheckEvent<'a> {
    gate: Text<'a>,
    subject: Attributes<'a>,
    cost: Option<i64>,
    reference: Option<Text<'a>>,
    lists: bool,
    /// What happened next, and how long after the check.
    pub outcome: Option<(Outcome, Span)>,
}

/// A late event.
#[derive(Debug)]
pub struct CreditEvent<'a> {
    /// The check it speaks of.
    pub reference: Text<'a>,
    /// Its name.
    pub event: Text<'a>,
    subject: Attributes<'a>,
}

/// An operator's block.
#[derive(Debug)]
pub struct BlockEvent<'a> {
    /// Whom, under which policy.
    pub target: Target<'a>,
    /// How long.
    pub span: Span,
    /// Why.
    pub reason: Option<Text<'a>>,
}

/// A subject under one policy.
#[derive(Debug)]
pub struct Target<'a> {
    /// The policy.
    pub policy: Text<'a>,
    subject: Attributes<'a>,
}

/// Attributes and their values, as the line has them.
pub type Attributes<'a> = SmallVec<[(Text<'a>, Text<'a>); 4]>;

impl<'a> Event<'a> {
    /// Reads a line; the error says what is wrong with it, and where.
    pub fn read(line: &'a [u8]) -> Result<Self, String> {
        let Object(mut fields) =
            serde_json::from_slice::<Object<LineFields<'a>>>(line).map_err(said)?;
        let at = fields.at.take().ok_or_else(|| missing("at"))?;
        Ok(Self { at, kind: fields.kind()? })
    }
}

impl<'a> LineFields<'a> {
    fn kind(self) -> Result<Kind<'a>, String> {
        self.about_one_thing()?;
        if let Some(credit) = self.credit {
            return credit.0.read().map(Kind::Credit);
        }
        if let Some(block) = self.block {
            return block.0.read().map(Kind::Block);
        }
        if let Some(target) = self.unblock {
            return target.0.read("unblock").map(Kind::Unblock);
        }
        if let Some(target) = self.reset {
            return target.0.read("reset").map(Kind::Reset);
        }
        self.check.read().map(Kind::Check)
    }

    fn about_one_thing(&self) -> Result<(), String> {
        let acts = [
            ("credit", self.credit.is_some()),
            ("block", self.block.is_some()),
            ("unblock", self.unblock.is_some()),
            ("reset", self.reset.is_some()),
        ];
        let gate = ("gate", self.check.gate.is_some());
        let mut there = acts.into_iter().chain([gate]).filter(|(_, there)| *there);
        match (there.next(), there.next(), self.check.stray()) {
            (None, ..) => {
                Err("`gate` is missing; or one of `credit`, `block`, `unblock`, `reset`".to_owned())
            }
            (Some((one, _)), Some((other, _)), _) => {
                Err(format!("a line is about one thing, and this one has `{one}` and `{other}`"))
            }
            (Some((one, _)), None, Some(field)) => {
                Err(format!("`{field}` belongs to a check, and this line is a `{one}`"))
            }
            _ => Ok(()),
        }
    }
}

impl<'a> CheckFields<'a> {
    fn read(self) -> Result<CheckEvent<'a>, String> {
        let gate = self.gate.ok_or_else(|| missing("gate"))?;
        let subject = self.subject.ok_or_else(|| missing("subject"))?.0;
        let inside = self.outcome.as_ref().and_then(|Object(outcome)| outcome.after_ms);
        if inside.is_some() && self.after_ms.is_some() {
            return Err("`after_ms` is there twice: beside `outcome` and inside it".to_owned());
        }
        let after = self.after_ms.or(inside).map_or(0, |after| after.0);
        let outcome = self.outcome.map(|Object(outcome)| outcome.read()).transpose()?;
        if outcome.is_none() && self.after_ms.is_some() {
            return Err(
                "`after_ms` says when an outcome comes, and there is no `outcome`".to_owned()
            );
        }
        if after < 0 {
            return Err(format!(
                "`after_ms`: {after} is negative; an outcome comes after its check"
            ));
        }
        Ok(CheckEvent {
            gate,
            subject,
            cost: self.cost.map(|cost| cost.0),
            reference: self.reference,
            lists: self.lists.unwrap_or(true),
            outcome: outcome.map(|outcome| (outcome, Span::from_millis(after))),
        })
    }
}

impl<'a> CreditFields<'a> {
    fn read(self) -> Result<CreditEvent<'a>, String> {
        Ok(CreditEvent {
            reference: self.reference.ok_or_else(|| missing("credit.ref"))?,
            event: self.event.ok_or_else(|| missing("credit.event"))?,
            subject: self.subject.ok_or_else(|| missing("credit.subject"))?.0,
        })
    }
}

impl<'a> BlockFields<'a> {
    fn read(self) -> Result<BlockEvent<'a>, String> {
        let span = self.span.ok_or_else(|| missing("block.for"))?;
        let span = parse_span(&span).map_err(|error| format!("`block.for`: {error}"))?;
        let target = TargetFields { policy: self.policy, subject: self.subject }.read("block")?;
        Ok(BlockEvent { target, span, reason: self.reason })
    }
}

impl<'a> TargetFields<'a> {
    fn read(self, kind: &str) -> Result<Target<'a>, String> {
        let policy = self.policy.ok_or_else(|| missing(&format!("{kind}.policy")))?;
        let subject = self.subject.ok_or_else(|| missing(&format!("{kind}.subject")))?.0;
        Ok(Target { policy, subject })
    }
}

impl fields::OutcomeFields<'_> {
    /// Costs are refused here, before the check they belong to is charged.
    fn read(self) -> Result<Outcome, String> {
        let cost = self.cost.map(|cost| cost.0);
        cost.map_or(Ok(()), cost_in_bounds).map_err(|error| format!("`outcome.cost`: {error}"))?;
        let headers = self.headers.map(|headers| headers.0).unwrap_or_default();
        let lower =
            |(name, value): (Text<'_>, Text<'_>)| (name.to_ascii_lowercase(), value.to_string());
        Ok(Outcome {
            status: self.status.map(|status| status.0),
            body: self.body.unwrap_or_default(),
            headers: headers.into_iter().map(lower).collect(),
            cost,
            ..Outcome::default()
        })
    }
}

impl<'a> CheckEvent<'a> {
    /// A request of an access log, which was over when it was written.
    pub fn logged(gate: Text<'a>, subject: Attributes<'a>, status: Option<u16>) -> Self {
        let outcome = Outcome { status, ..Outcome::default() };
        let (cost, reference, lists) = (None, None, true);
        Self { gate, subject, cost, reference, lists, outcome: Some((outcome, Span::ZERO)) }
    }

    /// The check as the engine takes it.
    pub fn check(&self) -> Check<'_> {
        let mut check = Check::new(&self.gate, subject(&self.subject));
        check.cost = self.cost;
        check.reference = self.reference.as_deref();
        check.lists = self.lists;
        check
    }
}

impl CreditEvent<'_> {
    /// Whose check it was.
    pub fn subject(&self) -> Subject<'_> {
        subject(&self.subject)
    }
}

impl BlockEvent<'_> {
    /// The block as the engine takes it.
    pub fn order(&self) -> BlockOrder<'_> {
        BlockOrder {
            namespace: DEFAULT_NAMESPACE,
            policy: &self.target.policy,
            subject: self.target.subject(),
            span: self.span,
            reason: self.reason.as_deref(),
        }
    }
}

impl Target<'_> {
    /// Whom it is about.
    pub fn subject(&self) -> Subject<'_> {
        subject(&self.subject)
    }
}

fn subject<'s>(attributes: &'s Attributes<'_>) -> Subject<'s> {
    attributes.iter().map(|(name, value)| (&**name, &**value)).collect()
}

fn missing(field: &str) -> String {
    format!("`{field}` is missing")
}

/// What the JSON reader says, with the column alone: a line has no second line.
pub fn said(error: serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&place).unwrap_or(&text);
    let kind = if error.is_data() { "" } else { "not JSON: " };
    format!("{kind}{what} (column {})", error.column())
}
