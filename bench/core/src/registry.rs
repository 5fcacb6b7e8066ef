//! Who is measured, and in which cases. The only place that knows every subject by name.

use std::time::Instant;

use crate::case::Case;
use crate::decision_json;
use crate::floors::{Flat, ShardedMap};
use crate::measure::{self, Measure};
use crate::ours;
use crate::parts::{InstantClock, Loop, TwoAhash};
use crate::peers::{GovernorArray, GovernorString, Throttlecrab};
use crate::results::Figures;

/// The floor that every ratio is taken against.
pub const FLOOR: &str = "shard64-fp128-gcra";

/// The peer that every ratio is taken against.
pub const PEER: &str = "governor-arr";

/// What a subject is, which says where its rows belong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Decides from a key to a verdict.
    Decider,
    /// A piece of a decision, timed alone.
    Part,
    /// Only its windows' memory is measured.
    Windows,
}

/// One subject's entry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name in every table.
    pub name: &'static str,
    /// Its role.
    pub role: Role,
    /// Hits one key may take before it is denied.
    pub per_key: u64,
}

impl Entry {
    const fn decider(name: &'static str) -> Entry {
        Entry { name, role: Role::Decider, per_key: crate::subject::BURST as u64 }
    }

    const fn part(name: &'static str) -> Entry {
        Entry { role: Role::Part, ..Entry::decider(name) }
    }

    /// Whether the subject has a meaning in `case`.
    pub fn applies(&self, case: Case) -> bool {
        match (self.role, case) {
            (Role::Decider, Case::Speed { keys, .. }) => measure::Speed::fits(keys, self.per_key),
            (Role::Decider, Case::Fill | Case::Steps) => true,
            (Role::Part, case) => case == Case::Speed { keys: 1, threads: 1 },
            (Role::Windows, Case::Window { .. }) => true,
            _ => false,
        }
    }
}

/// Every subject, in the order of the tables.
pub const SUBJECTS: &[Entry] = &[
    Entry::decider("governor-string"),
    Entry::decider(PEER),
    Entry::decider("throttlecrab-periodic"),
    Entry::decider("throttlecrab-adaptive"),
    Entry::decider(FLOOR),
    Entry::decider("flat-fp64-gcra"),
    Entry::decider("catraca-store"),
    Entry::decider("catraca-store+digest+clock"),
    Entry::decider("catraca-engine"),
    Entry { per_key: 60, ..Entry::decider("catraca-engine-window") },
    Entry::part("loop"),
    Entry::part("floor-clock"),
    Entry::part("floor-fingerprint"),
    Entry::part("clock"),
    Entry::part("digest"),
    Entry::part("json"),
    Entry::part("json-derived"),
    Entry { role: Role::Windows, ..Entry::decider("catraca-window") },
];

/// The entry of that name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    SUBJECTS.iter().find(|entry| entry.name == name)
}

/// Measures one subject in one case, in this process.
pub fn measure(entry: &Entry, case: Case, quick: bool) -> Option<Figures> {
    match case {
        Case::Speed { keys, threads } => {
            run(entry.name, measure::Speed { keys, threads, quick, per_key: entry.per_key })
        }
        Case::Fill => run(entry.name, measure::Fill),
        Case::Steps => run(entry.name, measure::Steps { quick }),
        Case::Window { limit } => ours::windows(limit, quick),
    }
}

/// Hands the named subject to `measure`. The capacity is the number of keys the case will hold.
pub fn run<M: Measure>(name: &str, measure: M) -> Option<Figures> {
    Some(match name {
        "governor-string" => measure.run(|_| GovernorString::new()),
        PEER => measure.run(|_| GovernorArray::new()),
        "throttlecrab-periodic" => measure.run(Throttlecrab::periodic),
        "throttlecrab-adaptive" => measure.run(Throttlecrab::adaptive),
        FLOOR => measure.run(|_| ShardedMap::new()),
        "flat-fp64-gcra" => measure.run(Flat::new),
        "loop" => measure.run(|_| Loop),
        "floor-clock" => measure.run(|_| InstantClock(Instant::now())),
        "floor-fingerprint" => measure.run(|_| TwoAhash::default()),
        "json" | "json-derived" => return decision_json::run(name, measure),
        _ => return ours::run(name, measure),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_not_timed_where_it_would_deny() {
        let window = Entry { per_key: 60, ..Entry::decider("window") };
        let fits = |keys| window.applies(Case::Speed { keys, threads: 1 });
        assert_eq!([1, 1_000, 100_000, 1_000_000].map(fits), [false, false, true, true]);
    }

    #[test]
    fn every_decider_that_is_listed_can_be_measured() {
        for entry in SUBJECTS.iter().filter(|entry| entry.role != Role::Windows) {
            assert!(run(entry.name, measure::Smoke).is_some(), "{}", entry.name);
        }
    }
}
