//! One line of a history: a check with its outcome, an operator's act, or a credit.
//!
//! Parsing guarantees that an [`Event`] has an instant in range and exactly one kind. Texts are
//! borrowed from the line unless they have JSON escapes.

mod fields;
mod object;
#[cfg(test)]
mod tests;
mod text;

use catraca::{BlockProposal, Check, Outcome, Span, Subject, Time};
use catraca_core::request::validate_cost;
use catraca_core::time::parse_span;
use smallvec::SmallVec;

use fields::{BlockFields, CheckFields, CreditFields, LineFields, TargetFields};
use object::EventObject;
pub use text::EventText;

/// One line of a history.
#[derive(Debug)]
pub struct Event<'a> {
    /// The instant.
    pub at: At<'a>,
    /// The check or act.
    pub kind: EventKind<'a>,
}

/// An instant, and its notation in the line.
#[derive(Debug, PartialEq)]
pub struct At<'a> {
    /// The instant.
    pub time: Time,
    /// As the line writes it.
    pub written: TimeNotation<'a>,
}

/// How a line writes its instant; results use the same notation.
#[derive(Debug, PartialEq)]
pub enum TimeNotation<'a> {
    /// Milliseconds since the epoch.
    Millis(i64),
    /// RFC 3339.
    Text(EventText<'a>),
    /// The format of an access log; results use RFC 3339.
    Logged(Time),
}

/// The kinds of lines.
#[derive(Debug)]
pub enum EventKind<'a> {
    /// A check, possibly with its outcome.
    Check(CheckEvent<'a>),
    /// Anything else.
    Act(ActEvent<'a>),
}

/// A credit or an operator's act.
#[derive(Debug)]
pub enum ActEvent<'a> {
    /// A later event that gives units back.
    Credit(CreditEvent<'a>),
    /// An operator blocks a subject.
    Block(PolicySubject<'a>, BlockProposal),
    /// An operator releases a subject.
    Unblock(PolicySubject<'a>),
    /// An operator resets a subject's counters.
    Reset(PolicySubject<'a>),
}

/// A check and, if known, its outcome.
#[derive(Debug)]
pub struct CheckEvent<'a> {
    gate: EventText<'a>,
    subject: EventAttributes<'a>,
    cost: Option<i64>,
    reference: Option<EventText<'a>>,
    lists: bool,
    /// The outcome, and how long after the check it is reported.
    pub outcome: Option<(Outcome, Span)>,
}

/// A later event that gives units back.
#[derive(Debug)]
pub struct CreditEvent<'a> {
    /// The reference of the check.
    pub reference: EventText<'a>,
    /// The name of the event.
    pub event: EventText<'a>,
    subject: EventAttributes<'a>,
}

/// A subject under one policy.
#[derive(Debug)]
pub struct PolicySubject<'a> {
    /// The policy.
    pub policy: EventText<'a>,
    subject: EventAttributes<'a>,
}

/// Attributes and their values, in the order of the line.
pub type EventAttributes<'a> = SmallVec<[(EventText<'a>, EventText<'a>); 4]>;

impl<'a> Event<'a> {
    /// Parses a line; the error names the field or the column.
    pub fn read(line: &'a [u8]) -> Result<Self, String> {
        let EventObject(mut fields) =
            serde_json::from_slice::<EventObject<LineFields<'a>>>(line)
                .map_err(|error| with_format_hint(json_error_text(error), line))?;
        let at = fields.at.take().ok_or_else(|| missing("at"))?;
        Ok(Self { at, kind: fields.kind()? })
    }
}

impl<'a> LineFields<'a> {
    fn kind(self) -> Result<EventKind<'a>, String> {
        self.require_one_kind()?;
        let act = if let Some(credit) = self.credit {
            ActEvent::Credit(credit.0.read()?)
        } else if let Some(block) = self.block {
            block.0.read()?
        } else if let Some(target) = self.unblock {
            ActEvent::Unblock(target.0.read("unblock")?)
        } else if let Some(target) = self.reset {
            ActEvent::Reset(target.0.read("reset")?)
        } else {
            return self.check.read().map(EventKind::Check);
        };
        Ok(EventKind::Act(act))
    }

    fn require_one_kind(&self) -> Result<(), String> {
        let acts = [
            ("credit", self.credit.is_some()),
            ("block", self.block.is_some()),
            ("unblock", self.unblock.is_some()),
            ("reset", self.reset.is_some()),
        ];
        let gate = ("gate", self.check.gate.is_some());
        let mut present = acts.into_iter().chain([gate]).filter(|(_, present)| *present);
        match (present.next(), present.next(), self.check.misplaced_field()) {
            (None, ..) => {
                Err("`gate` is missing; or one of `credit`, `block`, `unblock`, `reset`".to_owned())
            }
            (Some((one, _)), Some((other, _)), _) => {
                Err(format!("a line has one kind, and this one has `{one}` and `{other}`"))
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
        // `after_ms` may be beside `outcome` or inside it.
        let inside = self.outcome.as_ref().and_then(|EventObject(outcome)| outcome.after_ms);
        if inside.is_some() && self.after_ms.is_some() {
            return Err("`after_ms` is given twice: beside `outcome` and inside it".to_owned());
        }
        let after = self.after_ms.or(inside).map_or(0, |after| after.0);
        let outcome = self.outcome.map(|EventObject(outcome)| outcome.read()).transpose()?;
        if outcome.is_none() && self.after_ms.is_some() {
            return Err(
                "`after_ms` is the delay of an outcome, and there is no `outcome`".to_owned()
            );
        }
        if after < 0 {
            return Err(format!(
                "`after_ms`: {after} is negative; an outcome cannot be before its check"
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
    fn read(self) -> Result<ActEvent<'a>, String> {
        let span = self.span.ok_or_else(|| missing("block.for"))?;
        let span = parse_span(&span).map_err(|error| format!("`block.for`: {error}"))?;
        let target = TargetFields { policy: self.policy, subject: self.subject }.read("block")?;
        let proposal = BlockProposal::by_operator(span, self.reason.as_deref());
        Ok(ActEvent::Block(target, proposal))
    }
}

impl<'a> TargetFields<'a> {
    fn read(self, kind: &str) -> Result<PolicySubject<'a>, String> {
        let policy = self.policy.ok_or_else(|| missing(&format!("{kind}.policy")))?;
        let subject = self.subject.ok_or_else(|| missing(&format!("{kind}.subject")))?.0;
        Ok(PolicySubject { policy, subject })
    }
}

impl fields::OutcomeFields<'_> {
    /// Validates the cost here, before the check of the line is charged.
    fn read(self) -> Result<Outcome, String> {
        let cost = self.cost.map(|cost| cost.0);
        cost.map_or(Ok(()), validate_cost).map_err(|error| format!("`outcome.cost`: {error}"))?;
        let headers = self.headers.map(|headers| headers.0).unwrap_or_default();
        let lower = |(name, value): (EventText<'_>, EventText<'_>)| {
            (name.to_ascii_lowercase(), value.to_string())
        };
        Ok(Outcome {
            status: self.status.map(|status| status.0),
            body: self.body.unwrap_or_default(),
            headers: headers.into_iter().map(lower).collect(),
            cost,
            ..Outcome::default()
        })
    }
}

/// What the route of a logged request says of its check.
pub struct RoutedCheck<'a> {
    /// The gate.
    pub gate: EventText<'a>,
    /// The cost, if the route has one.
    pub cost: Option<i64>,
    /// Whether the lists are consulted.
    pub lists: bool,
}

impl<'a> RoutedCheck<'a> {
    /// The check of a request without a route.
    pub fn of_gate(gate: EventText<'a>) -> Self {
        Self { gate, cost: None, lists: true }
    }
}

impl<'a> CheckEvent<'a> {
    /// A request of an access log: it was logged when it ended, so its outcome is due at once.
    pub fn from_log(
        routed: RoutedCheck<'a>,
        subject: EventAttributes<'a>,
        status: Option<u16>,
    ) -> Self {
        let outcome = Outcome { status, ..Outcome::default() };
        Self {
            gate: routed.gate,
            subject,
            cost: routed.cost,
            reference: None,
            lists: routed.lists,
            outcome: Some((outcome, Span::ZERO)),
        }
    }

    /// The check for the engine.
    pub fn check(&self) -> Check<'_> {
        let mut check = Check::new(&self.gate, subject(&self.subject));
        check.cost = self.cost;
        check.reference = self.reference.as_deref();
        check.lists = self.lists;
        check
    }
}

impl CreditEvent<'_> {
    /// The subject of the check.
    pub fn subject(&self) -> Subject<'_> {
        subject(&self.subject)
    }
}

impl PolicySubject<'_> {
    /// The subject.
    pub fn subject(&self) -> Subject<'_> {
        subject(&self.subject)
    }
}

fn subject<'s>(attributes: &'s EventAttributes<'_>) -> Subject<'s> {
    attributes.iter().map(|(name, value)| (&**name, &**value)).collect()
}

fn missing(field: &str) -> String {
    format!("`{field}` is missing")
}

/// Adds how to read an access log, if the line cannot be a JSON object.
fn with_format_hint(error: String, line: &[u8]) -> String {
    match line.trim_ascii_start().first() {
        Some(b'{') | None => error,
        Some(_) => format!("{error}; if this is an access log, add `--format combined`"),
    }
}

/// The message of a JSON error with the column only: each line is parsed alone, so serde's line
/// number is always 1.
pub fn json_error_text(error: serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&position).unwrap_or(&text);
    let kind = if error.is_data() { "" } else { "not JSON: " };
    format!("{kind}{what} (column {})", error.column())
}
