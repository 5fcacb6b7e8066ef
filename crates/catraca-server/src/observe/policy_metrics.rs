//! Counters by policy: atomics for each policy of the catalog, found without a lock.
//!
//! Only the catalog adds policies, so a caller cannot create series. Policies that a reload removed
//! stay until the next reload: a decision in progress still counts there, and a scrape reads their
//! last values.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use catraca::core::cell::block::Origin;
use catraca::core::cell::ratio_watch::RatioWatch;
use catraca::core::policy::{Mode, Name, Policy};
use catraca::core::time::Span;
use catraca::{Catalog, Reason, Time};
use parking_lot::Mutex;

/// Lists all variants of an enum. A variant that is missing or out of order does not compile, so
/// `variant as usize` is always an index into the list, and into counters of its length.
macro_rules! all_variants {
    ($(#[$doc:meta])* $name:ident: $kind:ident = [$($variant:ident),+ $(,)?]) => {
        $(#[$doc])*
        pub const $name: &[$kind] = &[$($kind::$variant),+];

        const _: () = {
            // Exhaustive: a variant that is not listed is an error here.
            const fn index(value: $kind) -> usize {
                match value {
                    $($kind::$variant => value as usize),+
                }
            }
            let mut position = 0;
            while position < $name.len() {
                assert!(index($name[position]) == position, "not in the order of the variants");
                position += 1;
            }
        };
    };
}

all_variants! {
    /// All modes.
    MODES: Mode = [Enforce, Shadow, Off]
}
all_variants! {
    /// All origins of a block.
    ORIGINS: Origin = [Excess, Ban, Operator, Upstream]
}

/// Ratios are stored as integers, in millionths.
pub const RATIO_SCALE: i64 = 1_000_000;

/// The counters of all policies of a catalog.
pub struct PolicyMetricsTable {
    by_name: HashMap<Name, Arc<PolicyMetrics>>,
    /// Counters of decisions that name no policy.
    without_policy: Arc<PolicyMetrics>,
    /// Whether any policy has `low_water`; without one a check skips the lookup of every row.
    any_low_water: bool,
    /// Policies of the previous catalog that the current one does not have.
    removed: Vec<Name>,
}

/// The counters of one policy. Aligned to two cache lines, so that two policies never share one
/// (adjacent lines are prefetched in pairs).
#[repr(align(128))]
#[derive(Default)]
pub struct PolicyMetrics {
    /// Decisions that name this policy.
    pub decisions: ReasonModeCounts,
    /// Rows of this policy without room, whether or not they decided.
    pub denials: ReasonModeCounts,
    /// Blocks started or extended, by origin: enforced ones, then shadow ones.
    pub blocks: [[AtomicU64; ORIGINS.len()]; 2],
    /// Times that a key fell below `low_water`.
    pub low_water: AtomicU64,
    /// Ban conditions that could not be evaluated.
    pub conditions_failed: AtomicU64,
    /// Ban storms, for a policy with `ban_storm`.
    pub storms: Option<AtomicU64>,
    /// The lowest remaining share, for a policy with `low_water`.
    pub lowest: Option<LowestRemaining>,
    /// The watched ratio, for a policy with `watch`.
    pub watch: Option<WatchedRatio>,
}

/// One counter for each mode and reason.
#[derive(Default)]
pub struct ReasonModeCounts([[AtomicU64; Reason::ALL.len()]; MODES.len()]);

/// The lowest share of the limit that remained for any key, in the current minute and in the one
/// before. Stored as the used share, so that zero means "no check yet".
#[derive(Default)]
pub struct LowestRemaining {
    /// The current minute since the epoch.
    minute: AtomicI64,
    /// The highest used share in it, in millionths.
    used_now: AtomicI64,
    /// The same of the minute before.
    used_before: AtomicI64,
}

/// The outcomes of all keys together, over the `per` of the policy's `watch`.
pub struct WatchedRatio {
    per: Span,
    slices: Mutex<Option<RatioWatch>>,
    /// Outcomes that count in the whole.
    pub whole: AtomicU64,
    /// Those of them that count in the share.
    pub share: AtomicU64,
}

impl PolicyMetricsTable {
    /// The counters for a catalog; policies that were in `earlier` keep their counts.
    pub fn new(catalog: &Catalog, earlier: Option<&Self>) -> Self {
        let mut by_name: HashMap<Name, Arc<PolicyMetrics>> = HashMap::new();
        if let Some(earlier) = earlier {
            let stays = earlier.by_name.iter().filter(|(name, _)| !earlier.removed.contains(name));
            by_name.extend(stays.map(|(name, metrics)| (Name::clone(name), Arc::clone(metrics))));
        }
        let is_removed = |name: &&Name| catalog.find(name).is_none();
        let removed: Vec<Name> = by_name.keys().filter(is_removed).cloned().collect();
        for policy in &catalog.policies {
            let known = by_name.get(&policy.name).filter(|metrics| metrics.fits(policy)).cloned();
            let metrics = known.unwrap_or_else(|| Arc::new(PolicyMetrics::new(policy)));
            by_name.insert(policy.name.clone(), metrics);
        }
        let without_policy = earlier.map(|earlier| Arc::clone(&earlier.without_policy));
        let without_policy = without_policy.unwrap_or_default();
        let any_low_water = by_name.values().any(|metrics| metrics.lowest.is_some());
        Self { by_name, without_policy, any_low_water, removed }
    }

    /// The counters of a policy; for one that is not in the catalog, those without a policy.
    pub fn policy(&self, name: &str) -> &PolicyMetrics {
        self.by_name.get(name).unwrap_or(&self.without_policy)
    }

    /// The counters of decisions that name no policy.
    pub fn without_policy(&self) -> &PolicyMetrics {
        &self.without_policy
    }

    /// All counters by policy name; the name is empty for decisions that name none.
    pub fn all(&self) -> impl Iterator<Item = (&str, &PolicyMetrics)> {
        let without_policy = std::iter::once(("", &*self.without_policy));
        let policies = self.by_name.iter().map(|(name, metrics)| (&**name, &**metrics));
        without_policy.chain(policies)
    }

    /// Whether any policy has `low_water`.
    pub fn any_low_water(&self) -> bool {
        self.any_low_water
    }
}

impl PolicyMetrics {
    fn new(policy: &Policy) -> Self {
        Self {
            storms: policy.ban_storm.map(|_| AtomicU64::default()),
            lowest: policy.low_water.map(|_| LowestRemaining::default()),
            watch: policy.watch.as_ref().map(|watch| WatchedRatio::new(watch.per)),
            ..Self::default()
        }
    }

    /// Whether these counters fit the policy; if not, its settings have changed and it starts at
    /// zero.
    fn fits(&self, policy: &Policy) -> bool {
        self.storms.is_some() == policy.ban_storm.is_some()
            && self.lowest.is_some() == policy.low_water.is_some()
            && self.watch.as_ref().map(|watch| watch.per)
                == policy.watch.as_ref().map(|watch| watch.per)
    }

    /// Counts a block.
    pub fn count_block(&self, origin: Origin, shadow: bool) {
        self.blocks[usize::from(shadow)][origin as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl ReasonModeCounts {
    /// Counts one.
    pub fn add(&self, reason: Reason, mode: Mode) {
        self.0[mode as usize][reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// All counts that are not zero.
    pub fn counts(&self) -> impl Iterator<Item = (Reason, Mode, u64)> {
        let by_mode = MODES.iter().zip(&self.0);
        let counts = by_mode.flat_map(|(mode, by_reason)| {
            let by_reason = Reason::ALL.iter().zip(by_reason);
            by_reason.map(|(reason, count)| (*reason, *mode, count.load(Ordering::Relaxed)))
        });
        counts.filter(|(.., count)| *count > 0)
    }
}

impl LowestRemaining {
    /// Notes what remains of a limit after a check.
    pub fn note(&self, at: Time, remaining: i64, limit: i64) {
        let share =
            i128::from(remaining.max(0)) * i128::from(RATIO_SCALE) / i128::from(limit.max(1));
        let used = RATIO_SCALE - i64::try_from(share).unwrap_or(RATIO_SCALE).min(RATIO_SCALE);
        self.start_minute(at);
        self.used_now.fetch_max(used, Ordering::Relaxed);
    }

    /// The lowest share that remained, in millionths.
    pub fn share(&self, at: Time) -> i64 {
        self.start_minute(at);
        let now = self.used_now.load(Ordering::Relaxed);
        let before = self.used_before.load(Ordering::Relaxed);
        RATIO_SCALE - now.max(before)
    }

    /// Moves the figures on when a new minute has begun. A check that races with it may be noted in
    /// the wrong one of the two minutes, which does not matter: both are shown together.
    fn start_minute(&self, at: Time) {
        let minute = minute(at);
        let current = self.minute.load(Ordering::Relaxed);
        if minute <= current {
            return;
        }
        // One of several threads moves them on.
        let exchanged =
            self.minute.compare_exchange(current, minute, Ordering::Relaxed, Ordering::Relaxed);
        if exchanged.is_ok() {
            let last = self.used_now.swap(0, Ordering::Relaxed);
            let before = if minute == current + 1 { last } else { 0 };
            self.used_before.store(before, Ordering::Relaxed);
        }
    }
}

fn minute(at: Time) -> i64 {
    at.micros().div_euclid(60_000_000)
}

impl WatchedRatio {
    fn new(per: Span) -> Self {
        Self {
            per,
            slices: Mutex::default(),
            whole: AtomicU64::default(),
            share: AtomicU64::default(),
        }
    }

    /// Counts an outcome.
    pub fn count(&self, at: Time, in_part: bool) {
        self.whole.fetch_add(1, Ordering::Relaxed);
        self.share.fetch_add(u64::from(in_part), Ordering::Relaxed);
        let mut slices = self.slices.lock();
        slices.get_or_insert_with(|| RatioWatch::new(self.per, at)).count(self.per, at, in_part);
    }

    /// The ratio over the last `per`; none without outcomes in it.
    pub fn ratio(&self, at: Time) -> Option<f64> {
        let (part, whole) = self.slices.lock().as_mut().map(|slices| slices.totals_at(at))?;
        (whole > 0).then(|| part as f64 / whole as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time::from_micros(second * 1_000_000)
    }

    #[test]
    fn counts_survive_a_reload_and_removed_policies_stay_for_one_more() {
        let catalog = |names: &[&str]| {
            let policy = |name: &&str| format!("[policy.{name}]\nby = []\nwindow = '1 per 1h'\n");
            Catalog::parse(&names.iter().map(policy).collect::<String>()).unwrap()
        };
        let names = |table: &PolicyMetricsTable| {
            let mut names: Vec<String> = table.all().map(|(name, _)| name.to_owned()).collect();
            names.sort();
            names.join(",")
        };
        let first = PolicyMetricsTable::new(&catalog(&["a", "b"]), None);
        first.policy("a").decisions.add(Reason::Ok, Mode::Enforce);
        first.policy("made up").decisions.add(Reason::Ok, Mode::Enforce);
        let second = PolicyMetricsTable::new(&catalog(&["a", "c"]), Some(&first));
        assert_eq!(names(&second), ",a,b,c");
        let third = PolicyMetricsTable::new(&catalog(&["a", "c"]), Some(&second));
        assert_eq!(names(&third), ",a,c");
        let counts: Vec<_> = third.policy("a").decisions.counts().collect();
        assert_eq!(counts, [(Reason::Ok, Mode::Enforce, 1)]);
        assert_eq!(third.without_policy().decisions.counts().count(), 1);
    }

    #[test]
    fn the_lowest_share_is_that_of_this_minute_and_the_last() {
        let lowest = LowestRemaining::default();
        assert_eq!(lowest.share(at(0)), RATIO_SCALE);
        lowest.note(at(60), 20, 100);
        lowest.note(at(61), 90, 100);
        assert_eq!(lowest.share(at(119)), 200_000);
        assert_eq!(lowest.share(at(120)), 200_000);
        lowest.note(at(121), -5, 100);
        assert_eq!(lowest.share(at(180)), 0);
        assert_eq!(lowest.share(at(240)), RATIO_SCALE);
    }

    #[test]
    fn the_watched_ratio_is_that_of_its_own_time() {
        let watched = WatchedRatio::new(Span::from_secs(24));
        assert_eq!(watched.ratio(at(0)), None);
        for second in 0..4 {
            watched.count(at(second), second == 3);
        }
        assert_eq!(watched.ratio(at(4)), Some(0.25));
        assert_eq!(watched.ratio(at(26)), Some(1.0));
        assert_eq!(watched.ratio(at(90)), None);
    }
}
