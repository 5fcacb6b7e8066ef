//! The oracle: a second implementation of `docs/semantics.md`, to compare the engine with.
//!
//! A mistake goes unnoticed only if both implementations make it. So the oracle must share no code
//! with the other crates, and stays simple enough to read beside the page that it implements: plain
//! lists, exact fractions, no optimisation. "Section" means a section of that page.

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

use catalog::{Catalog, Fact};
use cell::Cell;
use select::Key;
use ticket::{Reference, Ticket};

/// An instant since the epoch or a length of time, in microseconds.
pub type Micros = i64;

/// The end of blocks and list entries without an end; later than every instant.
pub const FOREVER: Micros = i64::MAX;

/// The first whole second at or after an instant. State expires at whole seconds (section 8).
fn whole_second(at: Micros) -> Micros {
    const SECOND: Micros = 1_000_000;
    at + (SECOND - at % SECOND) % SECOND
}

/// The active catalog and the state of every (policy, key), ticket and reference.
pub struct Oracle {
    /// The active catalog, with the operators' facts before its own.
    catalog: Rc<Catalog>,
    /// The facts of the active catalog without those of operators.
    own_facts: Vec<Fact>,
    /// The facts that operators stated at run time.
    stated_facts: Vec<Fact>,
    cells: BTreeMap<String, BTreeMap<Key, Cell>>,
    /// The state of a key that no call has touched.
    untouched: Cell,
    tickets: Vec<Ticket>,
    references: BTreeMap<String, Reference>,
}

impl Oracle {
    /// An oracle without state.
    pub fn new(catalog: Catalog) -> Oracle {
        Oracle {
            own_facts: catalog.facts.clone(),
            stated_facts: Vec::new(),
            catalog: Rc::new(catalog),
            cells: BTreeMap::new(),
            untouched: Cell::default(),
            tickets: Vec::new(),
            references: BTreeMap::new(),
        }
    }

    /// Replaces the catalog; all state stays.
    pub fn reload(&mut self, catalog: Catalog) {
        self.own_facts = catalog.facts.clone();
        self.catalog = Rc::new(catalog);
        self.apply_facts();
    }

    /// Replaces an operator's fact, or removes the operator's facts about a value.
    pub fn state_fact(&mut self, about: (&str, &str), fact: Option<(&str, &str)>) {
        let (attribute, value) = about;
        let name = fact.map(|(name, _)| name);
        self.stated_facts.retain(|known| {
            (known.attribute.as_str(), known.about.as_str()) != about
                || name.is_some_and(|name| name != known.name)
        });
        self.stated_facts.extend(fact.map(|(name, stated)| Fact {
            attribute: attribute.to_owned(),
            about: value.to_owned(),
            name: name.to_owned(),
            value: stated.to_owned(),
        }));
        self.apply_facts();
    }

    /// The first fact about a value applies, so those of operators go first.
    fn apply_facts(&mut self) {
        let catalog = Rc::make_mut(&mut self.catalog);
        catalog.facts = self.stated_facts.iter().chain(&self.own_facts).cloned().collect();
    }

    /// The active catalog.
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
