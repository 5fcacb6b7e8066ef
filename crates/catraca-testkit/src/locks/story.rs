//! Random stories of locks and slots, told to a store and to the model: both must say the same.
//!
//! The store is the rules themselves, or any other that applies the same operations.
//! Must reach every branch often: few names, few calendars, short times and sometimes long ones.

use catraca_core::lock::id::{LeaseId, LeaseKey};
use catraca_core::lock::op::{Acquire, Hold, Look, Move, Proof, Range, Wanted};
use catraca_core::lock::reply::{Acquired, Confirmed, Conflict, Moved, Renewed, State, View};
use catraca_core::lock::terms::VersionPolicy;
use catraca_core::lock::{Book, LockOp, LockReply, LockTold};
use catraca_core::time::{Span, Time};

use super::model::Model;
use crate::generate::Dice;

/// Where calendars begin; the times of slots need not be those of the story.
const NOON: i64 = 500;
/// Matters only once a store may have lost leases, which it does not in a story.
const GRACE: Span = Span::from_secs(30);

/// Where a story is told.
pub trait Teller {
    /// Does an operation at an instant.
    fn ask(&mut self, op: &LockOp, now: Time) -> LockReply;
}

impl Teller for Book {
    fn ask(&mut self, op: &LockOp, now: Time) -> LockReply {
        self.apply(op, now)
    }
}

struct Story<'t> {
    dice: Dice,
    teller: &'t mut dyn Teller,
    model: Model,
    now: i64,
    /// Leases that were ever asked for.
    keys: Vec<LeaseKey>,
    fences: Vec<i64>,
    next: u64,
}

/// Tells a story of so many operations; the first difference, if there is one.
pub fn story(seed: u64, length: usize) -> Result<(), String> {
    story_on(&mut Book::default(), 1_000_000, seed, length)
}

/// The same on a store that knows nothing yet, from an instant on.
pub fn story_on(
    teller: &mut dyn Teller,
    begin: i64,
    seed: u64,
    length: usize,
) -> Result<(), String> {
    let mut story = Story {
        dice: Dice::new(seed),
        teller,
        model: Model::default(),
        now: begin,
        keys: Vec::new(),
        fences: Vec::new(),
        next: 0,
    };
    for step in 0..length {
        story.pass();
        let (what, ours, theirs) = story.step();
        if ours != theirs {
            return Err(format!("seed {seed} step {step} {what}\n rules {ours}\n model {theirs}"));
        }
    }
    Ok(())
}

impl Story<'_> {
    fn ask(&mut self, op: &LockOp) -> LockTold {
        let reply = self.teller.ask(op, self.at());
        assert_eq!(reply.now, self.at(), "time goes on as it was told");
        reply.told
    }

    fn pass(&mut self) {
        let long = [61_000_000, 3_700_000_000, 90_000_000_000, 700_000_000_000];
        self.now += match self.dice.within(0, 99) {
            0..40 => 0,
            40..97 => self.dice.within(1, 12),
            _ => self.dice.pick(&long),
        };
    }

    fn at(&self) -> Time {
        Time::from_micros(self.now)
    }

    fn step(&mut self) -> (String, String, String) {
        match self.dice.within(0, 99) {
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
        self.dice.pick(&[None, None, Some("a".into()), Some("b".into())])
    }

    fn names(&mut self) -> Vec<Box<str>> {
        let mut names: Vec<Box<str>> = vec![self.dice.pick(&["p", "q", "r"]).into()];
        if self.dice.chance(25) {
            names.push(self.dice.pick(&["x", "y"]).into());
        }
        names
    }

    fn wanted(&mut self, tenant: Option<&str>) -> Wanted {
        let request: Option<Box<str>> =
            self.dice.maybe(15, |dice| dice.pick(&["m", "n", "o"]).into());
        self.next += 1;
        let mut bytes = [0; 16];
        match &request {
            Some(name) => {
                bytes[0] = name.as_bytes()[0];
                bytes[1] = tenant.map_or(0, |tenant| tenant.as_bytes()[0]);
            }
            None => bytes[8..].copy_from_slice(&self.next.to_be_bytes()),
        }
        let key = LeaseId::from_bytes(bytes).key();
        self.keys.push(key);
        let ttl = Span::from_micros(self.dice.within(1, 30));
        let hold_max = Span::from_micros(self.dice.within(20, 60));
        let version = self.dice.maybe(40, |dice| dice.within(0, 9));
        Wanted { request, version, ..Wanted::new(key, ttl, hold_max) }
    }

    fn range(&mut self) -> Range {
        let start = NOON + self.dice.within(0, 40);
        let end = start + self.dice.within(1, 12);
        let buffer =
            |dice: &mut Dice| Span::from_micros(dice.maybe(30, |d| d.within(1, 3)).unwrap_or(0));
        let (before, after) = (buffer(&mut self.dice), buffer(&mut self.dice));
        Range { start: Time::from_micros(start), end: Time::from_micros(end), before, after }
    }

    fn proof(&mut self) -> Proof {
        let recent = self.keys.len().saturating_sub(12);
        let key = match self.keys.len() {
            0 => LeaseId::from_bytes([255; 16]).key(),
            _ if self.dice.chance(3) => LeaseId::from_bytes([254; 16]).key(),
            _ => self.dice.pick(&self.keys[recent..]),
        };
        let tenant: Option<Box<str>> = self.dice.maybe(10, |dice| dice.pick(&["a", "b"]).into());
        Proof { key, tenant }
    }

    fn granted(&mut self, op: &LockOp, tenant: Option<&str>, kind: &str) -> String {
        let LockTold::Acquired(answer) = self.ask(op) else { return odd() };
        match answer {
            Acquired::Granted(view) => {
                self.fences.push(view.fence);
                format!("granted {}", shown(&view))
            }
            Acquired::Again(view) => format!("again {}", shown(&view)),
            Acquired::Conflict(conflict) => {
                self.model.missed(tenant, kind);
                told(&conflict)
            }
            Acquired::Stale { name, last } => {
                self.model.missed(tenant, kind);
                format!("stale {} {last}", name.key)
            }
            Acquired::Refused(refusal) => format!("refused {}", refusal.code()),
        }
    }

    fn acquire(&mut self) -> (String, String, String) {
        let (tenant, keys) = (self.tenant(), self.names());
        let lease = self.wanted(tenant.as_deref());
        let monotonic = lease.version.is_some() && self.dice.chance(60);
        let policy = if monotonic { VersionPolicy::Monotonic } else { VersionPolicy::Opaque };
        let kind = self.dice.pick(&["payment", "resource"]).into();
        let op = Acquire { tenant, kind, keys, lease, policy }.checked();
        let Ok(op) = op else { return (String::new(), String::new(), String::new()) };
        let theirs = self.model.acquire(&op, self.now);
        let (tenant, kind) = (op.tenant.clone(), op.kind.clone());
        let op = LockOp::Acquire { asked: op, counts: true };
        let ours = self.granted(&op, tenant.as_deref(), &kind);
        (format!("{op:?}"), ours, theirs)
    }

    fn hold(&mut self) -> (String, String, String) {
        let (tenant, calendars) = (self.tenant(), self.names());
        let lease = self.wanted(tenant.as_deref());
        let op = Hold { tenant, kind: "slot".into(), calendars, range: self.range(), lease };
        let Ok(op) = op.checked(Span::from_secs(1)) else {
            return (String::new(), String::new(), String::new());
        };
        let theirs = self.model.hold(&op, self.now);
        let (tenant, kind) = (op.tenant.clone(), op.kind.clone());
        let op = LockOp::Hold(op);
        let ours = self.granted(&op, tenant.as_deref(), &kind);
        (format!("{op:?}"), ours, theirs)
    }

    fn renew(&mut self) -> (String, String, String) {
        let (proof, ttl) = (self.proof(), Span::from_micros(self.dice.within(1, 30)));
        let theirs = self.model.renew(&proof, ttl, self.now);
        let op = LockOp::Renew { proof, ttl };
        let ours = match self.ask(&op) {
            LockTold::Renewed(Renewed::Extended(view)) => format!("extended {}", shown(&view)),
            LockTold::Renewed(Renewed::AtMost(view)) => format!("at most {}", shown(&view)),
            LockTold::Renewed(Renewed::Over(state)) => format!("over {}", state.as_str()),
            LockTold::Renewed(Renewed::NotHolder) => "not_holder".to_owned(),
            _ => odd(),
        };
        (format!("{op:?}"), ours, theirs)
    }

    fn end(&mut self) -> (String, String, String) {
        let (proof, slot) = (self.proof(), self.dice.chance(50));
        let theirs = self.model.end(&proof, slot, self.now);
        let op = if slot { LockOp::Cancel(proof) } else { LockOp::Release(proof) };
        let LockTold::Ended(ours) = self.ask(&op) else { return (odd(), odd(), String::new()) };
        (format!("{op:?}"), ours.as_str().to_owned(), theirs)
    }

    fn confirm(&mut self) -> (String, String, String) {
        let (proof, again) = (self.proof(), self.dice.chance(40));
        let theirs = self.model.confirm(&proof, again, self.now);
        let op = LockOp::Confirm { proof, again, grace: GRACE };
        let ours = match self.ask(&op) {
            LockTold::Confirmed(Confirmed::Done(view)) => format!("confirmed {}", shown(&view)),
            LockTold::Confirmed(Confirmed::Over { state, still_free }) => {
                format!("over {} free {still_free}", state.as_str())
            }
            LockTold::Confirmed(Confirmed::NotHolder) => "not_holder".to_owned(),
            _ => odd(),
        };
        (format!("{op:?}"), ours, theirs)
    }

    fn relocate(&mut self) -> (String, String, String) {
        let calendars = self.dice.chance(30).then(|| self.names());
        let range = self.range();
        let (start, end) = (range.start, range.end);
        let op = Move { proof: self.proof(), calendars, start, end, grace: GRACE };
        let Ok(op) = op.checked(Span::from_secs(1)) else {
            return (String::new(), String::new(), String::new());
        };
        let theirs = self.model.relocate(&op, self.now);
        let op = LockOp::Relocate(op);
        let ours = match self.ask(&op) {
            LockTold::Moved(Moved::Done(view)) => {
                self.fences.push(view.fence);
                format!("moved {}", shown(&view))
            }
            LockTold::Moved(Moved::Conflict(conflict)) => told(&conflict),
            LockTold::Moved(Moved::Over(state)) => format!("over {}", state.as_str()),
            LockTold::Moved(Moved::NotHolder) => "not_holder".to_owned(),
            _ => odd(),
        };
        (format!("{op:?}"), ours, theirs)
    }

    fn force(&mut self) -> (String, String, String) {
        let recent = self.fences.len().saturating_sub(8);
        let fence = if self.fences.is_empty() { 7 } else { self.dice.pick(&self.fences[recent..]) };
        let cool = Span::from_micros(self.dice.within(0, 9));
        let theirs = self.model.force(fence, cool, self.now);
        let op = LockOp::Force { fence, tenant: None, cool_down: cool };
        let LockTold::Forced(forced) = self.ask(&op) else { return (odd(), odd(), String::new()) };
        let ours = forced.map_or("nothing".to_owned(), |view| format!("forced {}", shown(&view)));
        (format!("force {fence}"), ours, theirs)
    }

    fn undo(&mut self) -> (String, String, String) {
        let key = self.proof().key;
        self.model.undo(key, self.now);
        let told = self.ask(&LockOp::Undo(key));
        (format!("undo {key:?}"), format!("{told:?}"), "Done".to_owned())
    }

    fn clear(&mut self) -> (String, String, String) {
        let tenant = self.tenant();
        let theirs = self.model.clear(tenant.as_deref(), self.now);
        let (mut count, mut next, mut last) = (0, Some(0), None);
        while let Some(after) = next {
            let op = LockOp::Clear { tenant: tenant.clone(), after, upto: last, most: 2 };
            let LockTold::Cleared { ended, next: on, upto } = self.ask(&op) else { break };
            count += ended;
            (next, last) = (on, Some(upto));
        }
        (format!("clear {tenant:?}"), format!("cleared {count}"), theirs)
    }

    fn look(&mut self) -> (String, String, String) {
        let (from, min_length) = (NOON - 5 + self.dice.within(0, 40), self.dice.within(0, 6));
        let op = Look {
            tenant: self.tenant(),
            calendar: self.dice.pick(&["p", "q", "x"]).into(),
            from: Time::from_micros(from),
            to: Time::from_micros(from + self.dice.within(1, 60)),
            min_length: Span::from_micros(min_length.max(1)),
            without: self.dice.chance(20).then(|| self.proof().key),
        };
        let theirs = self.model.look(&op, self.now);
        let op = LockOp::Look(op);
        let LockTold::Seen(seen) = self.ask(&op) else { return (odd(), odd(), String::new()) };
        let free: Vec<_> = seen.free.iter().map(|gap| (gap.0.micros(), gap.1.micros())).collect();
        (format!("{op:?}"), format!("free {free:?}"), theirs)
    }

    fn list(&mut self) -> (String, String, String) {
        let theirs = self.model.list(self.now);
        let (mut listed, mut next) = (Vec::new(), Some(0));
        while let Some(after) = next {
            let LockTold::Listed { leases, next: on } = self.ask(&LockOp::List { after, most: 3 })
            else {
                break;
            };
            listed.extend(leases.iter().map(shown));
            next = on;
        }
        ("list".to_owned(), format!("{listed:?}"), theirs)
    }

    fn counts(&mut self) -> (String, String, String) {
        let theirs = self.model.counts(self.now);
        while self.ask(&LockOp::Sweep) == (LockTold::Swept { more: true }) {}
        let LockTold::Tallied(rows) = self.ask(&LockOp::Tally) else {
            return (odd(), odd(), String::new());
        };
        let rows = rows.into_iter().map(|((tenant, kind), row)| {
            let own = (tenant.as_deref().map(str::to_owned), kind.to_string());
            let all = [row.success, row.conflicts, row.active, row.released, row.expired];
            let mut all: Vec<u64> = all.into_iter().chain([row.forced]).collect();
            // Success is what became of it: a row that does not add up is unlike any other.
            let adds_up = row.success == all[2..].iter().sum::<u64>();
            all.extend((!adds_up).then_some(u64::MAX));
            (own, all)
        });
        let rows: std::collections::BTreeMap<_, _> = rows.collect();
        ("counts".to_owned(), format!("{rows:?}"), theirs)
    }
}

/// What no operation may answer.
fn odd() -> String {
    "an answer to another question".to_owned()
}

fn shown(view: &View) -> String {
    let until = match view.state {
        State::Confirmed => "ever".to_owned(),
        _ if view.expires_at.is_forever() => "ever".to_owned(),
        _ => view.expires_at.micros().to_string(),
    };
    format!("#{} v{} {}..{until}", view.fence, view.version, view.acquired_at.micros())
}

fn told(conflict: &Conflict) -> String {
    let free = conflict.free_at.micros();
    format!("conflict {} {} free {free}", conflict.taken, shown(&conflict.holder))
}
