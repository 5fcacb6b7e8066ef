//! Counters by policy: one row of atomics for each policy of the catalog, found without a lock.
//!
//! Rows come from the catalog alone, so no caller can make one. The rows of the catalog before the
//! one in force stay until the next change: whoever is deciding by it still counts, and a scraper
//! sees their last figures. Must not keep anything of a caller.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use catraca::core::cell::block::Origin;
use catraca::core::cell::watch::Watch as Slices;
use catraca::core::policy::{Mode, Name, Policy};
use catraca::core::time::Span;
use catraca::{Catalog, Reason, Time};
use parking_lot::Mutex;

/// Every reason, by its place.
pub const REASONS: [Reason; 8] = [
    Reason::Ok,
    Reason::OverLimit,
    Reason::Blocked,
    Reason::Blocklisted,
    Reason::Allowlisted,
    Reason::TooCostly,
    Reason::Missing,
    Reason::Unavailable,
];
/// Every mode, by its place.
pub const MODES: [Mode; 3] = [Mode::Enforce, Mode::Shadow, Mode::Off];
/// Every origin of a block, by its place.
pub const ORIGINS: [Origin; 4] = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
/// A share of one, in the finest steps that are shown.
pub const WHOLE: i64 = 1_000_000;

/// The rows of a catalog.
pub struct Rows {
    by_name: HashMap<Name, Arc<Row>>,
    /// For what no policy decided.
    nobody: Arc<Row>,
    /// Whether any policy has a low-water mark, so that most catalogs pay nothing for it.
    any_low_water: bool,
    /// The names of the catalog that this one took the place of.
    before: Vec<Name>,
}

/// What is counted of one policy. Aligned, so that two policies never share a cache line.
#[repr(align(128))]
#[derive(Default)]
pub struct Row {
    /// Decisions that name this policy.
    pub decisions: Grid,
    /// Its own rows that had no room.
    pub denials: Grid,
    /// Blocks started or lengthened: enforced ones, then shadow ones.
    pub blocks: [[AtomicU64; ORIGINS.len()]; 2],
    /// Falls below the low-water mark.
    pub low_water: AtomicU64,
    /// Ban storms, for a policy that watches for them.
    pub storms: Option<AtomicU64>,
    /// The least that remained, for a policy with a low-water mark.
    pub lowest: Option<Lowest>,
    /// Outcomes in the watched ratio, for a policy that has one.
    pub watch: Option<Watched>,
}

/// One count for each reason and mode.
#[derive(Default)]
pub struct Grid([[AtomicU64; REASONS.len()]; MODES.len()]);

/// The least share of the limit that remained to any one key, this minute and the one before.
#[derive(Default)]
pub struct Lowest {
    minute: AtomicI64,
    now: AtomicI64,
    before: AtomicI64,
}

/// The outcomes of all keys together, over the time that the policy watches.
pub struct Watched {
    per: Span,
    slices: Mutex<Option<Slices>>,
    /// Outcomes that count in the whole.
    pub whole: AtomicU64,
    /// Those of them that count in the share.
    pub share: AtomicU64,
}

impl Rows {
    /// The rows of a catalog, with what earlier rows have counted.
    pub fn new(catalog: &Catalog, earlier: Option<&Self>) -> Self {
        let mut by_name = HashMap::new();
        if let Some(earlier) = earlier {
            let kept = earlier.by_name.iter().filter(|(name, _)| !earlier.before.contains(name));
            by_name.extend(kept.map(|(name, row)| (Name::clone(name), Arc::clone(row))));
        }
        let before: Vec<Name> = by_name.keys().cloned().collect();
        let before = before.into_iter().filter(|name| catalog.find(name).is_none()).collect();
        for policy in &catalog.policies {
            let row = by_name.get(&policy.name).filter(|row| row.fits(policy)).cloned();
            let row = row.unwrap_or_else(|| Arc::new(Row::of(policy)));
            by_name.insert(policy.name.clone(), row);
        }
        let nobody = earlier.map_or_else(Arc::default, |earlier| Arc::clone(&earlier.nobody));
        let any_low_water = by_name.values().any(|row| row.lowest.is_some());
        Self { by_name, nobody, any_low_water, before }
    }

    /// The row of a policy; what is not in the catalog is nobody's.
    pub fn of(&self, policy: &str) -> &Row {
        self.by_name.get(policy).unwrap_or(&self.nobody)
    }

    /// The row of what no policy decided.
    pub fn nobody(&self) -> &Row {
        &self.nobody
    }

    /// Every row with its name, which is empty for nobody's.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Row)> {
        let nobody = std::iter::once(("", &*self.nobody));
        nobody.chain(self.by_name.iter().map(|(name, row)| (&**name, &**row)))
    }

    /// Whether what remains is worth a look.
    pub fn any_low_water(&self) -> bool {
        self.any_low_water
    }
}

impl Row {
    fn of(policy: &Policy) -> Self {
        Self {
            storms: policy.ban_storm.map(|_| AtomicU64::default()),
            lowest: policy.low_water.map(|_| Lowest::default()),
            watch: policy.watch.as_ref().map(|watch| Watched::new(watch.per)),
            ..Self::default()
        }
    }

    /// Whether a policy can go on counting here.
    fn fits(&self, policy: &Policy) -> bool {
        self.storms.is_some() == policy.ban_storm.is_some()
            && self.lowest.is_some() == policy.low_water.is_some()
            && self.watch.as_ref().map(|watch| watch.per)
                == policy.watch.as_ref().map(|watch| watch.per)
    }

    /// Counts a block.
    pub fn block(&self, origin: Origin, shadow: bool) {
        let place = ORIGINS.iter().position(|one| *one == origin).unwrap_or_default();
        self.blocks[usize::from(shadow)][place].fetch_add(1, Ordering::Relaxed);
    }
}

impl Grid {
    /// Counts one more.
    pub fn add(&self, reason: Reason, mode: Mode) {
        // The enums' own order is that of the tables above; a test holds them together.
        self.0[mode as usize][reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Whatever was counted.
    pub fn counts(&self) -> impl Iterator<Item = (Reason, Mode, u64)> {
        let rows = MODES.iter().zip(&self.0);
        let all = rows.flat_map(|(mode, row)| {
            REASONS.iter().zip(row).map(|(reason, count)| (*reason, *mode, count))
        });
        let all = all.map(|(reason, mode, count)| (reason, mode, count.load(Ordering::Relaxed)));
        all.filter(|(.., count)| *count > 0)
    }
}

impl Lowest {
    /// Notes what remains of a limit.
    pub fn note(&self, at: Time, remaining: i64, limit: i64) {
        let share = i128::from(remaining.max(0)) * i128::from(WHOLE) / i128::from(limit.max(1));
        // Stored as what is gone, so that nothing seen is zero.
        let gone = WHOLE - i64::try_from(share).unwrap_or(WHOLE).min(WHOLE);
        self.turn(at);
        self.now.fetch_max(gone, Ordering::Relaxed);
    }

    /// The least share that remained, in millionths.
    pub fn share(&self, at: Time) -> i64 {
        self.turn(at);
        let gone = [&self.now, &self.before].map(|gone| gone.load(Ordering::Relaxed));
        WHOLE - gone[0].max(gone[1])
    }

    fn turn(&self, at: Time) {
        let (minute, seen) = (minute(at), self.minute.load(Ordering::Relaxed));
        if minute <= seen {
            return;
        }
        let turned =
            self.minute.compare_exchange(seen, minute, Ordering::Relaxed, Ordering::Relaxed);
        if turned.is_ok() {
            let last = self.now.swap(0, Ordering::Relaxed);
            self.before.store(if minute == seen + 1 { last } else { 0 }, Ordering::Relaxed);
        }
    }
}

fn minute(at: Time) -> i64 {
    at.micros().div_euclid(60_000_000)
}

impl Watched {
    fn new(per: Span) -> Self {
        let (whole, share) = (AtomicU64::default(), AtomicU64::default());
        Self { per, slices: Mutex::default(), whole, share }
    }

    /// Counts an outcome.
    pub fn count(&self, at: Time, in_part: bool) {
        self.whole.fetch_add(1, Ordering::Relaxed);
        self.share.fetch_add(u64::from(in_part), Ordering::Relaxed);
        let mut slices = self.slices.lock();
        slices.get_or_insert_with(|| Slices::new(self.per, at)).count(self.per, at, in_part);
    }

    /// The ratio of all keys together; none before the first outcome.
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
    fn the_tables_are_in_the_order_of_the_words() {
        for (place, reason) in REASONS.iter().enumerate() {
            assert_eq!(*reason as usize, place);
        }
        for (place, mode) in MODES.iter().enumerate() {
            assert_eq!(*mode as usize, place);
        }
    }

    #[test]
    fn counts_outlive_a_reload_and_rows_that_left_go_one_reload_later() {
        let catalog = |names: &[&str]| {
            let policy = |name: &&str| format!("[policy.{name}]\nby = []\nwindow = '1 per 1h'\n");
            Catalog::parse(&names.iter().map(policy).collect::<String>()).unwrap()
        };
        let names = |rows: &Rows| {
            let mut names: Vec<String> = rows.all().map(|(name, _)| name.to_owned()).collect();
            names.sort();
            names.join(",")
        };
        let first = Rows::new(&catalog(&["a", "b"]), None);
        first.of("a").decisions.add(Reason::Ok, Mode::Enforce);
        first.of("made up").decisions.add(Reason::Ok, Mode::Enforce);
        let second = Rows::new(&catalog(&["a", "c"]), Some(&first));
        assert_eq!(names(&second), ",a,b,c");
        let third = Rows::new(&catalog(&["a", "c"]), Some(&second));
        assert_eq!(names(&third), ",a,c");
        let counts: Vec<_> = third.of("a").decisions.counts().collect();
        assert_eq!(counts, [(Reason::Ok, Mode::Enforce, 1)]);
        assert_eq!(third.nobody().decisions.counts().count(), 1);
    }

    #[test]
    fn the_least_that_remained_is_told_for_this_minute_and_the_last() {
        let lowest = Lowest::default();
        assert_eq!(lowest.share(at(0)), WHOLE);
        lowest.note(at(60), 20, 100);
        lowest.note(at(61), 90, 100);
        assert_eq!(lowest.share(at(119)), 200_000);
        assert_eq!(lowest.share(at(120)), 200_000);
        lowest.note(at(121), -5, 100);
        assert_eq!(lowest.share(at(180)), 0);
        assert_eq!(lowest.share(at(240)), WHOLE);
    }

    #[test]
    fn the_watched_ratio_is_that_of_its_own_time() {
        let watched = Watched::new(Span::from_secs(24));
        assert_eq!(watched.ratio(at(0)), None);
        for second in 0..4 {
            watched.count(at(second), second == 3);
        }
        assert_eq!(watched.ratio(at(4)), Some(0.25));
        assert_eq!(watched.ratio(at(26)), Some(1.0));
        assert_eq!(watched.ratio(at(90)), None);
    }
}
