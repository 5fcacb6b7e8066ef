//! Random traces of lock and slot operations, applied to a lock store and to the model, whose
//! answers must be equal.
//!
//! The store is core's `LockTable` or any other that executes the same operations. Few names, few
//! calendars and short times make conflicts and expiries frequent; some long times pass too.

mod describe;
mod requests;

use catraca_core::lock::id::{LeaseId, LeaseKey};
use catraca_core::lock::reply::{ConfirmReply, MoveReply, RenewReply};
use catraca_core::lock::requests::{AvailabilityQuery, Move, Proof, TimeRange};
use catraca_core::lock::terms::Durability;
use catraca_core::lock::{LockOp, LockOutcome, LockReply, LockTable};
use catraca_core::time::{Span, Time};

use super::model::LockModel;
use crate::generate::Rng;
use describe::{describe_conflict, describe_lease, wrong_reply};

/// The earliest start of slots. Their times are unrelated to the clock of the trace.
const SLOTS_START: i64 = 500;
/// Matters only to a store that may have lost leases, which none does during a trace.
const GRACE: Span = Span::from_secs(30);

/// A lock store under test.
pub trait LockDriver {
    /// Executes an operation at an instant.
    fn execute(&mut self, op: &LockOp, now: Time) -> LockReply;
}

impl LockDriver for LockTable {
    fn execute(&mut self, op: &LockOp, now: Time) -> LockReply {
        self.apply(op, now)
    }
}

/// The text of an operation, the answer of the store and the answer of the model. All are empty for
/// an operation whose random arguments are invalid.
type StepAnswers = (String, String, String);

struct LockTrace<'t> {
    rng: Rng,
    driver: &'t mut dyn LockDriver,
    model: LockModel,
    now: i64,
    /// The keys of all leases requested so far.
    keys: Vec<LeaseKey>,
    fences: Vec<i64>,
    /// The last acquire or hold with a request id.
    last_with_id: Option<LockOp>,
    next: u64,
}

/// Runs a random trace on core's `LockTable`; returns the first difference, if any.
pub fn run_trace(seed: u64, length: usize) -> Result<(), String> {
    run_trace_on(&mut LockTable::default(), 1_000_000, seed, length)
}

/// Runs a random trace on an empty store, from the instant `begin` in microseconds.
pub fn run_trace_on(
    driver: &mut dyn LockDriver,
    begin: i64,
    seed: u64,
    length: usize,
) -> Result<(), String> {
    let mut trace = LockTrace {
        rng: Rng::new(seed),
        driver,
        model: LockModel::default(),
        now: begin,
        keys: Vec::new(),
        fences: Vec::new(),
        last_with_id: None,
        next: 0,
    };
    for step in 0..length {
        trace.advance_clock();
        let (what, ours, theirs) = trace.step();
        if ours != theirs {
            return Err(format!("seed {seed} step {step} {what}\n rules {ours}\n model {theirs}"));
        }
    }
    Ok(())
}

impl LockTrace<'_> {
    fn execute(&mut self, op: &LockOp) -> LockOutcome {
        let reply = self.driver.execute(op, self.at());
        assert_eq!(reply.now, self.at(), "the store uses the given instant");
        reply.outcome
    }

    fn advance_clock(&mut self) {
        // Longer than ended names, ended slots, versions and confirmed slots are remembered: a
        // minute, an hour, a day and a week.
        let long = [61_000_000, 3_700_000_000, 90_000_000_000, 700_000_000_000];
        self.now += match self.rng.within(0, 99) {
            0..40 => 0,
            40..97 => self.rng.within(1, 12),
            _ => self.rng.pick(&long),
        };
    }

    fn at(&self) -> Time {
        Time::from_micros(self.now)
    }

    fn step(&mut self) -> StepAnswers {
        match self.rng.within(0, 99) {
            0..24 => self.acquire(),
            24..48 => self.hold(),
            48..56 => self.renew(),
            56..66 => self.end(),
            66..76 => self.confirm(),
            76..84 => self.relocate(),
            84..87 => self.force(),
            87..88 => self.undo(),
            88..90 => self.clear(),
            90..95 => self.look(),
            95..97 => self.list(),
            _ => self.counts(),
        }
    }

    fn tenant(&mut self) -> Option<Box<str>> {
        self.rng.pick(&[None, None, Some("a".into()), Some("b".into())])
    }

    fn names(&mut self) -> Vec<Box<str>> {
        let mut names: Vec<Box<str>> = vec![self.rng.pick(&["p", "q", "r"]).into()];
        if self.rng.chance(25) {
            names.push(self.rng.pick(&["x", "y"]).into());
        }
        names
    }

    fn range(&mut self) -> TimeRange {
        let start = SLOTS_START + self.rng.within(0, 40);
        let end = start + self.rng.within(1, 12);
        let buffer =
            |rng: &mut Rng| Span::from_micros(rng.maybe(30, |d| d.within(1, 3)).unwrap_or(0));
        let before = buffer(&mut self.rng);
        let after = buffer(&mut self.rng);
        TimeRange { start: Time::from_micros(start), end: Time::from_micros(end), before, after }
    }

    fn proof(&mut self) -> Proof {
        let recent = self.keys.len().saturating_sub(12);
        let key = match self.keys.len() {
            0 => LeaseId::from_bytes([255; 16]).key(),
            // A key that was never granted.
            _ if self.rng.chance(3) => LeaseId::from_bytes([254; 16]).key(),
            _ => self.rng.pick(&self.keys[recent..]),
        };
        let tenant: Option<Box<str>> = self.rng.maybe(10, |rng| rng.pick(&["a", "b"]).into());
        Proof { key, tenant }
    }

    fn renew(&mut self) -> StepAnswers {
        let proof = self.proof();
        let ttl = Span::from_micros(self.rng.within(1, 30));
        let theirs = self.model.renew(&proof, ttl, self.now);
        let durability = Durability::Memory;
        let op = LockOp::Renew { proof, ttl, durability, grace: Span::ZERO };
        let ours = match self.execute(&op) {
            LockOutcome::Renewed(RenewReply::Extended(view)) => {
                format!("extended {}", describe_lease(&view))
            }
            LockOutcome::Renewed(RenewReply::AtMost(view)) => {
                format!("at most {}", describe_lease(&view))
            }
            LockOutcome::Renewed(RenewReply::Over(state)) => format!("over {}", state.as_str()),
            LockOutcome::Renewed(RenewReply::NotHolder) => "not_holder".to_owned(),
            _ => wrong_reply(),
        };
        (format!("{op:?}"), ours, theirs)
    }

    fn end(&mut self) -> StepAnswers {
        let proof = self.proof();
        let slot = self.rng.chance(50);
        let theirs = self.model.end(&proof, slot, self.now);
        let op = if slot { LockOp::Cancel(proof) } else { LockOp::Release(proof) };
        let LockOutcome::Ended(ours) = self.execute(&op) else {
            return (wrong_reply(), wrong_reply(), String::new());
        };
        (format!("{op:?}"), ours.as_str().to_owned(), theirs)
    }

    fn confirm(&mut self) -> StepAnswers {
        let proof = self.proof();
        let again = self.rng.chance(40);
        let theirs = self.model.confirm(&proof, again, self.now);
        let op = LockOp::Confirm { proof, again, grace: GRACE };
        let ours = match self.execute(&op) {
            LockOutcome::Confirmed(ConfirmReply::Done(view)) => {
                format!("confirmed {}", describe_lease(&view))
            }
            LockOutcome::Confirmed(ConfirmReply::Over { state, still_free }) => {
                format!("over {} free {still_free}", state.as_str())
            }
            LockOutcome::Confirmed(ConfirmReply::NotHolder) => "not_holder".to_owned(),
            _ => wrong_reply(),
        };
        (format!("{op:?}"), ours, theirs)
    }

    fn relocate(&mut self) -> StepAnswers {
        let calendars = self.rng.chance(30).then(|| self.names());
        let range = self.range();
        let proof = self.proof();
        let to = Move::new(proof, range.start, range.end);
        let op = Move { calendars, grace: GRACE, ..to };
        let Ok(op) = op.validate(Span::from_secs(1)) else { return StepAnswers::default() };
        let theirs = self.model.relocate(&op, self.now);
        let op = LockOp::Relocate(op);
        let ours = match self.execute(&op) {
            LockOutcome::Moved(MoveReply::Done(view)) => {
                self.fences.push(view.fence);
                format!("moved {}", describe_lease(&view))
            }
            LockOutcome::Moved(MoveReply::Conflict(conflict)) => describe_conflict(&conflict),
            LockOutcome::Moved(MoveReply::Over(state)) => format!("over {}", state.as_str()),
            LockOutcome::Moved(MoveReply::NotHolder) => "not_holder".to_owned(),
            _ => wrong_reply(),
        };
        (format!("{op:?}"), ours, theirs)
    }

    fn force(&mut self) -> StepAnswers {
        let recent = self.fences.len().saturating_sub(8);
        let fence = if self.fences.is_empty() { 7 } else { self.rng.pick(&self.fences[recent..]) };
        let cool = Span::from_micros(self.rng.within(0, 9));
        let theirs = self.model.force(fence, cool, self.now);
        let op = LockOp::Force { fence, tenant: None, cool_down: cool };
        let LockOutcome::Forced(forced) = self.execute(&op) else {
            return (wrong_reply(), wrong_reply(), String::new());
        };
        let ours =
            forced.map_or("nothing".to_owned(), |view| format!("forced {}", describe_lease(&view)));
        (format!("force {fence}"), ours, theirs)
    }

    fn undo(&mut self) -> StepAnswers {
        let key = self.proof().key;
        self.model.undo(key, self.now);
        let outcome = self.execute(&LockOp::Undo(key));
        (format!("undo {key:?}"), format!("{outcome:?}"), "Done".to_owned())
    }

    fn clear(&mut self) -> StepAnswers {
        let tenant = self.tenant();
        let theirs = self.model.clear(tenant.as_deref(), self.now);
        let mut count = 0;
        let mut next = Some(0);
        let mut last = None;
        while let Some(after) = next {
            let op = LockOp::Clear { tenant: tenant.clone(), after, upto: last, most: 2 };
            let LockOutcome::Cleared { ended, next: on, upto } = self.execute(&op) else { break };
            count += ended;
            next = on;
            last = Some(upto);
        }
        (format!("clear {tenant:?}"), format!("cleared {count}"), theirs)
    }

    fn look(&mut self) -> StepAnswers {
        let from = SLOTS_START - 5 + self.rng.within(0, 40);
        let min_length = self.rng.within(0, 6);
        let op = AvailabilityQuery {
            tenant: self.tenant(),
            calendar: self.rng.pick(&["p", "q", "x"]).into(),
            from: Time::from_micros(from),
            to: Time::from_micros(from + self.rng.within(1, 60)),
            min_length: Span::from_micros(min_length.max(1)),
            excluded_lease: self.rng.chance(20).then(|| self.proof().key),
        };
        let theirs = self.model.look(&op, self.now);
        let op = LockOp::Availability(op);
        let LockOutcome::Availability(seen) = self.execute(&op) else {
            return (wrong_reply(), wrong_reply(), String::new());
        };
        let free: Vec<_> = seen.free.iter().map(|gap| (gap.0.micros(), gap.1.micros())).collect();
        (format!("{op:?}"), format!("free {free:?}"), theirs)
    }

    fn list(&mut self) -> StepAnswers {
        let theirs = self.model.list(self.now);
        let mut listed = Vec::new();
        let mut next = Some(0);
        while let Some(after) = next {
            let LockOutcome::Listed { leases, next: on } =
                self.execute(&LockOp::List { after, most: 3 })
            else {
                break;
            };
            listed.extend(leases.iter().map(describe_lease));
            next = on;
        }
        ("list".to_owned(), format!("{listed:?}"), theirs)
    }

    fn counts(&mut self) -> StepAnswers {
        let theirs = self.model.counts(self.now);
        while self.execute(&LockOp::Sweep) == (LockOutcome::Swept { more: true }) {}
        let LockOutcome::Counters(rows) = self.execute(&LockOp::Counters) else {
            return (wrong_reply(), wrong_reply(), String::new());
        };
        let rows = rows.into_iter().map(|((tenant, kind), row)| {
            let own = (tenant.as_deref().map(str::to_owned), kind.to_string());
            let all = [row.success, row.conflicts, row.active, row.released, row.expired];
            let mut all: Vec<u64> = all.into_iter().chain([row.forced]).collect();
            // Every success is active or has ended in one of the counted ways. An extra number
            // makes a row that does not add up differ from the model's.
            let adds_up = row.success == all[2..].iter().sum::<u64>();
            all.extend((!adds_up).then_some(u64::MAX));
            (own, all)
        });
        let rows: std::collections::BTreeMap<_, _> = rows.collect();
        ("counts".to_owned(), format!("{rows:?}"), theirs)
    }
}
