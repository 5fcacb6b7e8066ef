//! One grant, as the second opinion remembers it: never changed by time, only read at an instant.
//!
//! Must not know of others.

use catraca_core::lock::id::LeaseKey;
use catraca_core::lock::op::{Acquire, Range};

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

#[derive(Clone)]
pub(super) struct Grant {
    pub key: LeaseKey,
    pub tenant: Option<String>,
    pub kind: String,
    pub things: Vec<String>,
    pub range: Option<Range>,
    pub fence: i64,
    pub version: i64,
    pub since: i64,
    pub until: i64,
    pub hold_until: i64,
    pub confirmed: bool,
    pub ended: Option<(&'static str, i64)>,
    pub cool_until: i64,
    pub request: Option<String>,
    pub asked: String,
    /// Grants of this entry before the present one, which all expired.
    pub expired_before: u64,
}

impl Grant {
    pub fn state(&self, now: i64) -> &'static str {
        match self.ended {
            Some((how, _)) => how,
            None if self.confirmed => "confirmed",
            None if now < self.until => "held",
            None => "expired",
        }
    }

    pub fn live(&self, now: i64) -> bool {
        matches!(self.state(now), "held" | "confirmed")
    }

    /// Whether anybody still knows of it.
    pub fn known(&self, now: i64) -> bool {
        let kept = if self.range.is_some() { HOUR } else { MINUTE };
        match (self.ended, self.confirmed, self.range) {
            (Some((_, at)), ..) => now < at + kept,
            (None, true, Some(range)) => now < taken(&range).1 + 7 * DAY,
            _ => now < self.until + kept,
        }
    }

    /// What is said to whoever wants a name of it.
    pub fn met(&self, op: &Acquire, key: &str, now: i64) -> Option<String> {
        let whose = (self.range.is_none(), self.tenant.as_deref(), self.kind.as_str());
        let about = whose == (true, op.tenant.as_deref(), &*op.kind)
            && self.things.iter().any(|thing| thing == key);
        let cools = self.state(now) == "forced" && now < self.cool_until;
        let free = if cools { self.cool_until } else { self.until };
        let taken = about && (self.live(now) || cools);
        taken.then(|| format!("conflict {key} {} free {free}", self.shown()))
    }

    pub fn shown(&self) -> String {
        let until = if self.confirmed { "ever".to_owned() } else { self.until.to_string() };
        format!("#{} v{} {}..{until}", self.fence, self.version, self.since)
    }
}

pub(super) fn taken(range: &Range) -> (i64, i64) {
    let start = range.start.micros() - range.before.micros();
    (start.max(0), range.end.micros() + range.after.micros())
}
