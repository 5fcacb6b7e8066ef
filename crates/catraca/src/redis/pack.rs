//! The bytes of a batch, as the script unpacks them: little-endian, without padding, every number
//! a double that holds an integer.
//!
//! Must not hold names: those are `KEYS`.

use catraca_core::batch::{BanRow, Check, CheckRow, Past, Settle, SettleRow, Told, WatchRow};
use catraca_core::cell::block::{Act, Note, Origin};
use catraca_core::limit::{BucketTerms, Limit, Penalty};
use catraca_core::price::Price;

/// A batch in the making.
#[derive(Clone, Debug)]
pub(super) struct Pack {
    bytes: Vec<u8>,
}

/// The script's numbers of the origins.
pub(super) const ORIGINS: [Origin; 4] =
    [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];

impl Pack {
    pub fn new(operation: u8) -> Self {
        Self { bytes: vec![operation] }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn check(&mut self, check: &Check) {
        self.flags(&[check.peek, check.veto, check.remember.is_some()]);
        if let Some(remember) = &check.remember {
            self.numbers(&[remember.span.micros()]);
            self.bytes.extend(remember.owner.to_bytes());
            self.long_text(&remember.ticket);
        }
    }

    pub fn check_row(&mut self, row: &CheckRow) {
        self.algorithm(&row.limit);
        self.flags(&[row.shadow, row.count_denied, row.penalty.is_some()]);
        self.numbers(&[row.held]);
        row.penalty.iter().for_each(|penalty| self.penalty(penalty));
        self.limit(&row.limit, row.lease);
    }

    pub fn settle(&mut self, settle: &Settle) {
        self.numbers(&[settle.expires.micros()]);
        self.flags(&[settle.reference.is_some()]);
        settle.reference.iter().for_each(|told| self.told(told));
    }

    fn told(&mut self, told: &Told) {
        self.bytes.extend(u32::from(told.status.unwrap_or(0)).to_le_bytes());
        self.bytes.extend(told.owner.to_bytes());
    }

    /// A row of a policy, at its place among the policy's rows. Only the first brings what all of
    /// them share.
    pub fn settle_row(&mut self, row: &SettleRow, place: usize, first: &SettleRow) {
        let watch = row.watch.as_ref().filter(|_| place == 0);
        let drain = row.price == Price::Drain;
        let (penalty, upstream) = (row.penalty.is_some(), row.upstream.is_some());
        self.algorithm(&row.limit);
        let follows = place > 0;
        self.flags(&[row.shadow, row.debt, penalty, upstream, follows, watch.is_some(), drain]);
        self.bytes.push(row.place);
        let price = if let Price::Units(units) = row.price { units } else { 0 };
        self.numbers(&[row.held, row.at.micros(), price]);
        row.penalty.iter().for_each(|penalty| self.penalty(penalty));
        row.upstream.iter().for_each(|span| self.numbers(&[span.micros()]));
        self.limit(&row.limit, row.lease);
        let bans = row.bans.len().min(first.bans.len());
        self.bytes.push(u8::try_from(bans).unwrap_or(u8::MAX));
        row.bans[..bans].iter().for_each(|ban| self.ban(ban, place == 0));
        watch.into_iter().for_each(|watch| self.watch(watch));
    }

    fn ban(&mut self, ban: &BanRow, brings_act: bool) {
        self.bytes.push(ban.rule);
        self.flags(&[ban.after.is_some()]);
        ban.after.iter().for_each(|after| self.numbers(&[after.amount, after.per.micros()]));
        if brings_act {
            self.act(&ban.act);
        }
    }

    fn watch(&mut self, watch: &WatchRow) {
        self.flags(&[watch.in_part]);
        let above = i64::from(watch.above.hundredths());
        self.numbers(&[watch.per.micros(), above, watch.min]);
        self.act(&watch.act);
    }

    pub fn act(&mut self, act: &Act) {
        let origin = ORIGINS.iter().position(|origin| *origin == act.origin);
        self.bytes.push(origin.map_or(0, |origin| origin as u8));
        self.flags(&[act.shadow]);
        self.penalty(&act.penalty);
        self.long_text(&pack_note(&act.note));
    }

    /// No level says that nothing is remembered.
    pub fn past(&mut self, past: Option<Past>) {
        let (level, forget) = past.map_or((0, 0), |past| (past.level, past.forget.micros()));
        self.numbers(&[i64::from(level), forget]);
    }

    pub fn event(&mut self, event: &str) {
        let event = &event.as_bytes()[..event.len().min(u16::MAX.into())];
        self.short(event.len());
        self.bytes.extend_from_slice(event);
    }

    pub fn bucket(&mut self, terms: &BucketTerms) {
        self.numbers(&[terms.size, terms.tokens, terms.period]);
        self.bytes.extend(terms.tag().to_le_bytes());
    }

    pub fn numbers(&mut self, numbers: &[i64]) {
        numbers.iter().for_each(|number| self.bytes.extend((*number as f64).to_le_bytes()));
    }

    fn algorithm(&mut self, limit: &Limit) {
        self.bytes.push(match limit {
            Limit::Unlimited => 0,
            Limit::Bucket(_) => 1,
            Limit::Window(_) => 2,
            Limit::Fixed(_) => 3,
            Limit::Inflight(_) => 4,
        });
    }

    fn limit(&mut self, limit: &Limit, lease: u64) {
        match limit {
            Limit::Unlimited => {}
            Limit::Bucket(terms) => self.bucket(terms),
            Limit::Window(windows) => {
                self.bytes.push(u8::try_from(windows.len()).unwrap_or(u8::MAX));
                let windows = windows.iter().take(u8::MAX.into());
                windows.for_each(|window| self.numbers(&[window.limit, window.span.micros()]));
            }
            Limit::Fixed(terms) => {
                self.numbers(&[terms.limit, terms.span.micros()]);
                self.flags(&[terms.aligned]);
            }
            Limit::Inflight(terms) => {
                self.numbers(&[terms.limit, terms.hold.micros()]);
                self.bytes.extend(lease.to_be_bytes());
            }
        }
    }

    fn penalty(&mut self, penalty: &Penalty) {
        let (first, max) = (penalty.first.micros(), penalty.max.micros());
        self.numbers(&[first, penalty.factor, max, penalty.forget.micros()]);
    }

    /// The first flag is the lowest bit.
    fn flags(&mut self, flags: &[bool]) {
        let bits = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag));
        self.bytes.push(bits);
    }

    fn short(&mut self, count: usize) {
        self.bytes.extend(u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
    }

    fn long_text(&mut self, text: &[u8]) {
        self.bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend_from_slice(text);
    }
}

/// A note as the script carries it: nothing for an empty one, else status (0: none), then reason
/// and message, each with its length plus one (0: none).
fn pack_note(note: &Note) -> Vec<u8> {
    let mut pack = Pack { bytes: Vec::new() };
    if *note != Note::default() {
        pack.bytes.extend(note.status.unwrap_or(0).to_le_bytes());
        for text in [&note.reason, &note.message] {
            let length = text.as_ref().map_or(0, |text| text.len() + 1);
            pack.bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
            pack.bytes.extend(text.iter().flat_map(|text| text.bytes()));
        }
    }
    pack.bytes
}
