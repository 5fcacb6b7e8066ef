//! Encodes a batch for the script: little-endian without padding, every number a double that holds
//! an integer. The layout of each operation is at the top of its Lua file.
//!
//! Keys are not encoded: the script gets them in `KEYS`.

use catraca_core::algorithm::{Algorithm, SharedBuckets, TermsWriter};
use catraca_core::batch::{
    BanRow, CheckBatch, CheckRow, ReferenceUpdate, SettleBatch, SettleRow, WatchRow,
};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin, PriorOffences};
use catraca_core::limit::{BucketTerms, Limit, Penalty};
use catraca_core::price::Price;
use catraca_core::time::Time;

/// Writes the bytes of one batch.
#[derive(Clone, Debug)]
pub(super) struct BatchEncoder {
    bytes: Vec<u8>,
}

/// The origins of blocks; the script uses their index as number.
pub(super) const ORIGINS: [Origin; 4] =
    [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];

impl BatchEncoder {
    pub fn new(operation: u8) -> Self {
        Self { bytes: vec![operation] }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn check(&mut self, check: &CheckBatch) {
        self.flags(&[check.peek, check.already_denied, check.new_reference.is_some()]);
        if let Some(remember) = &check.new_reference {
            self.numbers(&[remember.span.micros()]);
            self.bytes.extend(remember.owner.to_bytes());
            self.long_text(&remember.ticket);
        }
    }

    pub fn check_row(&mut self, row: &CheckRow) {
        self.algorithm(&row.limit);
        let shared = row.shared.as_deref();
        self.flags(&[row.shadow, row.count_denied, row.penalty.is_some(), shared.is_some()]);
        self.numbers(&[row.held]);
        row.penalty.iter().for_each(|penalty| self.penalty(penalty));
        row.limit.write_terms(self, row.lease);
        shared.into_iter().for_each(|shared| self.buckets(shared.terms()));
    }

    pub fn settle(&mut self, settle: &SettleBatch) {
        self.numbers(&[settle.expires.micros()]);
        self.flags(&[settle.reference.is_some()]);
        settle.reference.iter().for_each(|update| self.reference_update(update));
    }

    /// Status 0 means none.
    fn reference_update(&mut self, update: &ReferenceUpdate) {
        self.bytes.extend(u32::from(update.status.unwrap_or(0)).to_le_bytes());
        self.bytes.extend(update.owner.to_bytes());
    }

    /// Row number `index` of a policy; `first` is the policy's first row. Only the first row
    /// contains the watched ratio and the acts of the bans, which all rows of the policy share.
    pub fn settle_row(&mut self, row: &SettleRow, index: usize, first: &SettleRow) {
        let is_first = index == 0;
        let watch = row.watch.as_ref().filter(|_| is_first);
        self.algorithm(&row.limit);
        self.flags(&[
            row.shadow,
            row.debt,
            row.penalty.is_some(),
            row.upstream.is_some(),
            !is_first,
            watch.is_some(),
            row.price == Price::Drain,
            row.shared.is_some(),
        ]);
        self.bytes.push(row.ticket_index);
        let price = if let Price::Units(units) = row.price { units } else { 0 };
        self.numbers(&[row.held, row.at.micros(), price]);
        row.penalty.iter().for_each(|penalty| self.penalty(penalty));
        row.upstream.iter().for_each(|span| self.numbers(&[span.micros()]));
        row.limit.write_terms(self, row.lease);
        row.shared.iter().for_each(|shared| self.buckets(shared.terms()));
        // The first row says which bans there are; a row with more is cut to that number.
        let bans = row.bans.len().min(first.bans.len());
        self.bytes.push(u8::try_from(bans).unwrap_or(u8::MAX));
        row.bans[..bans].iter().for_each(|ban| self.ban(ban, is_first));
        watch.into_iter().for_each(|watch| self.watch(watch));
    }

    fn ban(&mut self, ban: &BanRow, with_act: bool) {
        self.bytes.push(ban.rule);
        self.flags(&[ban.after.is_some()]);
        ban.after.iter().for_each(|after| self.numbers(&[after.amount, after.per.micros()]));
        if with_act {
            self.act(&ban.proposal);
        }
    }

    fn watch(&mut self, watch: &WatchRow) {
        self.flags(&[watch.in_part]);
        let above = i64::from(watch.above.hundredths());
        self.numbers(&[watch.per.micros(), above, watch.min]);
        self.act(&watch.proposal);
    }

    pub fn act(&mut self, act: &BlockProposal) {
        let origin = ORIGINS.iter().position(|origin| *origin == act.origin);
        self.bytes.push(origin.map_or(0, |origin| origin as u8));
        self.flags(&[act.shadow]);
        self.penalty(&act.penalty);
        self.long_text(&encode_note(&act.note));
    }

    /// Level 0 means that there are no prior offences.
    pub fn past(&mut self, past: Option<PriorOffences>) {
        let level = past.map_or(0, |past| past.level);
        let forget = past.map_or(0, |past| past.forget.micros());
        let since_end = past.map_or(0, |past| past.since_end.micros());
        self.numbers(&[i64::from(level), forget, since_end]);
    }

    /// The end of the block to release; 0 for whichever end it has.
    pub fn only_until(&mut self, until: Option<Time>) {
        self.numbers(&[until.map_or(0, Time::micros)]);
    }

    /// Cut to what a length of two bytes can say.
    pub fn event(&mut self, event: &str) {
        let event = &event.as_bytes()[..event.len().min(u16::MAX.into())];
        self.short(event.len());
        self.bytes.extend_from_slice(event);
    }

    /// A bucket with those of the other tiers that share it.
    pub fn bucket(&mut self, terms: &BucketTerms, shared: Option<&SharedBuckets>) {
        terms.write_terms(self, 0);
        self.buckets(shared.map_or(&[], SharedBuckets::terms));
    }

    /// Without the tags of their refills, since only the time until they are full is needed.
    fn buckets(&mut self, buckets: &[BucketTerms]) {
        let buckets = &buckets[..buckets.len().min(u8::MAX.into())];
        self.bytes.push(buckets.len() as u8);
        buckets.iter().for_each(|terms| self.numbers(&[terms.size, terms.tokens, terms.period]));
    }

    /// The number of the algorithm is that of its cell; 0 for none.
    fn algorithm(&mut self, limit: &Limit) {
        self.bytes.push(limit.kind().map_or(0, |kind| kind as u8));
    }

    fn penalty(&mut self, penalty: &Penalty) {
        self.numbers(&[
            penalty.first.micros(),
            penalty.factor,
            penalty.max.micros(),
            penalty.forget.micros(),
        ]);
    }

    /// Packs flags into one byte; the first flag is the lowest bit.
    fn flags(&mut self, flags: &[bool]) {
        let bits = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag));
        self.bytes.push(bits);
    }

    /// A length in two bytes.
    fn short(&mut self, count: usize) {
        self.bytes.extend(u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
    }

    /// A text behind its length in four bytes.
    fn long_text(&mut self, text: &[u8]) {
        self.bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend_from_slice(text);
    }
}

impl TermsWriter for BatchEncoder {
    /// Numbers as doubles: the script knows no other type. All of them are at most 2^53.
    fn numbers(&mut self, numbers: &[i64]) {
        numbers.iter().for_each(|number| self.bytes.extend((*number as f64).to_le_bytes()));
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

/// A note, whose bytes the script stores and returns unread: nothing for an empty one, else the
/// status (0: none), then reason and message, each behind its length plus one (0: none).
fn encode_note(note: &BlockNote) -> Vec<u8> {
    let mut encoder = BatchEncoder { bytes: Vec::new() };
    if *note != BlockNote::default() {
        encoder.bytes.extend(note.status.unwrap_or(0).to_le_bytes());
        for text in [&note.reason, &note.message] {
            let length = text.as_ref().map_or(0, |text| text.len() + 1);
            encoder.bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
            encoder.bytes.extend(text.iter().flat_map(|text| text.bytes()));
        }
    }
    encoder.bytes
}
