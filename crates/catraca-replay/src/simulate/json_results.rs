//! The JSON of results: a decision with the line's instant and its settlement, an act, or an error.

use catraca::json::{AsJson, decision_fields};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::event::TimeNotation;
use super::line_result::{ActResult, BadLine, CheckResult, SettleResult};

/// A bad line.
#[derive(Serialize)]
pub struct BadLineJson<'a> {
    /// Its number, from one.
    pub line: u64,
    /// Why it is bad.
    pub error: &'a str,
}

impl<'a> From<&'a BadLine> for BadLineJson<'a> {
    fn from(bad: &'a BadLine) -> Self {
        Self { line: bad.number, error: &bad.error }
    }
}

/// The result of a credit or an operator's act.
pub struct ActJson<'a> {
    /// The instant, in the line's notation.
    pub at: &'a TimeNotation<'a>,
    /// The result.
    pub act: &'a ActResult,
}

/// Whether an act changed state, and if not, why.
#[derive(Serialize)]
struct AppliedJson {
    applied: bool,
    reason: Option<&'static str>,
}

impl Serialize for TimeNotation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Millis(millis) => serializer.serialize_i64(*millis),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Logged(time) => serializer.collect_str(time),
        }
    }
}

/// `settled` is left out while an outcome is due: it is the last key, and `JsonLines` appends it
/// when the outcome is settled.
impl Serialize for CheckResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", self.at.written)?;
        decision_fields(&self.decision, &mut map)?;
        match &self.settled {
            SettleResult::NotGiven | SettleResult::Waiting => {}
            SettleResult::Ignored => map.serialize_entry("settled", &())?,
            SettleResult::Done(settlement) => {
                map.serialize_entry("settled", &AsJson(settlement))?
            }
        }
        map.end()
    }
}

impl Serialize for ActJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", self.at)?;
        match self.act {
            ActResult::Credit(credited) => map.serialize_entry("credit", &AsJson(credited))?,
            ActResult::Block(changed) => {
                map.serialize_entry("block", &applied_json(*changed, "already_blocked"))?
            }
            ActResult::Unblock(was_blocked) => {
                map.serialize_entry("unblock", &applied_json(*was_blocked, "not_blocked"))?
            }
            ActResult::Reset => map.serialize_entry("reset", &applied_json(true, ""))?,
        }
        map.end()
    }
}

fn applied_json(applied: bool, else_reason: &'static str) -> AppliedJson {
    AppliedJson { applied, reason: (!applied).then_some(else_reason) }
}
