//! A random trace: a catalog with its versions, and operations at and around the edges.
//!
//! An edge is an instant at which an answer may change: the end of a wait, of a block or of a
//! ticket. The trace learns them from the oracle's answers.

use super::op::{Op, OpKind};
use super::outcome::outcome;
use super::policy::EVENTS;
use super::rng::Rng;
use super::{catalog, policy};
use crate::oracle::answer::Decision;
use crate::oracle::catalog::{Algorithm, Catalog, HOLD, HOLD_WITHOUT_LIMIT, Mode, Policy};
use crate::oracle::select::{CheckRequest, Subject};
use crate::oracle::{FOREVER, Micros};

const MS: Micros = 1_000;
const S: Micros = 1_000_000;
const HOUR: Micros = 3_600 * S;
/// Edges beyond this are ignored: some buckets take decades to fill.
const FAR: Micros = 10_000 * HOUR;
/// The maximum number of edges to remember.
const EDGES: usize = 16;

/// The earliest start of a trace: 2023-11-14T22:13:20Z.
pub const START: Micros = 1_700_000_000_000_000;

/// A trace that is being generated.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The versions of the catalog; the first is active at the start.
    pub versions: Vec<Catalog>,
    rng: Rng,
    now: Micros,
    /// Operations generated so far.
    count: usize,
    edges: Vec<Micros>,
    /// Checks with a ticket, by the number of the operation.
    checks: Vec<(usize, CheckRequest)>,
    /// Checks that were settled.
    settled: Vec<CheckRequest>,
    /// The active version.
    version: usize,
}

impl Trace {
    /// The trace of a seed.
    pub fn new(seed: u64) -> Trace {
        let mut rng = Rng::new(seed);
        let first = catalog::catalog(&mut rng);
        let mut versions = vec![first.clone()];
        for _ in 0..rng.within(0, 3) {
            versions.push(catalog::version(&mut rng, &first));
        }
        let now = START + rng.within(0, 100 * S);
        Trace {
            versions,
            rng,
            now,
            count: 0,
            edges: Vec::new(),
            checks: Vec::new(),
            settled: Vec::new(),
            version: 0,
        }
    }

    /// The next operation.
    pub fn next_op(&mut self) -> Op {
        self.now = self.instant();
        let kind = self.next_kind();
        let op = Op { number: self.count, at: self.now, kind };
        self.count += 1;
        op
    }

    /// Learns the edges from an answer.
    pub fn learn(&mut self, op: &Op, decision: &Decision) {
        if let (OpKind::Check(request), Some(_)) = (&op.kind, decision.ticket) {
            self.checks.push((op.number, request.clone()));
            self.edges.extend([op.at + HOLD, op.at + HOLD_WITHOUT_LIMIT]);
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

    /// The next instant: mostly the same, or within a microsecond of an edge.
    fn instant(&mut self) -> Micros {
        let now = self.now;
        match self.rng.within(1, 100) {
            1..=48 => now,
            49..=56 => now + 1,
            57..=74 => self.near_edge().map_or(now, |edge| self.around(edge)),
            75..=80 => self.any_edge().map_or(now, |edge| self.around(edge)),
            81..=86 => now + self.rng.within(1, 2 * S),
            87..=94 => now + self.rng.within(1, 20 * MS),
            95..=97 => now + self.rng.within(1, 20 * S),
            98 => now + self.rng.pick(&[30 * S, 100 * S, HOUR, 30 * HOUR]),
            // A whole second, for aligned windows and slices of the watch.
            _ => now + S - now % S,
        }
    }

    /// The next edge, mostly only if it is near: a long jump lets every ticket expire.
    fn near_edge(&mut self) -> Option<Micros> {
        let next = self.edges.iter().copied().min()?;
        (next < self.now + 3 * S || self.rng.chance(15)).then_some(next)
    }

    fn any_edge(&mut self) -> Option<Micros> {
        let last = self.edges.len() as i64 - 1;
        (last >= 0).then(|| self.edges[self.rng.within(0, last) as usize])
    }

    fn around(&mut self, edge: Micros) -> Micros {
        self.now.max(edge + self.rng.pick(&[-1, 0, 0, 1]))
    }

    fn next_kind(&mut self) -> OpKind {
        match self.rng.within(1, 1000) {
            1..=590 => OpKind::Check(self.request()),
            591..=650 => OpKind::Peek(self.request()),
            651..=860 => self.settle(),
            861..=910 => self.credit(),
            911..=925 => {
                let (policy, subject) = self.target();
                let length = self.rng.pick(&[1, MS, S, 3 * S, HOUR, FOREVER]);
                OpKind::Block { policy, subject, length }
            }
            926..=940 => {
                let (policy, subject) = self.target();
                OpKind::Unblock { policy, subject }
            }
            941..=950 => {
                let (policy, subject) = self.target();
                OpKind::Reset { policy, subject }
            }
            951..=965 => self.reconcile(),
            966..=975 if self.has_facts() => {
                let user = self.rng.pick(&["a", "b", "c"]).to_owned();
                let grade = self.rng.maybe(75, |rng| rng.pick(&policy::GRADES).to_owned());
                OpKind::StateGrade { user, grade }
            }
            _ if self.versions.len() > 1 => {
                self.version = self.rng.within(0, self.versions.len() as i64 - 1) as usize;
                OpKind::Reload(self.version)
            }
            _ => OpKind::Check(self.request()),
        }
    }

    /// Whether `grade` is a fact in every version. Elsewhere callers send it, and an operator
    /// cannot state it.
    fn has_facts(&self) -> bool {
        self.versions.iter().all(|version| !version.facts.is_empty())
    }

    fn request(&mut self) -> CheckRequest {
        let rng = &mut self.rng;
        let gate = match rng.within(1, 100) {
            1..=70 => "g0".to_owned(),
            71..=85 => "g1".to_owned(),
            86..=97 => rng.pick(&self.versions[self.version].policies).name,
            _ => rng.pick(&["elsewhere", "nowhere"]).to_owned(),
        };
        let cost = self.cost();
        let reference = self.rng.maybe(60, reference);
        CheckRequest {
            gate,
            subject: subject(&mut self.rng),
            cost,
            reference,
            lists: self.rng.chance(90),
        }
    }

    /// None, a small cost, or a cost around the capacity of a policy.
    fn cost(&mut self) -> Option<i64> {
        let policies = &self.versions[self.version].policies;
        match self.rng.within(1, 100) {
            1..=55 => None,
            56..=85 => Some(self.rng.within(0, 4)),
            _ => {
                let capacity = policy::capacity(&self.rng.pick(policies));
                Some((capacity + self.rng.within(-2, 1)).max(0))
            }
        }
    }

    /// Settles mostly a recent check, sometimes any, even if it is settled or expired.
    fn settle(&mut self) -> OpKind {
        let count = self.checks.len() as i64;
        if count == 0 {
            return OpKind::Check(self.request());
        }
        let oldest = if self.rng.chance(85) { (count - 4).max(0) } else { 0 };
        let (check, request) = self.checks[self.rng.within(oldest, count - 1) as usize].clone();
        self.settled.push(request);
        OpKind::Settle { check, outcome: outcome(&mut self.rng) }
    }

    /// Credits mostly a recently settled check, for its own subject.
    fn credit(&mut self) -> OpKind {
        let event = self.rng.pick(&EVENTS).to_owned();
        let mut reference = reference(&mut self.rng);
        let mut subject = subject(&mut self.rng);
        let recent = self.settled.iter().rev().take(5).find(|request| request.reference.is_some());
        if let Some(request) = recent.filter(|_| self.rng.chance(80)) {
            reference = request.reference.clone().unwrap_or(reference);
            if self.rng.chance(85) {
                subject = request.subject.clone();
            }
        }
        OpKind::Credit { reference, event, subject }
    }

    /// Reconciles a bucket; for a policy that has none or several, a check instead.
    fn reconcile(&mut self) -> OpKind {
        let (policy, subject) = self.target();
        let found = self.versions[self.version].policy(&policy).filter(|policy| observable(policy));
        let Some(capacity) = found.map(policy::capacity) else {
            return OpKind::Check(self.request());
        };
        let level = self.rng.within(-2, capacity + 2);
        let observed_at = self.now - self.rng.pick(&[0, 0, 1, MS, S, HOUR]);
        OpKind::Reconcile { policy, subject, level, observed_at }
    }

    /// A policy and a subject with every attribute.
    fn target(&mut self) -> (String, Subject) {
        let found: Policy = self.rng.pick(&self.versions[self.version].policies);
        let mut subject = full_subject(&mut self.rng);
        if self.rng.chance(30) {
            subject.push(("plan".to_owned(), self.rng.pick(&["pro", "free"]).to_owned()));
        }
        (found.name, subject)
    }
}

/// Whether the policy is a bucket with one key per subject, which an upstream can observe.
fn observable(policy: &Policy) -> bool {
    let bucket = matches!(policy.terms.algorithm, Algorithm::Bucket { .. });
    bucket && policy.each.is_empty() && policy.mode != Mode::Off
}

fn reference(rng: &mut Rng) -> String {
    format!("E{}", rng.within(0, 40))
}

/// A subject with every attribute that keys use.
fn full_subject(rng: &mut Rng) -> Subject {
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        of("ip", rng.pick(&["192.0.2.1", "192.0.2.1", "192.0.2.2"])),
        of("user", rng.pick(&["a", "a", "b"])),
        of("org", rng.pick(&["a", "x"])),
    ]
}

/// A subject that may lack some attributes.
fn subject(rng: &mut Rng) -> Subject {
    let mut subject = full_subject(rng);
    subject.retain(|(name, _)| rng.chance(if name == "ip" { 97 } else { 85 }));
    if rng.chance(40) {
        subject.push(("plan".to_owned(), rng.pick(&["pro", "free", "none"]).to_owned()));
    }
    subject
}
