//! The cells of a peek: copies of those that it reads, so that a peek writes nothing to its store.
//!
//! Reading a counter may drop entries that have ended. The next check of the key drops them too, so
//! nothing is lost if a peek's changes are discarded.

use std::any::Any;

use smallvec::SmallVec;

use crate::cell::{Cell, CellTable, CounterSlot};
use crate::digest::Key;
use crate::time::Time;

/// A cell store that reads from another one and keeps all changes to itself.
pub struct PeekCells<'a, S> {
    store: &'a mut S,
    /// The copies, by key and type: a key can have a cell of each kind. A check reads a counter and
    /// a block per row.
    copies: SmallVec<[(Key, Box<dyn Any>); 2]>,
}

impl<'a, S> PeekCells<'a, S> {
    pub fn new(store: &'a mut S) -> Self {
        Self { store, copies: SmallVec::new() }
    }

    fn find<C: Cell + 'static>(&self, key: Key) -> Option<usize> {
        self.copies.iter().position(|(other, copy)| *other == key && copy.is::<C>())
    }
}

impl<C: Cell + Clone + 'static, S: CellTable<C>> CellTable<C> for PeekCells<'_, S> {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        if self.find::<C>(key).is_none() {
            let copy = self.store.get(key, now)?.clone();
            self.copies.push((key, Box::new(copy)));
        }
        let index = self.find::<C>(key)?;
        let copy: Option<&mut C> = self.copies[index].1.downcast_mut();
        copy.filter(|cell| now < cell.expires_at())
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        self.get(key, now).map(change)
    }

    fn put(&mut self, key: Key, cell: C, _: Time) -> bool {
        self.copies.retain(|(other, copy)| *other != key || !copy.is::<C>());
        self.copies.push((key, Box::new(cell)));
        true
    }

    /// A peek removes nothing.
    fn remove(&mut self, _: Key, _: Time) -> bool {
        false
    }

    fn counter_slot(&mut self, key: Key, family: u64, now: Time) -> CounterSlot {
        self.store.counter_slot(key, family, now)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cell::FixedWindow;

    impl CellTable<FixedWindow> for BTreeMap<Key, FixedWindow> {
        fn get(&mut self, key: Key, _: Time) -> Option<&mut FixedWindow> {
            self.get_mut(&key)
        }

        fn edit<R>(
            &mut self,
            key: Key,
            _: Time,
            change: impl FnOnce(&mut FixedWindow) -> R,
        ) -> Option<R> {
            self.get_mut(&key).map(change)
        }

        fn put(&mut self, key: Key, cell: FixedWindow, _: Time) -> bool {
            self.insert(key, cell);
            true
        }

        fn remove(&mut self, key: Key, _: Time) -> bool {
            BTreeMap::remove(self, &key).is_some()
        }
    }

    #[test]
    fn changes_are_seen_by_the_peek_and_not_by_the_store() {
        let stored = FixedWindow { start: Time::ZERO, used: 1, forget: 10 };
        let key = Key::from_bytes([1; 16]);
        let other = Key::from_bytes([2; 16]);
        let mut store = BTreeMap::from([(key, stored)]);
        let mut cells = PeekCells::new(&mut store);
        cells.edit(key, Time::ZERO, |cell: &mut FixedWindow| cell.used = 7);
        assert_eq!(cells.get(key, Time::ZERO).map(|cell| cell.used), Some(7));
        cells.put(key, FixedWindow { used: 8, ..stored }, Time::ZERO);
        cells.put(other, stored, Time::ZERO);
        assert_eq!(cells.get(key, Time::ZERO).map(|cell| cell.used), Some(8));
        assert!(cells.get(other, Time::ZERO).is_some());
        assert!(!cells.remove(key, Time::ZERO));
        assert_eq!(store, BTreeMap::from([(key, stored)]));
    }
}
