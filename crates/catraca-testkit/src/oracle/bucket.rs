//! The token bucket of section 1: a balance that grows with time, as an exact fraction.
//!
//! Every call passes the terms, because a tier or a reload may have changed them.

use super::ratio::Ratio;
use super::{Micros, whole_second};

/// The terms of a bucket during one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketTerms {
    /// The maximum balance.
    pub size: i64,
    /// Tokens per microsecond.
    pub rate: Ratio,
}

impl BucketTerms {
    /// The lowest balance: the tokens missing to full, times the reduced period, must stay within
    /// 2^53, which every store computes exactly.
    pub fn floor(self) -> i64 {
        self.size - Ratio::new(1 << 53, self.rate.denominator()).floor()
    }
}

/// A bucket: full if never written, else as last written.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    written: Option<StoredLevel>,
}

#[derive(Clone, Debug)]
struct StoredLevel {
    at: Micros,
    balance: Ratio,
    terms: BucketTerms,
    /// The terms of all tiers that shared the bucket at the last write.
    kept: Vec<BucketTerms>,
}

impl Bucket {
    /// The balance at `now` under `terms`.
    pub fn balance(&self, terms: BucketTerms, now: Micros) -> Ratio {
        let size = Ratio::whole(terms.size);
        let Some(written) = self.written.as_ref().filter(|written| !written.is_expired(now)) else {
            return size;
        };
        // When the rate changed, the fraction of a token is lost, and debt below the new floor.
        let level = if written.terms.rate == terms.rate {
            written.balance
        } else {
            Ratio::whole(written.balance.floor().max(terms.floor()))
        };
        size.min(level + Ratio::whole(now - written.at).times(terms.rate))
    }

    /// Whole tokens at `now`.
    pub fn free(&self, terms: BucketTerms, now: Micros) -> i64 {
        self.balance(terms, now).floor()
    }

    /// The first instant with at least `need` whole tokens.
    pub fn ready_at(&self, terms: BucketTerms, need: i64, now: Micros) -> Micros {
        let missing = Ratio::whole(need) - self.balance(terms, now);
        if missing <= Ratio::whole(0) { now } else { now + missing.by(terms.rate).ceil() }
    }

    /// Takes `units`; the balance may become negative.
    pub fn charge(&mut self, terms: BucketTerms, kept: &[BucketTerms], units: i64, now: Micros) {
        let balance = self.balance(terms, now);
        self.write(terms, kept, balance - Ratio::whole(units), now);
    }

    /// Returns `units` to the bucket, up to its size; returns how many whole tokens it gained.
    pub fn give(
        &mut self,
        terms: BucketTerms,
        kept: &[BucketTerms],
        units: i64,
        now: Micros,
    ) -> i64 {
        let before = self.balance(terms, now);
        let after = Ratio::whole(terms.size).min(before + Ratio::whole(units));
        let given = after.floor() - before.floor();
        if given > 0 {
            self.write(terms, kept, after, now);
        }
        given
    }

    /// Takes all whole tokens; returns how many.
    pub fn drain(&mut self, terms: BucketTerms, kept: &[BucketTerms], now: Micros) -> i64 {
        let taken = self.free(terms, now).max(0);
        if taken > 0 {
            self.charge(terms, kept, taken, now);
        }
        taken
    }

    /// Applies a level that the upstream observed at an instant: a lower one always wins, a higher
    /// one only if the bucket was not written since.
    pub fn reconcile(
        &mut self,
        terms: BucketTerms,
        kept: &[BucketTerms],
        (level, observed_at): (i64, Micros),
        now: Micros,
    ) {
        let level = level.max(terms.floor());
        // The observed level has been refilled since then.
        let grown = Ratio::whole(level) + Ratio::whole(now - observed_at).times(terms.rate);
        let observed = grown.min(Ratio::whole(terms.size));
        let ours = self.balance(terms, now);
        let unwritten = self.written.as_ref().is_none_or(|written| written.at <= observed_at);
        if observed < ours || (observed > ours && unwritten) {
            self.write(terms, kept, observed, now);
        }
    }

    fn write(&mut self, terms: BucketTerms, kept: &[BucketTerms], balance: Ratio, now: Micros) {
        self.written = Some(StoredLevel { at: now, balance, terms, kept: kept.to_vec() });
    }
}

impl StoredLevel {
    /// Whether the level has expired: at the first whole second at which the bucket is full under
    /// the terms it was written with, and under those of all tiers that shared it then. Under the
    /// others a fraction of a token does not count, and debt only down to their floor.
    ///
    /// Under the same terms the expiry is not visible. Under others it is: the bucket is then full,
    /// as if never written.
    fn is_expired(&self, now: Micros) -> bool {
        let full_at = |terms: BucketTerms, balance: Ratio| {
            let missing = Ratio::whole(terms.size) - balance;
            self.at + missing.by(terms.rate).ceil().max(0)
        };
        let mut last = full_at(self.terms, self.balance);
        for &terms in self.kept.iter().filter(|terms| **terms != self.terms) {
            last = last.max(full_at(terms, Ratio::whole(self.balance.floor().max(terms.floor()))));
        }
        now >= whole_second(last)
    }
}
