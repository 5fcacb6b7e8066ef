//! A second implementation of `docs/semantics.md`, written to be compared with the real one.
//!
//! It exists so that a mistake has to be made twice, in two different ways, to go unnoticed. So it
//! must share no
//! code with the other crates, must not be fast or clever, and must stay readable beside the page
//! it implements:
//! naive lists, exact fractions, one file per section.

pub mod answer;
pub mod block;
pub mod bucket;
pub mod catalog;
pub mod cell;
pub mod check;
pub mod credit;
pub mod decide;
pub mod fixed;
pub mod lease;
pub mod operate;
pub mod outcome;
pub mod ratio;
pub mod select;
pub mod settle;
pub mod ticket;
pub mod window;

use std::collections::BTreeMap;
use std::rc::Rc;

use catalog::Catalog;
use cell::Cell;
use select::Key;
use ticket::{Reference, Ticket};

/// An instant or a length of time, in whole microseconds.
pub type Micros = i64;

/// The end of what has no end: later than every instant.
pub const FOREVER: Micros = i64::MAX;

/// The first whole second at or after an instant: when things are forgotten.
fn whole_second(at: Micros) -> Micros {
    const SECOND: Micros = 1_000_000;
    at + (SECOND - at % SECOND) % SECOND
}

/// All that is known: the catalog in force and the state of every (policy, key).
pub struct World {
    catalog: Rc<Catalog>,
    cells: BTreeMap<String, BTreeMap<Key, Cell>>,
    untouched: Cell,
    tickets: Vec<Ticket>,
    references: BTreeMap<String, Reference>,
}

impl World {
    /// A world in which nothing has happened yet.
    pub fn new(catalog: Catalog) -> World {
        World {
            catalog: Rc::new(catalog),
            cells: BTreeMap::new(),
            untouched: Cell::default(),
            tickets: Vec::new(),
            references: BTreeMap::new(),
        }
    }

    /// Puts another catalog in force; all state is kept.
    pub fn reload(&mut self, catalog: Catalog) {
        self.catalog = Rc::new(catalog);
    }

    /// The catalog in force.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn cell(&self, policy: &str, key: &Key) -> &Cell {
        self.cells.get(policy).and_then(|keys| keys.get(key)).unwrap_or(&self.untouched)
    }

    fn cell_mut(&mut self, policy: &str, key: &Key) -> &mut Cell {
        if !self.cells.contains_key(policy) {
            self.cells.insert(policy.to_owned(), BTreeMap::new());
        }
        let keys = self.cells.get_mut(policy).expect("inserted above");
        if !keys.contains_key(key) {
            keys.insert(key.clone(), Cell::default());
        }
        keys.get_mut(key).expect("inserted above")
    }
}

#[cfg(test)]
mod tests;
