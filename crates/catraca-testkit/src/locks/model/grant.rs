//! One grant of the lock model. Time does not change it: its state is computed for an instant.

use catraca_core::lock::id::LeaseKey;
use catraca_core::lock::requests::{Acquire, TimeRange};

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

#[derive(Clone)]
pub(super) struct Grant {
    pub key: LeaseKey,
    pub tenant: Option<String>,
    pub kind: String,
    /// Names, or calendars of a slot.
    pub things: Vec<String>,
    pub range: Option<TimeRange>,
    pub fence: i64,
    pub version: i64,
    pub since: i64,
    pub until: i64,
    pub hold_until: i64,
    pub confirmed: bool,
    /// How and when it was ended, other than by expiry.
    pub ended: Option<(&'static str, i64)>,
    pub cool_until: i64,
    /// The request id, with its tenant.
    pub request: Option<String>,
    /// The arguments of the request, to compare with a repetition.
    pub asked: String,
    /// Earlier grants of this lease, which expired before it was confirmed again.
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

    /// Whether it is still remembered: for a while after its end, so that late calls get a precise
    /// answer.
    pub fn is_remembered(&self, now: i64) -> bool {
        let kept = if self.range.is_some() { HOUR } else { MINUTE };
        match (self.ended, self.confirmed, self.range) {
            (Some((_, at)), ..) => now < at + kept,
            (None, true, Some(range)) => now < occupied_range(&range).1 + 7 * DAY,
            _ => now < self.until + kept,
        }
    }

    /// The conflict of an acquire of `key` with this grant, if any.
    pub fn conflict_with(&self, op: &Acquire, key: &str, now: i64) -> Option<String> {
        let same_kind = self.range.is_none()
            && self.tenant.as_deref() == op.tenant.as_deref()
            && self.kind == *op.kind;
        let has_name = same_kind && self.things.iter().any(|thing| thing == key);
        let cools = self.state(now) == "forced" && now < self.cool_until;
        let free = if cools { self.cool_until } else { self.until };
        let taken = has_name && (self.live(now) || cools);
        taken.then(|| format!("conflict {key} {} free {free}", self.describe()))
    }

    pub fn describe(&self) -> String {
        let until = if self.confirmed { "ever".to_owned() } else { self.until.to_string() };
        format!("#{} v{} {}..{until}", self.fence, self.version, self.since)
    }
}

/// The range of a slot with its buffers before and after.
pub(super) fn occupied_range(range: &TimeRange) -> (i64, i64) {
    let start = range.start.micros() - range.before.micros();
    (start.max(0), range.end.micros() + range.after.micros())
}
