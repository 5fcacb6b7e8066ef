//! Random settles of admitted checks: first or repeated, in time or late, with every kind of rule.

use catraca_core::batch::{
    BanRow, CheckBatch, CheckReply, CheckRow, ReferenceUpdate, RowReply, RowVerdict, SettleBatch,
    SettleRow, WatchRow,
};
use catraca_core::cell::block::{BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{EXACT_MAX, Penalty};
use catraca_core::policy::OnFailure;
use catraca_core::price::Price;
use catraca_core::rate::{Percent, Rate};
use catraca_core::time::{Span, Time};
use catraca_testkit::generate::Rng;

use super::terms;

/// The maximum number of tickets to remember.
const TICKETS: usize = 48;

/// What a settle needs of an admitted check.
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
    /// Remembers the ticket of an admitted check.
    pub fn learn(&mut self, check: &CheckBatch, reply: &CheckReply, rng: &mut Rng) {
        if check.peek || !reply.passed {
            return;
        }
        let charged = |reply: &RowReply| reply.verdict == RowVerdict::Fits;
        let pairs = check.rows.iter().zip(&reply.rows).filter(|(_, reply)| charged(reply));
        let ticket = Ticket {
            mark: self.fresh_mark(),
            expires: reply.now.after(Span::from_micros(rng.pick(&[2_000, 400_000, 60_000_000]))),
            rows: pairs.map(|(row, reply)| (row.clone(), reply.at)).collect(),
            reference: check.new_reference.as_ref().map(|remember| (remember.key, remember.owner)),
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
    pub fn settle(&mut self, pace: i64, now: Time, rng: &mut Rng) -> Option<SettleBatch> {
        let newest = self.known.len().checked_sub(1)?;
        let back = if rng.chance(60) { rng.within(0, 3) } else { rng.within(0, 47) } as usize;
        let mut ticket = self.known[newest.saturating_sub(back)].clone();
        if rng.chance(65) {
            let wait = rng.within(0, 50 * pace);
            ticket.expires = now.after(Span::from_micros(rng.pick(&[0, 1, wait, wait, wait])));
            // An old marker with a new expiry is not a real ticket, but a store must use the
            // expiry that it stored with the marker.
            ticket.mark = if rng.chance(90) { self.fresh_mark() } else { ticket.mark };
        }
        let rows = ticket.rows.iter().enumerate();
        let rows = rows.map(|(index, (row, at))| settle_row(index, row, *at, pace, rng)).collect();
        let reference =
            ticket.reference.map(|(key, owner)| Box::new(reference_update(key, owner, rng)));
        Some(SettleBatch { marker: ticket.mark, expires: ticket.expires, rows, reference })
    }
}

fn reference_update(key: Key, owner: Key, rng: &mut Rng) -> ReferenceUpdate {
    ReferenceUpdate { key, owner, status: rng.maybe(80, |rng| rng.within(100, 599) as u16) }
}

fn settle_row(index: usize, row: &CheckRow, at: Time, pace: i64, rng: &mut Rng) -> SettleRow {
    let name = row.key.to_bytes()[0] - b'A';
    let limit = if rng.chance(6) { terms::limit(name, true, rng) } else { row.limit.clone() };
    let at = if rng.chance(5) { at.after(Span::from_micros(1)) } else { at };
    SettleRow {
        ticket_index: index as u8,
        key: row.key,
        family: row.family,
        tier_counter: row.tier_counter,
        shared: terms::shared(name, &limit),
        price: price(row.held, limit.capacity().unwrap_or(1), rng),
        limit,
        held: row.held,
        at,
        debt: rng.chance(40),
        penalty: row.penalty,
        upstream: rng.maybe(4, |rng| Span::from_micros(rng.within(0, 30 * pace))),
        shadow: if rng.chance(5) { !row.shadow } else { row.shadow },
        lease: row.lease,
        on_full: OnFailure::Local,
        bans: (0..rng.pick(&[0, 0, 0, 0, 1, 2])).map(|_| ban(pace, rng)).collect(),
        watch: rng.maybe(25, |rng| Box::new(watch(row.key, pace, rng))),
    }
}

fn price(held: i64, capacity: i64, rng: &mut Rng) -> Price {
    match rng.within(0, 99) {
        0..4 => Price::Drain,
        4..40 => Price::Units(rng.within(0, held)),
        40..50 => Price::Units(held),
        50..95 => Price::Units(held.saturating_add(terms::amount(capacity, rng)).min(EXACT_MAX)),
        _ => Price::Units(rng.pick(&[0, EXACT_MAX - 1])),
    }
}

fn ban(pace: i64, rng: &mut Rng) -> BanRow {
    let spans = [1_500, 40 * pace, 3_600_000_000];
    let after = |rng: &mut Rng| Rate {
        amount: rng.pick(&[1, 2, 3, 4]),
        per: Span::from_micros(rng.pick(&spans)),
    };
    BanRow {
        rule: rng.within(0, 15).min(2) as u8,
        after: rng.maybe(70, after),
        proposal: by_rule(pace, rng),
    }
}

/// A key mostly has the same watch period, because another period starts its counts again.
fn watch(key: Key, pace: i64, rng: &mut Rng) -> WatchRow {
    let spans = [240, 24_000, 2_400_000, 86_400_000_000];
    let own = spans[usize::from(key.to_bytes()[0]) % spans.len()];
    WatchRow {
        in_part: rng.chance(45),
        per: Span::from_micros(rng.pick(&[own, own, own, own, own, own, own, 20, 240 * pace])),
        above: Percent::from_hundredths(rng.pick(&[0, 3_333, 5_000, 6_000])),
        min: rng.within(1, 20),
        proposal: by_rule(pace, rng),
    }
}

fn by_rule(pace: i64, rng: &mut Rng) -> BlockProposal {
    let act = terms::act(20 * pace, rng);
    let short = Penalty::without_escalation(Span::from_micros(rng.within(1, 3 * pace)));
    let penalty = if rng.chance(70) { short } else { act.penalty };
    BlockProposal { penalty, origin: Origin::Ban, ..act }
}
