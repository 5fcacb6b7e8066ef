//! The notices of this node that the store does not have yet, and how far the notices of all nodes
//! have been read.
//!
//! Nodes publish in an order of their own, so of two notices about one key the later instant
//! counts, not the later version.

use std::collections::{BTreeMap, HashMap, VecDeque};

use catraca_core::digest::Key;
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

use super::notice::{Notice, NoticeContent};

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
/// The most keys that are remembered.
const REMEMBERED_MAX: usize = 1_000_000;
/// How long and how many releases are remembered: a node that was cut off for that time learns of
/// them, also if the store has lost their notices.
const RELEASES_REMEMBERED: Span = Span::from_secs(3_600);
const RELEASES_MAX: usize = 10_000;

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
    releases: Releases,
    dropped: u64,
    stored: u64,
}

/// The releases of any node that no later block has followed.
#[derive(Debug, Default)]
struct Releases {
    by_key: HashMap<Key, Notice>,
    /// All that were added, in order.
    order: VecDeque<(Key, Time)>,
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
        state.note(&notice);
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
        let mut state = self.0.lock();
        let is_news = state.is_news(notice);
        if is_news {
            state.note(notice);
        }
        is_news
    }

    /// Whether a notice says something that this node does not know yet.
    pub fn is_news(&self, notice: &Notice) -> bool {
        self.0.lock().is_news(notice)
    }

    /// Whether a key was released at this instant or later, by any node, and not blocked since.
    pub fn is_released_since(&self, key: Key, at: Time) -> bool {
        self.0.lock().releases.by_key.get(&key).is_some_and(|release| release.at >= at)
    }

    /// Publishes the releases of the last hour again: the store may have lost their notices, and a
    /// node that has not read them would bring the blocks back.
    pub fn publish_releases_again(&self, now: Time) {
        self.forget_old(now);
        let releases: Vec<Notice> = self.0.lock().releases.by_key.values().cloned().collect();
        self.give_back(releases);
    }

    /// Forgets the instants of keys that no node publishes any more, and old releases.
    pub fn forget_old(&self, now: Time) {
        let mut state = self.0.lock();
        if state.latest.len() >= REMEMBERED_MIN {
            let oldest = now.before(REMEMBERED);
            state.latest.retain(|_, at| *at > oldest);
        }
        state.releases.drop_before(now.before(RELEASES_REMEMBERED));
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
    fn is_news(&self, notice: &Notice) -> bool {
        let Some(key) = notice.key() else { return true };
        let latest = self.latest.get(&key).copied();
        let released = self.releases.by_key.get(&key).map(|release| release.at);
        latest.max(released).is_none_or(|latest| notice.at > latest)
    }

    /// Remembers a notice about a key.
    fn note(&mut self, notice: &Notice) {
        let Some(key) = notice.key() else { return };
        if self.latest.len() < REMEMBERED_MAX || self.latest.contains_key(&key) {
            let latest = self.latest.entry(key).or_default();
            *latest = notice.at.max(*latest);
        }
        self.releases.note(key, notice);
    }

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

impl Releases {
    fn note(&mut self, key: Key, notice: &Notice) {
        if self.by_key.get(&key).is_some_and(|release| release.at > notice.at) {
            return;
        }
        if !matches!(notice.content, NoticeContent::Freed(_)) {
            self.by_key.remove(&key);
            return;
        }
        self.by_key.insert(key, notice.clone());
        self.order.push_back((key, notice.at));
        while self.order.len() > RELEASES_MAX {
            self.drop_oldest();
        }
    }

    fn drop_before(&mut self, oldest: Time) {
        while self.order.front().is_some_and(|(_, at)| *at < oldest) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((key, at)) = self.order.pop_front() else { return };
        if self.by_key.get(&key).is_some_and(|release| release.at == at) {
            self.by_key.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::cell::Block;
    use catraca_core::cell::block::{BlockNote, Origin};

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

    /// Regression: the instants of keys were forgotten only while the store was available.
    #[test]
    fn instants_and_releases_are_bounded_without_a_store() {
        let board = NoticeBoard::default();
        let minutes = |minutes: i64| Time::ZERO.after(Span::from_secs(60 * minutes));
        for number in 0..2_000_u128 {
            let content = NoticeContent::Freed(Key::from_bytes(number.to_le_bytes()));
            board.add(Notice { at: minutes(1), content, attachment: Vec::new() });
        }
        board.forget_old(minutes(3));
        assert_eq!(board.0.lock().latest.len(), 0);
        let content = NoticeContent::Freed(Key::from_bytes(7_u128.to_le_bytes()));
        let earlier = Notice { at: minutes(0), content, attachment: Vec::new() };
        assert!(!board.accept(&earlier), "the key was released since");
        assert_eq!(board.0.lock().releases.by_key.len(), 2_000);
        board.forget_old(minutes(62));
        assert_eq!(board.0.lock().releases.by_key.len(), 0);
        for number in 0..=RELEASES_MAX as u128 {
            let content = NoticeContent::Freed(Key::from_bytes(number.to_le_bytes()));
            board.add(Notice { at: minutes(62), content, attachment: Vec::new() });
        }
        let state = board.0.lock();
        assert_eq!(
            (state.releases.by_key.len(), state.releases.order.len()),
            (RELEASES_MAX, RELEASES_MAX)
        );
    }

    #[test]
    fn a_release_is_published_again_unless_the_key_was_blocked_since() {
        let board = NoticeBoard::default();
        board.add(freed(1, 10));
        board.add(freed(2, 10));
        assert_eq!(board.take(10).len(), 2);
        let block = Block {
            until: Time::from_micros(99),
            origin: Origin::Ban,
            shadow: false,
            level: 0,
            forget: Span::ZERO,
            note: BlockNote::default(),
        };
        let content = NoticeContent::Blocked(Key::from_bytes([2; 16]), block);
        assert!(board.accept(&Notice {
            at: Time::from_micros(11),
            content,
            attachment: Vec::new()
        }));
        board.publish_releases_again(Time::from_micros(12));
        assert_eq!(board.take(10), [freed(1, 10)]);
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
