//! The results as JSON: the decision's own shape plus the instant and what came of the outcome.

use catraca::shape::{Shape, decision_fields};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::event::Written;
use super::sink::{Act, Checked, Settled};

/// A bad line.
#[derive(Serialize)]
pub struct Refused<'a> {
    /// Its number, counted from one.
    pub line: u64,
    /// What is wrong with it.
    pub error: &'a str,
}

/// What an operator's act came to.
pub struct Acted<'a> {
    /// When, as the line has it.
    pub at: &'a Written<'a>,
    /// What.
    pub act: &'a Act,
}

/// Whether an act changed anything, and if not, why.
#[derive(Serialize)]
struct Done {
    applied: bool,
    reason: Option<&'static str>,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Millis(millis) => serializer.serialize_i64(*millis),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Logged(time) => serializer.collect_str(time),
        }
    }
}

/// An outcome that is due later is left out: it comes last, and is added when it is known.
impl Serialize for Checked<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &self.at.written)?;
        decision_fields(self.decision, &mut map)?;
        match self.settled {
            Settled::NotGiven | Settled::Waiting => {}
            Settled::Ignored => map.serialize_entry("settled", &())?,
            Settled::Done(settlement) => map.serialize_entry("settled", &Shape(settlement))?,
        }
        map.end()
    }
}

impl Serialize for Acted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", self.at)?;
        match self.act {
            Act::Credit(credited) => map.serialize_entry("credit", &Shape(credited))?,
            Act::Block(moved) => map.serialize_entry("block", &done(*moved, "already_blocked"))?,
            Act::Unblock(stood) => map.serialize_entry("unblock", &done(*stood, "not_blocked"))?,
            Act::Reset => map.serialize_entry("reset", &done(true, ""))?,
        }
        map.end()
    }
}

fn done(applied: bool, else_reason: &'static str) -> Done {
    Done { applied, reason: (!applied).then_some(else_reason) }
}
