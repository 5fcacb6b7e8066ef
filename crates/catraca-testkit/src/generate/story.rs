//! A story: a catalog with its versions, and operations at the worst possible instants.
//!
//! It must learn only from the oracle's answers which instants are edges: waits, block ends,
//! expiries.

use super::dice::Dice;
use super::op::{Op, Verb};
use super::outcome::outcome;
use super::policy::EVENTS;
use super::{catalog, policy};
use crate::oracle::answer::Decision;
use crate::oracle::catalog::{Algorithm, Catalog, HOLD, Mode, Policy};
use crate::oracle::select::{Ask, Subject};
use crate::oracle::{FOREVER, Micros};

const MS: Micros = 1_000;
const S: Micros = 1_000_000;
const HOUR: Micros = 3_600 * S;
/// Edges beyond this are not visited: some buckets take generations to fill.
const FAR: Micros = 10_000 * HOUR;
/// Most edges kept in mind at a time.
const EDGES: usize = 16;

/// The beginning of every story.
pub const START: Micros = 1_700_000_000_000_000;

/// A story that is being told.
#[derive(Clone, Debug)]
pub struct Story {
    /// Versions of the catalog; the first is in force at the beginning.
    pub versions: Vec<Catalog>,
    dice: Dice,
    now: Micros,
    told: usize,
    edges: Vec<Micros>,
    checks: Vec<(usize, Ask)>,
    settled: Vec<Ask>,
    version: usize,
}

impl Story {
    /// The story of that seed.
    pub fn new(seed: u64) -> Story {
        let mut dice = Dice::new(seed);
        let first = catalog::catalog(&mut dice);
        let mut versions = vec![first.clone()];
        for _ in 0..dice.within(0, 2) {
            versions.push(catalog::version(&mut dice, &first));
        }
        let now = START + dice.within(0, 100 * S);
        let (edges, checks, settled) = (Vec::new(), Vec::new(), Vec::new());
        Story { versions, dice, now, told: 0, edges, checks, settled, version: 0 }
    }

    /// The next operation.
    pub fn next_op(&mut self) -> Op {
        self.now = self.instant();
        let verb = self.verb();
        let op = Op { number: self.told, at: self.now, verb };
        self.told += 1;
        op
    }

    /// Learns the edges of an answer.
    pub fn heard(&mut self, op: &Op, decision: &Decision) {
        if let (Verb::Check(ask), Some(_)) = (&op.verb, decision.ticket) {
            self.checks.push((op.number, ask.clone()));
            self.edges.push(op.at + HOLD);
        }
        for row in &decision.rows {
            let hold = self.versions[self.version].policy(&row.policy).map(|policy| policy.hold);
            let ends = [row.retry_at, row.reset_at, row.blocked_until];
            self.edges.extend(ends.into_iter().flatten());
            self.edges.extend(hold.filter(|_| row.charged > 0).map(|hold| op.at + hold));
        }
        let now = self.now;
        self.edges.retain(|&edge| now < edge && edge < START + FAR);
        let surplus = self.edges.len().saturating_sub(EDGES);
        self.edges.drain(..surplus);
    }

    /// Where time goes next: mostly nowhere, or to an edge and one microsecond around it.
    fn instant(&mut self) -> Micros {
        let now = self.now;
        match self.dice.within(1, 100) {
            1..=48 => now,
            49..=56 => now + 1,
            57..=74 => self.near_edge().map_or(now, |edge| self.around(edge)),
            75..=80 => self.any_edge().map_or(now, |edge| self.around(edge)),
            81..=86 => now + self.dice.within(1, 2 * S),
            87..=94 => now + self.dice.within(1, 20 * MS),
            95..=97 => now + self.dice.within(1, 20 * S),
            98 => now + self.dice.pick(&[30 * S, 100 * S, HOUR, 30 * HOUR]),
            // On the clock, for aligned windows and slices of the watch.
            _ => now + S - now % S,
        }
    }

    /// The next edge, unless it is so far that every ticket would be lost on the way.
    fn near_edge(&mut self) -> Option<Micros> {
        let next = self.edges.iter().copied().min()?;
        (next < self.now + 3 * S || self.dice.chance(15)).then_some(next)
    }

    fn any_edge(&mut self) -> Option<Micros> {
        let last = self.edges.len() as i64 - 1;
        (last >= 0).then(|| self.edges[self.dice.within(0, last) as usize])
    }

    fn around(&mut self, edge: Micros) -> Micros {
        self.now.max(edge + self.dice.pick(&[-1, 0, 0, 1]))
    }

    fn verb(&mut self) -> Verb {
        match self.dice.within(1, 1000) {
            1..=610 => Verb::Check(self.ask()),
            611..=670 => Verb::Peek(self.ask()),
            671..=880 => self.settle(),
            881..=930 => self.credit(),
            931..=945 => {
                let (policy, subject) = self.target();
                let length = self.dice.pick(&[1, MS, S, 3 * S, HOUR, FOREVER]);
                Verb::Block { policy, subject, length }
            }
            946..=960 => {
                let (policy, subject) = self.target();
                Verb::Unblock { policy, subject }
            }
            961..=970 => {
                let (policy, subject) = self.target();
                Verb::Reset { policy, subject }
            }
            971..=985 => self.reconcile(),
            _ if self.versions.len() > 1 => {
                self.version = self.dice.within(0, self.versions.len() as i64 - 1) as usize;
                Verb::Reload(self.version)
            }
            _ => Verb::Check(self.ask()),
        }
    }

    fn ask(&mut self) -> Ask {
        let dice = &mut self.dice;
        let gate = match dice.within(1, 100) {
            1..=70 => "g0".to_owned(),
            71..=85 => "g1".to_owned(),
            86..=97 => dice.pick(&self.versions[self.version].policies).name,
            _ => dice.pick(&["elsewhere", "nowhere"]).to_owned(),
        };
        let cost = self.cost();
        let reference = self.dice.maybe(60, reference);
        Ask { gate, subject: subject(&mut self.dice), cost, reference, lists: self.dice.chance(90) }
    }

    /// Nothing, something small, or around what a policy can ever give.
    fn cost(&mut self) -> Option<i64> {
        let policies = &self.versions[self.version].policies;
        match self.dice.within(1, 100) {
            1..=55 => None,
            56..=85 => Some(self.dice.within(0, 4)),
            _ => {
                let capacity = policy::capacity(&self.dice.pick(policies));
                Some((capacity + self.dice.within(-2, 1)).max(0))
            }
        }
    }

    /// Mostly a recent check; sometimes any, settled, forgotten or not.
    fn settle(&mut self) -> Verb {
        let count = self.checks.len() as i64;
        if count == 0 {
            return Verb::Check(self.ask());
        }
        let oldest = if self.dice.chance(85) { (count - 4).max(0) } else { 0 };
        let (check, ask) = self.checks[self.dice.within(oldest, count - 1) as usize].clone();
        self.settled.push(ask);
        Verb::Settle { check, outcome: outcome(&mut self.dice) }
    }

    /// Mostly for what was settled of late, by the one who asked.
    fn credit(&mut self) -> Verb {
        let event = self.dice.pick(&EVENTS).to_owned();
        let mut credit = (reference(&mut self.dice), subject(&mut self.dice));
        let lately = self.settled.iter().rev().take(5).find(|ask| ask.reference.is_some());
        if let Some(ask) = lately.filter(|_| self.dice.chance(80)) {
            credit.0 = ask.reference.clone().unwrap_or(credit.0);
            credit.1 = if self.dice.chance(85) { ask.subject.clone() } else { credit.1 };
        }
        Verb::Credit { reference: credit.0, event, subject: credit.1 }
    }

    /// For a bucket with one key; otherwise there is nothing an upstream could have seen.
    fn reconcile(&mut self) -> Verb {
        let (policy, subject) = self.target();
        let found = self.versions[self.version].policy(&policy).filter(|policy| observable(policy));
        let Some(capacity) = found.map(policy::capacity) else { return Verb::Check(self.ask()) };
        let level = self.dice.within(-2, capacity + 2);
        let observed_at = self.now - self.dice.pick(&[0, 0, 1, MS, S, HOUR]);
        Verb::Reconcile { policy, subject, level, observed_at }
    }

    /// A policy and a subject with every attribute.
    fn target(&mut self) -> (String, Subject) {
        let found: Policy = self.dice.pick(&self.versions[self.version].policies);
        let mut subject = whole(&mut self.dice);
        if self.dice.chance(30) {
            subject.push(("plan".to_owned(), self.dice.pick(&["pro", "free"]).to_owned()));
        }
        (found.name, subject)
    }
}

fn observable(policy: &Policy) -> bool {
    let bucket = matches!(policy.terms.algorithm, Algorithm::Bucket { .. });
    bucket && policy.each.is_empty() && policy.mode != Mode::Off
}

fn reference(dice: &mut Dice) -> String {
    format!("E{}", dice.within(0, 40))
}

fn whole(dice: &mut Dice) -> Subject {
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        of("ip", dice.pick(&["192.0.2.1", "192.0.2.1", "192.0.2.2"])),
        of("user", dice.pick(&["a", "a", "b"])),
        of("org", dice.pick(&["a", "x"])),
    ]
}

/// A subject that may lack some attributes.
fn subject(dice: &mut Dice) -> Subject {
    let mut subject = whole(dice);
    subject.retain(|(name, _)| dice.chance(if name == "ip" { 97 } else { 85 }));
    if dice.chance(40) {
        subject.push(("plan".to_owned(), dice.pick(&["pro", "free", "none"]).to_owned()));
    }
    subject
}
