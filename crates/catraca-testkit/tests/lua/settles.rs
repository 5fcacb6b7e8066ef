//! Random settles: of checks that passed, once or again, in time or late, with every rule.

use catraca_core::batch::{
    BanRow, Check, CheckReply, CheckRow, RowReply, Settle, SettleRow, Told, Verdict, WatchRow,
};
use catraca_core::cell::block::{Act, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{EXACT_MAX, Penalty};
use catraca_core::price::Price;
use catraca_core::rate::{Percent, Rate};
use catraca_core::time::{Span, Time};
use catraca_testkit::generate::Dice;

use super::terms;

/// Tickets kept in mind.
const TICKETS: usize = 48;

/// What is known of a check that passed.
#[derive(Clone)]
struct Ticket {
    mark: Key,
    expires: Time,
    rows: Vec<(CheckRow, Time)>,
    reference: Option<(Key, Key)>,
}

/// The tickets of a trace.
#[derive(Default)]
pub struct Tickets {
    known: Vec<Ticket>,
    given: u64,
}

impl Tickets {
    /// Keeps what a check that passed can be settled with.
    pub fn heard(&mut self, check: &Check, reply: &CheckReply, dice: &mut Dice) {
        if check.peek || !reply.passed {
            return;
        }
        let charged = |reply: &RowReply| reply.verdict == Verdict::Fits;
        let pairs = check.rows.iter().zip(&reply.rows).filter(|(_, reply)| charged(reply));
        let ticket = Ticket {
            mark: self.fresh_mark(),
            expires: reply.now.after(Span::from_micros(dice.pick(&[2_000, 400_000, 60_000_000]))),
            rows: pairs.map(|(row, reply)| (row.clone(), reply.at)).collect(),
            reference: check.remember.as_ref().map(|remember| (remember.key, remember.owner)),
        };
        if self.known.len() == TICKETS {
            self.known.remove(0);
        }
        self.known.push(ticket);
    }

    fn fresh_mark(&mut self) -> Key {
        self.given += 1;
        let mut bytes = [0xee; 16];
        bytes[..8].copy_from_slice(&self.given.to_be_bytes());
        Key::from_bytes(bytes)
    }

    /// A settle; none before the first check that passed.
    pub fn settle(&mut self, pace: i64, now: Time, dice: &mut Dice) -> Option<Settle> {
        let newest = self.known.len().checked_sub(1)?;
        let back = if dice.chance(60) { dice.within(0, 3) } else { dice.within(0, 47) } as usize;
        let mut ticket = self.known[newest.saturating_sub(back)].clone();
        if dice.chance(65) {
            let wait = dice.within(0, 50 * pace);
            ticket.expires = now.after(Span::from_micros(dice.pick(&[0, 1, wait, wait, wait])));
            // An old mark with a new end is no real ticket, but a store must look at its own end.
            ticket.mark = if dice.chance(90) { self.fresh_mark() } else { ticket.mark };
        }
        let rows = ticket.rows.iter().enumerate();
        let rows = rows.map(|(place, (row, at))| settle_row(place, row, *at, pace, dice)).collect();
        let reference = ticket.reference.map(|(key, owner)| Box::new(told(key, owner, dice)));
        Some(Settle { mark: ticket.mark, expires: ticket.expires, rows, reference })
    }
}

fn told(key: Key, owner: Key, dice: &mut Dice) -> Told {
    Told { key, owner, status: dice.maybe(80, |dice| dice.within(100, 599) as u16) }
}

fn settle_row(place: usize, row: &CheckRow, at: Time, pace: i64, dice: &mut Dice) -> SettleRow {
    let limit = if dice.chance(6) {
        terms::limit(row.key.to_bytes()[0] - b'A', true, dice)
    } else {
        row.limit.clone()
    };
    let at = if dice.chance(5) { at.after(Span::from_micros(1)) } else { at };
    SettleRow {
        place: place as u8,
        key: row.key,
        family: row.family,
        price: price(row.held, limit.capacity().unwrap_or(1), dice),
        limit,
        held: row.held,
        at,
        debt: dice.chance(40),
        penalty: row.penalty,
        upstream: dice.maybe(4, |dice| Span::from_micros(dice.within(0, 30 * pace))),
        shadow: if dice.chance(5) { !row.shadow } else { row.shadow },
        lease: row.lease,
        bans: (0..dice.pick(&[0, 0, 0, 0, 1, 2])).map(|_| ban(pace, dice)).collect(),
        watch: dice.maybe(25, |dice| Box::new(watch(row.key, pace, dice))),
    }
}

fn price(held: i64, capacity: i64, dice: &mut Dice) -> Price {
    match dice.within(0, 99) {
        0..4 => Price::Drain,
        4..40 => Price::Units(dice.within(0, held)),
        40..50 => Price::Units(held),
        50..95 => Price::Units(held.saturating_add(terms::amount(capacity, dice)).min(EXACT_MAX)),
        _ => Price::Units(dice.pick(&[0, EXACT_MAX - 1])),
    }
}

fn ban(pace: i64, dice: &mut Dice) -> BanRow {
    let spans = [1_500, 40 * pace, 3_600_000_000];
    let after = |dice: &mut Dice| Rate {
        amount: dice.pick(&[1, 2, 3, 4]),
        per: Span::from_micros(dice.pick(&spans)),
    };
    BanRow {
        rule: dice.within(0, 15).min(2) as u8,
        after: dice.maybe(70, after),
        act: by_rule(pace, dice),
    }
}

/// A key is watched over one time, as a rule: another one starts its counts again.
fn watch(key: Key, pace: i64, dice: &mut Dice) -> WatchRow {
    let spans = [240, 24_000, 2_400_000, 86_400_000_000];
    let own = spans[usize::from(key.to_bytes()[0]) % spans.len()];
    WatchRow {
        in_part: dice.chance(45),
        per: Span::from_micros(dice.pick(&[own, own, own, own, own, own, own, 20, 240 * pace])),
        above: Percent::from_hundredths(dice.pick(&[0, 3_333, 5_000, 6_000])),
        min: dice.within(1, 20),
        act: by_rule(pace, dice),
    }
}

fn by_rule(pace: i64, dice: &mut Dice) -> Act {
    let act = terms::act(20 * pace, dice);
    let short = Penalty::fixed(Span::from_micros(dice.within(1, 3 * pace)));
    let penalty = if dice.chance(70) { short } else { act.penalty };
    Act { penalty, origin: Origin::Ban, ..act }
}
