//! The changes of lists, facts and modes that this node made and that a read of shared records may
//! not contain.
//!
//! A node reads the records while its operators change them. What was read replaces the node's
//! lists, facts and modes, so a change that was not in the records when the read began is applied
//! again to what was read: the node that has acknowledged a change never decides by the older
//! value.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::rule_set::RuleSet;

/// The most changes that are retained while they cannot be written; beyond it the oldest is
/// forgotten, and the next read of the records may undo it on this node.
const RETAINED_MAX: usize = 4_096;

/// A change as a function of the rules, so that it can be applied again. If other rules do not
/// permit it, it changes nothing.
type RuleChange = Box<dyn Fn(&mut RuleSet) + Send + Sync>;

/// Changes of this node, numbered in the order in which they took effect.
#[derive(Default)]
pub(crate) struct LocalChanges(Mutex<ChangesState>);

#[derive(Default)]
struct ChangesState {
    /// Whether this node reads shared records. Otherwise nothing is retained.
    is_following: bool,
    /// The number of the last change.
    last: u64,
    /// The last change that is in the records, and all before it.
    written: u64,
    /// The last change whose operator got the answer that it is not on disk yet.
    late: u64,
    /// Reads of the records that have begun and not ended.
    reads: usize,
    retained: VecDeque<(u64, RuleChange)>,
}

/// A read of the records, from its begin on. It contains the changes that were written then.
pub(crate) struct RecordsRead<'c> {
    changes: &'c LocalChanges,
    written: u64,
}

impl LocalChanges {
    /// Retains changes from now on, because this node reads shared records.
    pub fn follow(&self) {
        self.0.lock().is_following = true;
    }

    /// Adds a change. Call it with the write lock of the rules, so that no read is concluded
    /// between the change and this call.
    pub fn add(&self, change: impl Fn(&mut RuleSet) + Send + Sync + 'static) {
        let mut state = self.0.lock();
        if !state.is_following {
            return;
        }
        state.last += 1;
        let number = state.last;
        state.retained.push_back((number, Box::new(change)));
        if state.retained.len() > RETAINED_MAX {
            state.retained.pop_front();
        }
    }

    /// The number of the last change.
    pub fn last(&self) -> u64 {
        self.0.lock().last
    }

    /// The change with this number, and all before it, are in the records.
    pub fn on_written(&self, number: u64) {
        let mut state = self.0.lock();
        state.written = state.written.max(number);
        state.forget_written();
    }

    /// The operator of this change got the answer that it is not on disk yet.
    pub fn on_late(&self, number: u64) {
        let mut state = self.0.lock();
        state.late = state.late.max(number);
    }

    /// The last change that was answered as not on disk and of which it is not known that it is
    /// now.
    pub fn late_change(&self) -> Option<u64> {
        let state = self.0.lock();
        (state.late > state.written).then_some(state.late)
    }

    /// Begins a read of the records. Call it before their transaction begins.
    pub fn begin_read(&self) -> RecordsRead<'_> {
        let mut state = self.0.lock();
        state.reads += 1;
        RecordsRead { changes: self, written: state.written }
    }
}

impl RecordsRead<'_> {
    /// Applies the changes that the read may lack. Returns whether there were any.
    pub fn apply_newer_changes(&self, rules: &mut RuleSet) -> bool {
        let state = self.changes.0.lock();
        let mut any = false;
        for (_, change) in state.retained.iter().filter(|(number, _)| *number > self.written) {
            change(rules);
            any = true;
        }
        any
    }
}

impl Drop for RecordsRead<'_> {
    fn drop(&mut self) {
        let mut state = self.changes.0.lock();
        state.reads -= 1;
        state.forget_written();
    }
}

impl ChangesState {
    /// A read that has begun may lack changes that were written since.
    fn forget_written(&mut self) {
        if self.reads == 0 {
            let written = self.written;
            self.retained.retain(|(number, _)| *number > written);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use catraca_core::catalog::Catalog;
    use catraca_core::policy::Mode;

    fn set(mode: Mode) -> impl Fn(&mut RuleSet) + Send + Sync + 'static {
        move |rules| rules.overrides.push(("login".into(), mode))
    }

    /// The modes that a read of empty records has after it is concluded.
    fn conclude(read: &RecordsRead<'_>) -> Vec<Mode> {
        let mut rules = RuleSet::new(Arc::new(Catalog::parse("").expect("it is empty")));
        read.apply_newer_changes(&mut rules);
        rules.overrides.iter().map(|(_, mode)| *mode).collect()
    }

    #[test]
    fn a_read_gets_the_changes_that_were_not_written_when_it_began() {
        let changes = LocalChanges::default();
        changes.follow();
        changes.add(set(Mode::Off));
        changes.on_written(changes.last());
        changes.add(set(Mode::Shadow));
        let read = changes.begin_read();
        changes.on_written(changes.last());
        changes.add(set(Mode::Enforce));
        assert_eq!(conclude(&read), [Mode::Shadow, Mode::Enforce]);
        drop(read);
        assert_eq!(conclude(&changes.begin_read()), [Mode::Enforce]);
        changes.on_written(changes.last());
        assert!(changes.0.lock().retained.is_empty());
    }

    #[test]
    fn nothing_is_retained_without_shared_records() {
        let changes = LocalChanges::default();
        changes.add(set(Mode::Off));
        assert!(changes.0.lock().retained.is_empty());
    }

    #[test]
    fn the_oldest_changes_are_forgotten_at_the_bound() {
        let changes = LocalChanges::default();
        changes.follow();
        changes.add(set(Mode::Off));
        for _ in 0..RETAINED_MAX {
            changes.add(set(Mode::Shadow));
        }
        let modes = conclude(&changes.begin_read());
        assert_eq!(modes.len(), RETAINED_MAX);
        assert!(!modes.contains(&Mode::Off));
    }

    #[test]
    fn a_late_change_is_known_until_it_is_written() {
        let changes = LocalChanges::default();
        changes.follow();
        changes.add(set(Mode::Off));
        assert_eq!(changes.late_change(), None);
        changes.on_late(1);
        assert_eq!(changes.late_change(), Some(1));
        changes.on_written(1);
        assert_eq!(changes.late_change(), None);
    }
}
