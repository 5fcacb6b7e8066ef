//! Random batches of every kind: few keys, changing terms, and instants at the edges of earlier
//! replies.
//!
//! The batches depend only on the seed and on core's replies, never on those of the store.

mod settles;
mod terms;

use std::collections::BTreeMap;

use catraca_core::batch::{
    Batch, CheckBatch, CheckRow, CreditBatch, CreditRow, NewReference, ReconcileRow, Reply,
    RowReply, SettleReply, UnblockRow,
};
use catraca_core::cell::block::{BlockProposal, PriorOffences};
use catraca_core::digest::Key;
use catraca_core::limit::{Limit, Penalty};
use catraca_core::policy::OnFailure;
use catraca_core::time::{Span, Time};
use catraca_testkit::generate::Rng;

use settles::Tickets;
use terms::{NAMES, key};

/// Kinds of batches.
pub const KINDS: usize = 8;
/// Keys in use at a time. They are few, so that windows grow long before other keys are used.
const HOT: i64 = 5;
/// Batches between changes of pace, keys and preferred kind.
const ERA: usize = 500;
/// How far the clock may be set back: less than the shortest window, because a store may delete
/// the entries of a window that was empty at a later instant.
const BACK: i64 = 900;
const START: i64 = 1_784_000_000_123_456;
/// Shortly before seconds no longer fit in 32 bits, after which no counter expires.
const LAST_SECONDS: i64 = 4_294_967_200_000_000;
const REFERENCES: i64 = 6;
const EVENTS: [&str; 3] = ["payment", "payment returned", "devolução"];

/// A source of batches.
pub struct Random {
    rng: Rng,
    now: i64,
    latest: i64,
    counts: [usize; KINDS],
    pace: i64,
    first_key: u8,
    favourite: usize,
    edges: Vec<i64>,
    /// The last known end of the block of each key.
    block_ends: BTreeMap<Key, Time>,
    /// When charged units leave their window. Apart from the other edges, which are so many that
    /// these would be dropped long before they are reached.
    leaving: Vec<i64>,
    tickets: Tickets,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        let now = if seed % 3 == 2 { LAST_SECONDS } else { START };
        Self {
            rng: Rng::new(seed),
            now,
            latest: now,
            counts: [0; KINDS],
            pace: 1,
            first_key: 0,
            favourite: 0,
            edges: Vec::new(),
            block_ends: BTreeMap::new(),
            leaving: Vec::new(),
            tickets: Tickets::default(),
        }
    }

    /// The number of batches of each kind so far.
    pub fn counts(&self) -> [usize; KINDS] {
        self.counts
    }

    /// The next batch and its instant.
    pub fn step(&mut self) -> (Batch, Time) {
        if self.counts.iter().sum::<usize>().is_multiple_of(ERA) {
            self.change_pace();
        }
        self.advance();
        let kind = match self.rng.within(0, 99) {
            0..65 => self.favourite,
            65..90 => 0,
            90..97 => 1,
            _ => self.rng.within(0, KINDS as i64 - 1) as usize,
        };
        let batch = self.batch(kind);
        self.counts[kind_of(&batch)] += 1;
        (batch, Time::from_micros(self.now))
    }

    /// Picks another pace and other keys, and prefers the kind with the fewest batches.
    fn change_pace(&mut self) {
        self.pace = self.rng.pick(&[10, 100, 3_000, 100_000, 5_000_000, 3_600_000_000]);
        self.first_key = self.rng.within(0, i64::from(NAMES) - HOT) as u8;
        let least = self.counts.iter().min().copied();
        self.favourite = self.counts.iter().position(|count| Some(*count) == least).unwrap_or(0);
    }

    fn batch(&mut self, kind: usize) -> Batch {
        let now = Time::from_micros(self.now);
        match kind {
            0 => Batch::Check(self.check()),
            1 => match self.tickets.settle(self.pace, now, &mut self.rng) {
                Some(settle) => Batch::Settle(settle),
                None => Batch::Check(self.check()),
            },
            2 => Batch::Recall(self.reference()),
            3 => Batch::Credit(self.credit()),
            4 => Batch::Block(self.names().into_iter().map(|name| self.block(name)).collect()),
            5 => Batch::Unblock(self.names().into_iter().map(|name| self.unblock(name)).collect()),
            6 => Batch::Reset(vec![key(self.any_name())]),
            _ => Batch::Reconcile(self.buckets().into_iter().map(|n| self.reconcile(n)).collect()),
        }
    }

    /// Releases whichever block a key has, or only one with an end that its block had last or that
    /// another key's has.
    fn unblock(&mut self, name: u8) -> UnblockRow {
        let key = key(name);
        let other = self.block_ends.values().next().copied();
        let only_until = match self.rng.within(0, 3) {
            0 => other,
            1 | 2 => self.block_ends.get(&key).copied(),
            _ => None,
        };
        UnblockRow { key, only_until }
    }

    /// Learns from a reply the tickets to settle and the instants at which replies may change.
    pub fn learn(&mut self, batch: &Batch, reply: &Reply) {
        match (batch, reply) {
            (Batch::Check(check), Reply::Check(reply)) => {
                self.tickets.learn(check, reply, &mut self.rng);
                for (asked, row) in check.rows.iter().zip(&reply.rows) {
                    self.leaving_edge(asked, row);
                    let until = row.block.as_ref().map(|block| block.until);
                    self.block_ends.extend(until.map(|until| (asked.key, until)));
                    row.fits_at
                        .into_iter()
                        .chain([row.full_at])
                        .chain(until)
                        .for_each(|edge| self.edge(edge));
                }
            }
            (_, Reply::Settle(SettleReply::Settled { rows, .. })) => {
                rows.iter().filter_map(|row| row.blocked_until).for_each(|edge| self.edge(edge));
            }
            (Batch::Block(asked), Reply::Block(rows)) => {
                for ((key, _), row) in asked.iter().zip(rows) {
                    let Some(row) = row else { continue };
                    self.edge(row.block.until);
                    self.block_ends.insert(*key, row.block.until);
                }
            }
            _ => {}
        }
        for edges in [&mut self.edges, &mut self.leaving] {
            let excess = edges.len().saturating_sub(48);
            edges.drain(..excess);
        }
    }

    /// The instant at which the units of a row leave its first window, also if others have room.
    fn leaving_edge(&mut self, row: &CheckRow, reply: &RowReply) {
        let Limit::Window(windows) = &row.limit else { return };
        let Some(first) = windows.first().filter(|_| reply.charged > 0) else { return };
        self.leaving.push(reply.at.after(first.span).micros());
    }

    fn edge(&mut self, edge: Time) {
        let second = (edge.micros() + 999_999) / 1_000_000 * 1_000_000;
        self.edges.extend([edge.micros(), second, edge.micros() + terms::FORGET]);
    }

    fn advance(&mut self) {
        let edge = self.rng.pick(&[0, 0, -1, 1]);
        let near = self.now + 20 * self.pace.max(1_000);
        let edges = self.edges.iter().chain(&self.leaving).copied();
        let reachable: Vec<i64> =
            edges.filter(|edge| (self.now + 2..near).contains(edge)).collect();
        self.now = match self.rng.within(0, 99) {
            0..25 => self.now,
            25..28 => (self.now - self.rng.within(1, BACK)).max(self.latest - BACK),
            28..45 if !reachable.is_empty() => self.rng.pick(&reachable) + edge,
            45 => self.now + self.rng.within(1, 100 * self.pace),
            _ => self.now + self.rng.within(1, self.pace),
        };
        self.latest = self.latest.max(self.now);
    }

    fn hot_name(&mut self) -> u8 {
        self.first_key + self.rng.within(0, HOT - 1) as u8
    }

    fn any_name(&mut self) -> u8 {
        if self.rng.chance(20) {
            self.hot_name()
        } else {
            self.rng.within(0, i64::from(NAMES) - 1) as u8
        }
    }

    /// Some names, each once, in order.
    fn names(&mut self) -> Vec<u8> {
        let count = self.rng.pick(&[1, 1, 2, 3, 4]);
        let mut names: Vec<u8> = (0..count).map(|_| self.hot_name()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn buckets(&mut self) -> Vec<u8> {
        let mut names = self.names();
        names.retain(|name| terms::is_bucket(*name));
        if names.is_empty() { vec![self.first_key / 3 * 3] } else { names }
    }

    fn reference(&mut self) -> Key {
        Key::from_bytes([200 + self.rng.within(0, REFERENCES - 1) as u8; 16])
    }

    fn check(&mut self) -> CheckBatch {
        CheckBatch {
            rows: self.names().into_iter().map(|name| self.row(name)).collect(),
            peek: self.rng.chance(12),
            already_denied: self.rng.chance(3),
            new_reference: self.rng.chance(25).then(|| Box::new(self.remember())),
        }
    }

    fn remember(&mut self) -> NewReference {
        let span = self.rng.pick(&[1_200, 20 * self.pace, 60 * self.pace, 86_400_000_000]);
        let ticket = (0..self.rng.within(0, 40)).map(|byte| byte as u8 ^ 0xa5).collect();
        let owner = Key::from_bytes([self.rng.within(220, 239) as u8; 16]);
        NewReference { key: self.reference(), owner, ticket, span: Span::from_micros(span) }
    }

    fn row(&mut self, name: u8) -> CheckRow {
        // Callers change between tiers that share a counter.
        let changed = self.rng.chance(if terms::is_shared(name) { 30 } else { 6 });
        // Rarely another algorithm, which uses other cells.
        let terms_of = if self.rng.chance(1) { self.any_name() } else { name };
        let limit = terms::limit(terms_of, changed, &mut self.rng);
        // Most keys never block, so that their counters fill.
        let blocks = name % 5 < 2;
        CheckRow {
            key: key(name),
            family: u64::from(name / 3),
            // Two keys may have tiers with the same id.
            tier_counter: self.rng.maybe(10, |rng| rng.within(1, 2) as u32),
            shared: terms::shared(name, &limit),
            held: terms::amount(limit.capacity().unwrap_or(1), &mut self.rng),
            lease: self.lease(&limit),
            limit,
            penalty: blocks.then(|| terms::penalty(&mut self.rng)),
            shadow: self.rng.chance(15),
            count_denied: self.rng.chance(35),
            on_full: OnFailure::Local,
        }
    }

    fn lease(&mut self, limit: &Limit) -> u64 {
        match limit {
            Limit::Inflight(_) if self.rng.chance(10) => self.rng.pick(&[0, 1, u64::MAX]),
            Limit::Inflight(_) => self.rng.next_u64(),
            _ => 0,
        }
    }

    fn credit(&mut self) -> CreditBatch {
        let rows = self.buckets().into_iter().map(|name| {
            let terms = terms::bucket_terms(name, self.rng.chance(6), &mut self.rng);
            let shared = terms::shared(name, &Limit::Bucket(terms));
            let amount = self.rng.pick(&[0, 1, 2, 3, 50, i64::MAX]);
            CreditRow { key: key(name), terms, shared, amount }
        });
        let rows = rows.collect();
        CreditBatch { reference: self.reference(), event: self.rng.pick(&EVENTS).into(), rows }
    }

    fn block(&mut self, name: u8) -> (Key, BlockProposal) {
        let mut act = terms::act(40 * self.pace, &mut self.rng);
        act.prior_offences = self.rng.maybe(20, |rng| PriorOffences {
            level: rng.within(0, 5) as u32,
            forget: Span::from_micros(rng.within(0, 2 * terms::FORGET)),
            since_end: Span::from_micros(rng.within(0, terms::FORGET)),
        });
        if act.prior_offences.is_some() && self.rng.chance(40) {
            // A block that has ended: only its level counts.
            act.penalty = Penalty::without_escalation(Span::ZERO);
        }
        (key(name), act)
    }

    fn reconcile(&mut self, name: u8) -> ReconcileRow {
        let terms = terms::bucket_terms(name, self.rng.chance(6), &mut self.rng);
        let available = match self.rng.within(0, 9) {
            0 => self.rng.pick(&[i64::MIN, i64::MAX, terms.size, terms.floor()]),
            1..4 => -self.rng.within(0, 20),
            _ => terms.size - terms::amount(terms.size, &mut self.rng),
        };
        let observed = self.now - self.rng.within(-2, 20 * self.pace);
        let shared = terms::shared(name, &Limit::Bucket(terms));
        let observed_at = Time::from_micros(observed);
        ReconcileRow { key: key(name), terms, shared, available, observed_at }
    }
}

/// The index of a batch's kind.
pub fn kind_of(batch: &Batch) -> usize {
    match batch {
        Batch::Check(_) => 0,
        Batch::Settle(_) => 1,
        Batch::Recall(_) => 2,
        Batch::Credit(_) => 3,
        Batch::Block(_) => 4,
        Batch::Unblock(_) => 5,
        Batch::Reset(_) => 6,
        Batch::Reconcile(_) => 7,
    }
}
