//! The notices of this node that the store does not have yet, and how far the notices of all nodes
//! have been read.
//!
//! Nodes publish in an order of their own, so of two notices about one key the later instant
//! counts, not the later version.

use std::collections::{BTreeMap, HashMap, VecDeque};

use catraca_core::digest::Key;
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

use super::notice::Notice;

/// The most notices about keys that wait for the store. The oldest one makes room for a further
/// one.
const PENDING_MAX: usize = 100_000;
/// The most messages, such as erasures, that wait for the store. Notices about keys never replace
/// them.
const MESSAGES_MAX: usize = 100_000;
/// How long the instant of a key's last notice is remembered: longer than any node needs to publish
/// what happened.
const REMEMBERED: Span = Span::from_secs(60);
/// Keys that are remembered before old ones are forgotten.
const REMEMBERED_MIN: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct NoticeBoard(Mutex<BoardState>);

#[derive(Debug, Default)]
struct BoardState {
    /// Notices about no key, in order.
    messages: VecDeque<Notice>,
    /// The last notice about each key, in the order in which the first ones were added.
    pending: BTreeMap<i64, Notice>,
    /// The place of each key in `pending`.
    by_key: HashMap<Key, i64>,
    /// The version up to which notices are read; empty for none.
    read_to: String,
    /// The instant of the last notice about each key.
    latest: HashMap<Key, Time>,
    dropped: u64,
    stored: u64,
}

impl NoticeBoard {
    /// Adds a notice of this node.
    pub fn add(&self, notice: Notice) {
        let mut state = self.0.lock();
        let Some(key) = notice.key() else {
            if state.messages.len() >= MESSAGES_MAX {
                state.messages.pop_front();
                state.dropped += 1;
            }
            state.messages.push_back(notice);
            return;
        };
        let latest = state.latest.entry(key).or_default();
        *latest = notice.at.max(*latest);
        let last = state.pending.last_key_value().map_or(0, |(place, _)| *place);
        let place = *state.by_key.entry(key).or_insert(last + 1);
        state.pending.insert(place, notice);
        state.drop_surplus();
    }

    /// Removes and returns the oldest pending notices.
    pub fn take(&self, most: usize) -> Vec<Notice> {
        let mut state = self.0.lock();
        let messages = state.messages.len().min(most);
        let mut taken: Vec<Notice> = state.messages.drain(..messages).collect();
        while taken.len() < most
            && let Some(notice) = state.take_oldest()
        {
            taken.push(notice);
        }
        taken
    }

    /// Puts notices back that the store did not take.
    pub fn give_back(&self, notices: Vec<Notice>) {
        let mut state = self.0.lock();
        for notice in notices.into_iter().rev() {
            let Some(key) = notice.key() else {
                state.messages.push_front(notice);
                continue;
            };
            // A later notice about the same key replaces it.
            if !state.by_key.contains_key(&key) {
                let first = state.pending.first_key_value().map_or(0, |(place, _)| *place);
                state.by_key.insert(key, first - 1);
                state.pending.insert(first - 1, notice);
            }
        }
        state.drop_surplus();
    }

    /// Whether a notice says something that this node does not know yet. Remembers it.
    pub fn accept(&self, notice: &Notice) -> bool {
        let Some(key) = notice.key() else { return true };
        let mut state = self.0.lock();
        let latest = state.latest.entry(key).or_default();
        let is_news = notice.at > *latest;
        *latest = notice.at.max(*latest);
        is_news
    }

    /// Whether a notice says something that this node does not know yet.
    #[cfg(feature = "records")]
    pub fn is_news(&self, notice: &Notice) -> bool {
        let state = self.0.lock();
        let latest = notice.key().and_then(|key| state.latest.get(&key).copied());
        latest.is_none_or(|latest| notice.at > latest)
    }

    /// Forgets the instants of keys that no node publishes any more.
    pub fn forget_old(&self, now: Time) {
        let mut state = self.0.lock();
        if state.latest.len() >= REMEMBERED_MIN {
            let oldest = now.before(REMEMBERED);
            state.latest.retain(|_, at| *at > oldest);
        }
    }

    pub fn read_to(&self) -> String {
        self.0.lock().read_to.clone()
    }

    pub fn set_read_to(&self, version: String) {
        self.0.lock().read_to = version;
    }

    pub fn set_stored(&self, stored: u64) {
        self.0.lock().stored = stored;
    }

    /// Counts notices about active blocks that were dropped.
    pub fn on_dropped(&self, dropped: u64) {
        self.0.lock().dropped += dropped;
    }

    /// How many notices the store has, and how many about active blocks were dropped.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.stored, state.dropped)
    }
}

impl BoardState {
    fn take_oldest(&mut self) -> Option<Notice> {
        let (_, notice) = self.pending.pop_first()?;
        if let Some(key) = notice.key() {
            self.by_key.remove(&key);
        }
        Some(notice)
    }

    fn drop_surplus(&mut self) {
        while self.pending.len() > PENDING_MAX {
            self.take_oldest();
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::notice::NoticeContent;
    use super::*;

    fn freed(number: u8, at: i64) -> Notice {
        let content = NoticeContent::Freed(Key::from_bytes([number; 16]));
        Notice { at: Time::from_micros(at), content, attachment: Vec::new() }
    }

    #[test]
    fn of_two_notices_about_a_key_the_later_one_counts_whichever_arrives_first() {
        let board = NoticeBoard::default();
        assert!(board.accept(&freed(1, 20)));
        assert!(!board.accept(&freed(1, 10)), "an older one");
        assert!(!board.accept(&freed(1, 20)), "the same one again");
        assert!(board.accept(&freed(1, 21)));
        board.add(freed(2, 50));
        assert!(!board.accept(&freed(2, 50)), "its own");
        assert!(!board.accept(&freed(2, 49)), "its own act was later");
    }

    #[test]
    fn a_key_is_published_once_and_what_failed_is_published_again() {
        let board = NoticeBoard::default();
        for at in 0..5 {
            board.add(freed(1, at));
            board.add(freed(2, at));
        }
        let taken = board.take(10);
        assert_eq!(taken, [freed(1, 4), freed(2, 4)]);
        board.add(freed(1, 9));
        board.give_back(taken);
        assert_eq!(board.take(1), [freed(2, 4)]);
        assert_eq!(board.take(1), [freed(1, 9)]);
        assert!(board.take(1).is_empty());
    }

    #[test]
    fn beyond_the_bound_notices_are_dropped_and_counted() {
        let board = NoticeBoard::default();
        for number in 0..=PENDING_MAX as u128 {
            let content = NoticeContent::Freed(Key::from_bytes(number.to_le_bytes()));
            board.add(Notice { at: Time::from_micros(1), content, attachment: Vec::new() });
        }
        assert_eq!(board.counts(), (0, 1));
        assert_eq!(board.take(usize::MAX).len(), PENDING_MAX);
    }

    /// Regression: each further notice about a blocked key took memory until the store was back.
    #[test]
    fn a_key_that_is_blocked_again_and_again_takes_one_place() {
        let board = NoticeBoard::default();
        for at in 0..1_000 {
            board.add(freed(1, at));
        }
        assert_eq!(board.0.lock().pending.len(), 1);
        assert_eq!(board.take(10), [freed(1, 999)]);
    }

    /// Regression: an erasure was dropped when there were too many notices about blocks.
    #[test]
    fn the_oldest_notice_makes_room_and_messages_stay() {
        let board = NoticeBoard::default();
        let erasure = || Notice {
            at: Time::from_micros(1),
            content: NoticeContent::Message,
            attachment: b"erase".to_vec(),
        };
        board.add(erasure());
        for number in 0..=PENDING_MAX as u128 {
            let content = NoticeContent::Freed(Key::from_bytes(number.to_le_bytes()));
            board.add(Notice { at: Time::from_micros(1), content, attachment: Vec::new() });
        }
        board.add(erasure());
        let taken = board.take(3);
        assert_eq!(taken[..2], [erasure(), erasure()]);
        assert_eq!(taken[2].key(), Some(Key::from_bytes(1_u128.to_le_bytes())), "0 made room");
        board.give_back(taken);
        assert_eq!(board.take(usize::MAX).len(), 2 + PENDING_MAX);
    }
}
