//! The token bucket of section 1: a balance that grows with time, held as an exact fraction.
//!
//! It must not know policies; it gets its terms at every touch, since a tier or a reload may have
//! changed them.

use super::ratio::Ratio;
use super::{Micros, whole_second};

/// Terms of a bucket at one touch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketTerms {
    /// Most tokens it holds.
    pub size: i64,
    /// Tokens per microsecond.
    pub rate: Ratio,
}

impl BucketTerms {
    /// What is missing to full, times the reduced period, must stay within 2^53: the balance never
    /// goes below that.
    pub fn floor(self) -> i64 {
        self.size - Ratio::new(1 << 53, self.rate.denominator()).floor()
    }
}

/// A bucket: untouched, or as it was last written.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    written: Option<Written>,
}

#[derive(Clone, Copy, Debug)]
struct Written {
    at: Micros,
    balance: Ratio,
    terms: BucketTerms,
}

impl Bucket {
    /// The balance at `now` under `terms`.
    pub fn balance(&self, terms: BucketTerms, now: Micros) -> Ratio {
        let size = Ratio::whole(terms.size);
        let Some(written) = self.written.filter(|written| !written.forgotten(now)) else {
            return size;
        };
        // The part of a token that was under way is lost when the terms changed; so is debt below
        // what they can hold.
        let kept = if written.terms.rate == terms.rate {
            written.balance
        } else {
            Ratio::whole(written.balance.floor().max(terms.floor()))
        };
        size.min(kept + Ratio::whole(now - written.at).times(terms.rate))
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

    /// Takes `units`, below zero if need be.
    pub fn charge(&mut self, terms: BucketTerms, units: i64, now: Micros) {
        let balance = self.balance(terms, now);
        self.write(terms, balance - Ratio::whole(units), now);
    }

    /// Gives `units` back, up to the size; says how many whole tokens fitted.
    pub fn give(&mut self, terms: BucketTerms, units: i64, now: Micros) -> i64 {
        let before = self.balance(terms, now);
        let after = Ratio::whole(terms.size).min(before + Ratio::whole(units));
        let given = after.floor() - before.floor();
        if given > 0 {
            self.write(terms, after, now);
        }
        given
    }

    /// Takes all whole tokens; says how many.
    pub fn drain(&mut self, terms: BucketTerms, now: Micros) -> i64 {
        let taken = self.free(terms, now).max(0);
        if taken > 0 {
            self.charge(terms, taken, now);
        }
        taken
    }

    /// A level seen elsewhere at `observed_at`: a lower one wins, a higher one only if nothing was
    /// written since.
    pub fn reconcile(&mut self, terms: BucketTerms, level: i64, observed_at: Micros, now: Micros) {
        let level = level.max(terms.floor());
        let grown = Ratio::whole(level) + Ratio::whole(now - observed_at).times(terms.rate);
        let seen = grown.min(Ratio::whole(terms.size));
        let ours = self.balance(terms, now);
        let unwritten = self.written.is_none_or(|written| written.at <= observed_at);
        if seen < ours || (seen > ours && unwritten) {
            self.write(terms, seen, now);
        }
    }

    fn write(&mut self, terms: BucketTerms, balance: Ratio, now: Micros) {
        self.written = Some(Written { at: now, balance, terms });
    }
}

impl Written {
    /// Whether it is forgotten: at the first whole second at which it is full under the terms it
    /// was written with.
    ///
    /// Under the same terms this changes nothing. Under others it does: the bucket is then full, as
    /// if never touched.
    fn forgotten(&self, now: Micros) -> bool {
        let missing = Ratio::whole(self.terms.size) - self.balance;
        let full_at = self.at + missing.by(self.terms.rate).ceil();
        now >= whole_second(full_at)
    }
}
