//! Random checks: few keys, terms that change, and instants on the edges of earlier answers.
//!
//! Must not look at the script: what it makes is a function of the seed and of core's answers.

use catraca_core::batch::{Check, CheckReply, CheckRow};
use catraca_core::cell::block::{Act, Note, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, EXACT_MAX, Limit, Penalty, WindowTerms};
use catraca_core::time::{Span, Time};
use catraca_testkit::generate::Dice;

const KEYS: u8 = 14;
/// Keys in use at a time, so that logs grow long before the next keys come.
const HOT: i64 = 4;
/// Operations until another pace and other keys are taken.
const ERA: usize = 1_000;
/// How far the clock may fall behind the latest instant: less than the shortest window, since a
/// store that has seen a window empty need not remember the instants that were in it.
const BACK: i64 = 900;
const START: i64 = 1_784_000_000_123_456;
/// Where whole seconds stop fitting in 32 bits, and nothing is forgotten any more.
const LAST_SECONDS: i64 = 4_294_967_200_000_000;
/// How long the usual penalty remembers its level.
const FORGET: i64 = 30_000;
const DAY: i64 = 86_400_000_000;

/// What to do next.
pub enum Step {
    Check(Check),
    Block(Key, Act),
    Reset(Key),
}

/// A source of operations.
pub struct Random {
    dice: Dice,
    now: i64,
    latest: i64,
    told: usize,
    pace: i64,
    first_key: u8,
    edges: Vec<i64>,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        let now = if seed % 3 == 2 { LAST_SECONDS } else { START };
        let (dice, edges) = (Dice::new(seed), Vec::new());
        Self { dice, now, latest: now, told: 0, pace: 1, first_key: 0, edges }
    }

    /// The next operation and its instant.
    pub fn step(&mut self) -> (Step, Time) {
        if self.told.is_multiple_of(ERA) {
            self.pace = self.dice.pick(&[10, 100, 3_000, 100_000, 5_000_000, 3_600_000_000]);
            self.first_key = self.dice.within(0, i64::from(KEYS) - HOT) as u8;
        }
        self.told += 1;
        self.advance();
        let step = match self.dice.within(0, 99) {
            0 => Step::Reset(key(self.hot_key())),
            1 => Step::Block(key(self.hot_key()), self.act()),
            _ => Step::Check(self.check()),
        };
        (step, Time::from_micros(self.now))
    }

    /// Keeps in mind the instants at which the next answers may turn.
    pub fn heard(&mut self, reply: &CheckReply) {
        for row in &reply.rows {
            let until = row.block.as_ref().map(|block| block.until);
            for edge in row.fits_at.into_iter().chain([row.full_at]).chain(until) {
                let second = (edge.micros() + 999_999) / 1_000_000 * 1_000_000;
                self.edges.extend([edge.micros(), second, edge.micros() + FORGET]);
            }
        }
        let excess = self.edges.len().saturating_sub(48);
        self.edges.drain(..excess);
    }

    fn advance(&mut self) {
        let edge = self.dice.pick(&[0, 0, -1, 1]);
        let near = self.now + 20 * self.pace.max(1_000);
        let reachable: Vec<i64> =
            self.edges.iter().copied().filter(|edge| (self.now + 2..near).contains(edge)).collect();
        self.now = match self.dice.within(0, 99) {
            0..25 => self.now,
            25..28 => (self.now - self.dice.within(1, BACK)).max(self.latest - BACK),
            28..45 if !reachable.is_empty() => self.dice.pick(&reachable) + edge,
            45 => self.now + self.dice.within(1, 100 * self.pace),
            _ => self.now + self.dice.within(1, self.pace),
        };
        self.latest = self.latest.max(self.now);
    }

    fn hot_key(&mut self) -> u8 {
        self.first_key + self.dice.within(0, HOT - 1) as u8
    }

    fn check(&mut self) -> Check {
        let mut names: Vec<u8> =
            (0..self.dice.pick(&[1, 1, 2, 3, 4])).map(|_| self.hot_key()).collect();
        names.sort_unstable();
        names.dedup();
        Check {
            rows: names.into_iter().map(|name| self.row(name)).collect(),
            peek: self.dice.chance(12),
            veto: self.dice.chance(3),
            remember: None,
        }
    }

    fn row(&mut self, name: u8) -> CheckRow {
        let changed = self.dice.chance(6);
        let limit = limit(name, changed, &mut self.dice);
        CheckRow {
            key: key(name),
            family: 0,
            held: self.held(limit.capacity().unwrap_or(1)),
            limit,
            penalty: self.penalty(name),
            shadow: self.dice.chance(15),
            count_denied: self.dice.chance(20),
            lease: 0,
        }
    }

    fn held(&mut self, capacity: i64) -> i64 {
        match self.dice.within(0, 99) {
            0..10 => 0,
            10..65 => 1,
            65..80 => self.dice.within(1, 4),
            80..96 => self.dice.within(1, capacity.min(self.dice.clone().within(1, capacity))),
            _ => (capacity + self.dice.within(0, 2)).min(EXACT_MAX - 1),
        }
    }

    /// Most keys never block, so that their counters fill.
    fn penalty(&mut self, name: u8) -> Option<Penalty> {
        if !name.is_multiple_of(3) {
            return None;
        }
        let span = Span::from_micros;
        let escalating = |first, factor, max, forget| Penalty {
            first: span(first),
            factor,
            max: span(max),
            forget: span(forget),
        };
        Some(match self.dice.within(0, 9) {
            0 => Penalty::fixed(span(self.dice.within(0, 5_000_000))),
            1..6 => escalating(700, 3, 2_000_000, FORGET),
            6 => escalating(DAY, 1_000_000, Span::FOREVER.micros(), 30 * DAY),
            7 => escalating(5_000, 1, 1_000, 1),
            _ => Penalty::fixed(span(1_000)),
        })
    }

    fn act(&mut self) -> Act {
        let fixed = Penalty::fixed(Span::from_micros(self.dice.within(1, 40 * self.pace)));
        let reason = self.dice.maybe(50, |dice| format!("reason {}", dice.within(1, 9)).into());
        Act {
            penalty: if self.dice.chance(3) { Penalty::fixed(Span::FOREVER) } else { fixed },
            origin: self.dice.pick(&[Origin::Ban, Origin::Operator, Origin::Upstream]),
            shadow: self.dice.chance(20),
            note: Note { reason, ..Note::default() },
        }
    }
}

fn key(name: u8) -> Key {
    Key::from_bytes([name + b'A'; 16])
}

/// The terms of a key, or with `changed` others of the same algorithm.
fn limit(name: u8, changed: bool, dice: &mut Dice) -> Limit {
    let name =
        if changed { dice.within(0, i64::from(KEYS) - 1) as u8 / 2 * 2 + name % 2 } else { name };
    match name {
        13 if !changed => Limit::Unlimited,
        0 => bucket(10, 1, 100_000),
        2 => bucket(100, 1, 30_000_000),
        4 => bucket(1_000, 7, 3),
        6 => bucket(200, 1, 2_160_000_000),
        8 => bucket(EXACT_MAX / DAY, 1, DAY),
        10 => bucket(EXACT_MAX / 1_000_003, 104_729, 1_000_003),
        12 => bucket(EXACT_MAX - 1, 1_000_000_007, 1),
        1 => window(&[(10, 1_000_000)]),
        3 => window(&[(5, 1_000), (20, 2_000_000)]),
        5 => window(&[(4_000, 3_600_000_000)]),
        7 => window(&[(3_000, 600_000_000), (400, 1_000_000), (2_000, DAY)]),
        9 => window(&[(2_500, 40 * DAY)]),
        _ => window(&[(1, 1_000), (3, 1_000)]),
    }
}

fn bucket(size: i64, tokens: i64, period: i64) -> Limit {
    Limit::Bucket(BucketTerms { size, tokens, period })
}

fn window(windows: &[(i64, i64)]) -> Limit {
    let terms =
        |(limit, span): &(i64, i64)| WindowTerms { limit: *limit, span: Span::from_micros(*span) };
    Limit::Window(windows.iter().map(terms).collect())
}
