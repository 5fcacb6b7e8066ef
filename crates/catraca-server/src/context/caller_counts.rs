//! Counts of checks by the program that sends them, from the header `Catraca-Caller`, and by gate.
//!
//! The table is immutable and replaced as a whole when a pair is new and has room, so that a check
//! neither waits nor allocates. Callers choose these names, so they never become labels of a
//! metric, and new ones beyond the bound cost no copy of the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use catraca::core::request::is_caller_name;

/// The most pairs of caller and gate in one namespace.
pub const PAIRS_MAX: usize = 1_000;
/// The caller and the gate of checks beyond `PAIRS_MAX`. No caller can have this name.
const OTHER: &str = "(other)";
/// The caller of checks whose header is not a valid name. No caller can have this name.
const INVALID: &str = "(invalid)";

/// The counts of all pairs since the start.
#[derive(Debug, Default)]
pub struct CallerCounts {
    /// Sorted by namespace, caller and gate.
    pairs: ArcSwap<Vec<Arc<CallerGate>>>,
}

/// One program's use of one gate.
#[derive(Debug)]
pub struct CallerGate {
    /// The namespace of the key.
    pub namespace: Box<str>,
    /// The name that the program sends.
    pub caller: Box<str>,
    /// The gate.
    pub gate: Box<str>,
    checks: AtomicU64,
    denials: AtomicU64,
}

impl CallerCounts {
    /// Counts one check. `header` is the value of `Catraca-Caller`; a check without one is not
    /// counted here.
    #[inline]
    pub fn count(&self, namespace: &str, header: Option<&[u8]>, gate: &str, allowed: bool) {
        if let Some(header) = header {
            self.count_named(namespace, caller_name(header), gate, allowed);
        }
    }

    /// All pairs, or those of one namespace, in their order.
    pub fn pairs(&self, namespace: Option<&str>) -> Vec<Arc<CallerGate>> {
        let is_visible =
            |pair: &&Arc<CallerGate>| namespace.is_none_or(|own| own == &*pair.namespace);
        self.pairs.load().iter().filter(is_visible).cloned().collect()
    }

    fn count_named(&self, namespace: &str, caller: &str, gate: &str, allowed: bool) {
        let pairs = self.pairs.load();
        let key = (namespace, caller, gate);
        let found = find(&pairs, key).or_else(|_| find(&pairs, key_with_room(&pairs, key)));
        match found {
            Ok(index) => pairs[index].count(allowed),
            Err(_) => self.insert(key).count(allowed),
        }
    }

    /// The entry of a new pair, or the common one if the namespace has `PAIRS_MAX` of them.
    fn insert(&self, key: (&str, &str, &str)) -> Arc<CallerGate> {
        let mut entry = None;
        self.pairs.rcu(|pairs| {
            let (added, next) = with_pair(pairs, key);
            entry = Some(added);
            next
        });
        // `rcu` has called the closure at least once.
        entry.unwrap_or_else(|| CallerGate::new(key))
    }
}

impl CallerGate {
    fn new((namespace, caller, gate): (&str, &str, &str)) -> Arc<Self> {
        Arc::new(Self {
            namespace: namespace.into(),
            caller: caller.into(),
            gate: gate.into(),
            checks: AtomicU64::new(0),
            denials: AtomicU64::new(0),
        })
    }

    /// Checks, allowed and denied.
    pub fn checks(&self) -> u64 {
        self.checks.load(Ordering::Relaxed)
    }

    /// Denied checks.
    pub fn denials(&self) -> u64 {
        self.denials.load(Ordering::Relaxed)
    }

    fn key(&self) -> (&str, &str, &str) {
        (&self.namespace, &self.caller, &self.gate)
    }

    fn count(&self, allowed: bool) {
        self.checks.fetch_add(1, Ordering::Relaxed);
        self.denials.fetch_add(u64::from(!allowed), Ordering::Relaxed);
    }
}

/// The entry of this key in a table, and the table with it.
fn with_pair(
    pairs: &[Arc<CallerGate>],
    key: (&str, &str, &str),
) -> (Arc<CallerGate>, Vec<Arc<CallerGate>>) {
    let known = find(pairs, key).is_ok();
    let key = if known { key } else { key_with_room(pairs, key) };
    let mut next = pairs.to_vec();
    match find(pairs, key) {
        Ok(index) => (Arc::clone(&pairs[index]), next),
        Err(index) => {
            let added = CallerGate::new(key);
            next.insert(index, Arc::clone(&added));
            (added, next)
        }
    }
}

/// The key under which a new pair is counted: its own, or the common one of its namespace if that
/// has `PAIRS_MAX` pairs.
fn key_with_room<'k>(
    pairs: &[Arc<CallerGate>],
    key: (&'k str, &'k str, &'k str),
) -> (&'k str, &'k str, &'k str) {
    let common = (key.0, OTHER, OTHER);
    let begin = pairs.partition_point(|pair| *pair.namespace < *key.0);
    let end = pairs.partition_point(|pair| *pair.namespace <= *key.0);
    let own = end - begin - usize::from(find(pairs, common).is_ok());
    if own >= PAIRS_MAX { common } else { key }
}

fn find(pairs: &[Arc<CallerGate>], key: (&str, &str, &str)) -> Result<usize, usize> {
    pairs.binary_search_by(|pair| pair.key().cmp(&key))
}

/// The name in a header, if it is one.
fn caller_name(header: &[u8]) -> &str {
    let name = if is_caller_name(header) { std::str::from_utf8(header).ok() } else { None };
    name.unwrap_or(INVALID)
}

#[cfg(test)]
mod tests {
    use catraca::core::request::CALLER_BYTES_MAX;

    use super::*;

    fn rows(counts: &CallerCounts, namespace: Option<&str>) -> Vec<String> {
        let row = |pair: &Arc<CallerGate>| {
            let key = pair.key();
            format!("{} {} {} {} {}", key.0, key.1, key.2, pair.checks(), pair.denials())
        };
        counts.pairs(namespace).iter().map(row).collect()
    }

    #[test]
    fn checks_and_denials_are_counted_by_namespace_caller_and_gate() {
        let counts = CallerCounts::default();
        counts.count("b", Some(b"shop/1.4"), "login", true);
        counts.count("a", Some(b"shop/1.4"), "login", true);
        counts.count("a", Some(b"shop/1.4"), "login", false);
        counts.count("a", Some(b"shop/1.4"), "search", true);
        counts.count("a", None, "login", true);
        let own = ["a shop/1.4 login 2 1", "a shop/1.4 search 1 0"];
        assert_eq!(rows(&counts, Some("a")), own);
        assert_eq!(rows(&counts, None), [&own[..], &["b shop/1.4 login 1 0"]].concat());
        assert!(rows(&counts, Some("c")).is_empty());
    }

    #[test]
    fn a_header_that_is_no_name_counts_as_invalid() {
        let long = "a".repeat(CALLER_BYTES_MAX + 1);
        for header in ["", " ", "my shop", "a:b", "ação", long.as_str(), OTHER] {
            let counts = CallerCounts::default();
            counts.count("a", Some(header.as_bytes()), "login", true);
            assert_eq!(rows(&counts, None), ["a (invalid) login 1 0"], "{header:?}");
        }
        assert_eq!(caller_name(&long.as_bytes()[1..]), &long[1..]);
    }

    #[test]
    fn a_namespace_has_a_bounded_number_of_pairs_and_loses_no_count() {
        let counts = CallerCounts::default();
        counts.count("b", Some(b"shop"), "login", true);
        for number in 0..PAIRS_MAX + 7 {
            counts.count("a", Some(format!("p{number}").as_bytes()), "login", false);
        }
        let own = rows(&counts, Some("a"));
        assert_eq!(own.len(), PAIRS_MAX + 1);
        assert_eq!(own[0], "a (other) (other) 7 7");
        let table = counts.pairs.load_full();
        counts.count("a", Some(b"yet-another"), "login", false);
        assert!(Arc::ptr_eq(&table, &counts.pairs.load_full()), "the table is not copied");
        assert_eq!(rows(&counts, Some("a"))[0], "a (other) (other) 8 8");
        counts.count("b", Some(b"other-shop"), "login", true);
        assert_eq!(rows(&counts, Some("b")).len(), 2);
    }

    #[test]
    fn threads_that_add_the_same_pair_count_in_one_entry() {
        let counts = CallerCounts::default();
        let count_200 = || {
            for number in 0..200 {
                let caller = format!("p{}", number % 50);
                counts.count("a", Some(caller.as_bytes()), "login", true);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(count_200);
            }
        });
        let total: u64 = counts.pairs(None).iter().map(|pair| pair.checks()).sum();
        assert_eq!((counts.pairs(None).len(), total), (50, 800));
    }
}
