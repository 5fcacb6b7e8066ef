//! Remembers checks that a block or the blocklist denied, and answers the same checks without a
//! call.
//!
//! Never a denial for excess, and each for a bounded time: then the server is asked again, so a
//! release by an operator is noticed. Keys are digests, because the
//! memory of a program is no place for the values of its callers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use catraca_core::decision::{Decision, Reason};
use catraca_core::request::Check;
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::engine::random_bytes;

/// Checks that were denied by a block.
pub(super) struct BlockedChecks {
    entries: Mutex<BlockedEntries>,
    /// The number of entries, readable without the lock.
    count: AtomicUsize,
    entries_max: usize,
    /// How long an entry answers; zero turns the cache off.
    staleness: Duration,
    secret: [u8; 32],
}

#[derive(Default)]
struct BlockedEntries {
    by_check: HashMap<[u8; 16], BlockedEntry>,
    /// The last time that expired entries were removed because there was no room.
    swept_at: Option<Instant>,
}

struct BlockedEntry {
    decision: Decision,
    asked_at: Instant,
    /// The end of the entry: when the check would pass, or its staleness has passed.
    until: Instant,
}

impl BlockedChecks {
    pub fn new(entries_max: usize, staleness: Duration) -> Self {
        let entries = Mutex::default();
        let count = AtomicUsize::new(0);
        Self { entries, count, entries_max, staleness, secret: random_bytes() }
    }

    /// Whether no check is remembered.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// The denial of a check that a block denied a short time ago, with the waits that are left.
    pub fn find(&self, check: &Check<'_>, at: Time) -> Option<Decision> {
        if self.is_empty() {
            return None;
        }
        let key = self.key(check);
        let now = Instant::now();
        let mut entries = self.entries.lock();
        let entry = entries.by_check.get(&key)?;
        if now >= entry.until {
            entries.by_check.remove(&key);
            self.count.store(entries.by_check.len(), Ordering::Relaxed);
            return None;
        }
        Some(entry.answer(now, at))
    }

    /// Remembers a check that a block or the blocklist denied.
    pub fn note(&self, check: &Check<'_>, decision: &Decision, asked_at: Instant) {
        if !is_lasting(decision) || self.staleness.is_zero() || self.entries_max == 0 {
            return;
        }
        // Without an end, the block lasts until it is released.
        let left = decision.retry_after.map_or(self.staleness, duration).min(self.staleness);
        let until = asked_at + left;
        let entry = BlockedEntry { decision: decision.clone(), asked_at, until };
        let key = self.key(check);
        let mut entries = self.entries.lock();
        if entries.by_check.len() >= self.entries_max {
            entries.sweep(self.staleness);
        }
        if entries.by_check.len() < self.entries_max {
            entries.by_check.insert(key, entry);
        }
        self.count.store(entries.by_check.len(), Ordering::Relaxed);
    }

    /// The digest of everything that a denial depends on. The reference does not count: a denied
    /// check stores none.
    fn key(&self, check: &Check<'_>) -> [u8; 16] {
        let mut digest = blake3::Hasher::new_keyed(&self.secret);
        let mut text = |text: &str| {
            // The length distinguishes ("ab", "c") from ("a", "bc").
            digest.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        text(check.gate);
        for (name, value) in check.subject.pairs() {
            text(name);
            text(&value);
        }
        digest.update(&check.cost.unwrap_or(-1).to_le_bytes()).update(&[u8::from(check.lists)]);
        let mut key = [0; 16];
        key.copy_from_slice(&digest.finalize().as_bytes()[..16]);
        key
    }
}

impl BlockedEntries {
    /// Removes expired entries, at most once in a while: with more blocked callers than entries,
    /// every check would look through all of them.
    fn sweep(&mut self, staleness: Duration) {
        let now = Instant::now();
        if self.swept_at.is_some_and(|swept_at| now < swept_at + staleness / 4) {
            return;
        }
        self.swept_at = Some(now);
        self.by_check.retain(|_, entry| now < entry.until);
    }
}

impl BlockedEntry {
    fn answer(&self, now: Instant, at: Time) -> Decision {
        let passed = now.duration_since(self.asked_at).as_micros();
        let passed = Span::from_micros(i64::try_from(passed).unwrap_or(i64::MAX));
        let mut decision = self.decision.clone();
        decision.cached = true;
        decision.at = at;
        decision.retry_after = decision.retry_after.map(|wait| shorten(wait, passed));
        decision.reset_after = decision.reset_after.map(|wait| shorten(wait, passed));
        for row in &mut decision.rows {
            row.retry_after = row.retry_after.map(|wait| shorten(wait, passed));
            row.reset_after = row.reset_after.map(|wait| shorten(wait, passed));
            for window in &mut row.windows {
                window.retry_after = window.retry_after.map(|wait| shorten(wait, passed));
                window.reset_after = window.reset_after.map(|wait| shorten(wait, passed));
            }
        }
        decision
    }
}

/// Whether the same check is denied again in any case. A check that a block denies is counted by no
/// policy, so the server need not see it.
fn is_lasting(decision: &Decision) -> bool {
    matches!(decision.reason, Reason::Blocked | Reason::Blocklisted) && !decision.degraded
}

fn shorten(wait: Span, passed: Span) -> Span {
    Span::from_micros((wait.micros() - passed.micros()).max(0))
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.micros().max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use catraca_core::catalog::Catalog;
    use tokio::time::advance;

    use super::*;
    use crate::engine::Engine;

    const CATALOG: &str = "[policy.login]\nby = ['ip']\nwindow = '1 per 1m'\nblock = '15m'\n\
                           [policy.short]\nby = ['ip']\nwindow = '1 per 1s'\nblock = '2s'";

    fn login(ip: &str) -> Check<'_> {
        Check::new("login", [("ip", ip)])
    }

    /// A decision with the reason `blocked`.
    fn denial(engine: &Engine, check: &Check<'_>) -> Decision {
        let mut decision = engine.check(check).unwrap();
        while decision.reason != Reason::Blocked {
            decision = engine.check(check).unwrap();
        }
        decision
    }

    fn engine() -> Engine {
        Engine::new(Catalog::parse(CATALOG).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_block_answers_for_its_staleness_and_no_longer() {
        let blocked = BlockedChecks::new(10, Duration::from_secs(5));
        let check = login("198.51.100.7");
        let denial = denial(&engine(), &check);
        assert!(blocked.find(&check, Time::ZERO).is_none());
        blocked.note(&check, &denial, Instant::now());
        advance(Duration::from_millis(4_999)).await;
        let cached = blocked.find(&check, Time::from_micros(7)).unwrap();
        assert!(cached.cached && !cached.allowed && cached.at == Time::from_micros(7));
        let before = denial.retry_after.unwrap().micros();
        assert_eq!(cached.retry_after.unwrap().micros(), before - 4_999_000);
        assert!(blocked.find(&login("198.51.100.8"), Time::ZERO).is_none());
        assert!(blocked.find(&check.clone().cost(2), Time::ZERO).is_none());
        assert!(blocked.find(&check.clone().reference("r"), Time::ZERO).is_some());
        advance(Duration::from_millis(1)).await;
        assert!(blocked.find(&check, Time::ZERO).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_block_that_ends_sooner_answers_until_its_end() {
        let blocked = BlockedChecks::new(10, Duration::from_secs(5));
        let check = Check::new("short", [("ip", "::1")]);
        let denial = denial(&engine(), &check);
        blocked.note(&check, &denial, Instant::now());
        advance(Duration::from_millis(1_900)).await;
        assert!(blocked.find(&check, Time::ZERO).is_some());
        advance(Duration::from_millis(200)).await;
        assert!(blocked.find(&check, Time::ZERO).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn only_blocks_are_remembered_and_not_more_than_fit() {
        let engine = engine();
        let blocked = BlockedChecks::new(2, Duration::from_secs(5));
        let allowed = engine.check(&login("198.51.100.1")).unwrap();
        blocked.note(&login("198.51.100.1"), &allowed, Instant::now());
        assert!(blocked.find(&login("198.51.100.1"), Time::ZERO).is_none());
        let is_found = |ip: &str| blocked.find(&login(ip), Time::ZERO).is_some();
        for ip in ["198.51.100.2", "198.51.100.3", "198.51.100.4"] {
            blocked.note(&login(ip), &denial(&engine, &login(ip)), Instant::now());
        }
        assert!(is_found("198.51.100.2") && is_found("198.51.100.3") && !is_found("198.51.100.4"));
        advance(Duration::from_secs(6)).await;
        let check = login("198.51.100.4");
        blocked.note(&check, &denial(&engine, &check), Instant::now());
        assert!(is_found("198.51.100.4") && !is_found("198.51.100.2"));
        let off = BlockedChecks::new(10, Duration::ZERO);
        off.note(&check, &denial(&engine, &check), Instant::now());
        assert!(off.find(&check, Time::ZERO).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_blocklist_is_remembered_and_no_policy_counts_a_blocked_check() {
        let catalog = "[[blocklist]]\nrange = '203.0.113.0/24'\n\
                       [policy.a]\nby = ['ip']\nwindow = '1 per 1m'\nblock = '15m'\n\
                       [policy.b]\nby = ['ip']\nwindow = '1 per 1m'\ncount_denied = true\n\
                       [gate.login]\npolicies = ['a', 'b']";
        let engine = Engine::new(Catalog::parse(catalog).unwrap());
        let blocked = BlockedChecks::new(10, Duration::from_secs(5));
        let listed = login("203.0.113.1");
        let denied = engine.check(&listed).unwrap();
        assert_eq!(denied.reason, Reason::Blocklisted);
        blocked.note(&listed, &denied, Instant::now());
        assert!(blocked.find(&listed, Time::ZERO).is_some());
        let denied = denial(&engine, &login("198.51.100.1"));
        assert!(denied.rows.iter().all(|row| row.charged == 0), "{denied:?}");
    }
}
