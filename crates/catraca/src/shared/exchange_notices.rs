//! With each heartbeat a node publishes the blocks that it started and released, and applies those
//! of the other nodes to its local fallback: while the store is unavailable, a block of any node
//! denies on every node.
//!
//! The store keeps the newest [`NOTICES_MAX`] notices. An error here does not open the circuit
//! breaker: decisions do not depend on notices.

use std::collections::HashMap;
#[cfg(feature = "records")]
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use catraca_core::batch::Batch;
use catraca_core::cell::Block;
use catraca_core::digest::Key;
#[cfg(feature = "records")]
use catraca_core::time::Span;
use catraca_core::time::Time;

use super::SharedDriver;
use super::notice::{Notice, NoticeContent};
use super::peers::NodeState;
use crate::event::Event;
use crate::store::{NOTICES_PER_REPLY, NodeMessage, NodeReply, StoreError};

/// The most notices in the store.
pub(super) const NOTICES_MAX: u64 = 100_000;
/// How many are left when there are more: not every heartbeat of a flood then drops some.
const NOTICES_LEFT: u64 = 99_000;
/// Notices in one message.
const NOTICES_PER_MESSAGE: usize = 256;
/// Messages in one heartbeat, and how long they may take; what is left waits for the next one.
const MESSAGES_MAX: usize = 400;
pub(super) const EXCHANGE_TIME: Duration = Duration::from_millis(200);
/// The pause before blocks are compared again with those of the store after an error.
#[cfg(feature = "records")]
const AGREEMENT_PAUSE: Span = Span::from_secs(2);

/// After a loss of data nodes read all notices, and compare the blocks that their records have with
/// those of the store.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// The keys of the notices that were read since.
    #[cfg(feature = "records")]
    published: HashSet<Key>,
    /// After an error, when it is tried again.
    #[cfg(feature = "records")]
    not_before: Time,
}

impl SharedDriver {
    /// What this node does not learn or end because it cannot read notices, or had no room.
    pub(super) fn lost_notices(&self) -> Option<String> {
        let unreadable = self.unreadable_notices.load(Ordering::Relaxed);
        let stale = self.dropped_stale.load(Ordering::Relaxed);
        if unreadable > 0 {
            return Some(format!(
                "{unreadable} notices of other nodes cannot be read: a node with another secret or \
                 another version wrote them, and the blocks, releases and modes in them do not \
                 count here; give all nodes the same secret and version, and restart this one"
            ));
        }
        (stale > 0).then(|| {
            format!(
                "{stale} released blocks are in the store again and could not be ended, because \
                 too many waited: release them once more"
            )
        })
    }

    /// Decodes notices, and counts those that cannot be read.
    fn read_notices(&self, bodies: &[(String, Vec<u8>)], read: &mut Vec<Notice>) {
        let before = read.len();
        read.extend(bodies.iter().filter_map(|(_, body)| Notice::from_bytes(body)));
        self.count_unreadable((bodies.len() + before - read.len()) as u64);
    }

    pub(super) fn count_unreadable(&self, count: u64) {
        self.unreadable_notices.fetch_add(count, Ordering::Relaxed);
    }

    /// Publishes a block, a release or a reset to the other nodes, with the next heartbeat.
    pub fn notify(&self, event: &Event<'_>) {
        self.notify_at(event, self.store_now());
    }

    /// Publishes what happened at an instant of the store's clock.
    pub(super) fn notify_at(&self, event: &Event<'_>, at: Time) {
        let content = match event {
            Event::Blocked { block, .. } if !block.block.shadow => {
                let until = self.to_store_time(block.block.until);
                NoticeContent::Blocked(block.subject.key, Block { until, ..block.block.clone() })
            }
            Event::Unblocked { subject, .. } | Event::Reset { subject, .. } => {
                NoticeContent::Freed(subject.key)
            }
            _ => return,
        };
        #[cfg(feature = "records")]
        let attachment = self.attachment_of(event);
        #[cfg(not(feature = "records"))]
        let attachment = Vec::new();
        self.notices.add(Notice { at, content, attachment });
    }

    /// The store's clock, as this node estimates it.
    pub(super) fn store_now(&self) -> Time {
        let clock_offset = self.primaries.clock_offset().unwrap_or(0);
        shift(self.engine.now(), clock_offset)
    }

    /// The end of a block by the store's clock: without the store, it was made by this node's.
    fn to_store_time(&self, until: Time) -> Time {
        match self.primaries.clock_offset() {
            Some(clock_offset) if !self.is_up() => shift(until, clock_offset),
            _ => until,
        }
    }

    /// Converts an instant of the store's clock into one of this node's, so that the remaining time
    /// is the same.
    pub(super) fn to_local_time(&self, at: Time, store_now: Time) -> Time {
        if at.is_forever() { at } else { self.engine.now().after(at.since(store_now)) }
    }

    /// The store may have lost data, and its versions may have begun again: all notices are read
    /// from the oldest on, and blocks and releases that the store has lost are published again.
    pub(super) fn begin_agreement(&self) {
        self.notices.set_read_to(String::new());
        self.notices.publish_releases_again(self.store_now());
        *self.agreement.lock() = Some(Agreement::default());
    }

    /// Publishes and reads notices, for about this time.
    pub(super) async fn exchange_notices(&self, longest: Duration) {
        self.unblock_stale().await;
        let mut read = Vec::new();
        let exchanged = self.exchange_messages(&mut read, Instant::now() + longest).await;
        let is_read_to_end = matches!(exchanged, Ok(true));
        let error = exchanged.err().map(|error| {
            format!("other nodes do not learn of the blocks and releases of this one: {error}")
        });
        self.notice_error.store(error.map(std::sync::Arc::new));
        let latest = latest_of_each_key(read);
        #[cfg(feature = "records")]
        {
            self.apply_messages(&latest);
            self.record_notices(&latest, is_read_to_end).await;
        }
        #[cfg(not(feature = "records"))]
        if is_read_to_end {
            *self.agreement.lock() = None;
        }
        let news: Vec<Notice> =
            latest.into_iter().filter(|notice| self.notices.accept(notice)).collect();
        self.note_stale(&news);
        news.into_iter().for_each(|notice| self.apply_notice(notice));
        self.unblock_stale().await;
    }

    /// Reads the notices of other nodes, and removes the blocks that they released from this node:
    /// it is about to write its blocks to the store. `all` reads them from the oldest on. What
    /// cannot be read is read with the next exchange.
    pub(super) async fn learn_releases(&self, all: bool) {
        let mut after = if all { String::new() } else { self.notices.read_to() };
        let mut read = Vec::new();
        for _ in 0..MESSAGES_MAX {
            let Ok(reply) = self.send_notices(&[], &after).await else { break };
            let notices = reply.notices.iter();
            read.extend(notices.filter_map(|(_, body)| Notice::from_bytes(body)));
            let is_page_full = reply.notices.len() >= NOTICES_PER_REPLY;
            match reply.notices.into_iter().next_back() {
                Some((version, _)) if is_page_full => after = version,
                _ => break,
            }
        }
        for notice in latest_of_each_key(read) {
            if let NoticeContent::Freed(key) = notice.content
                && self.notices.is_news(&notice)
            {
                self.free_locally(key);
            }
        }
    }

    /// Whether the blocks of the records are compared with those of the store now.
    #[cfg(feature = "records")]
    pub(super) fn is_agreement_due(&self) -> bool {
        let now = self.engine.now();
        self.agreement.lock().as_ref().is_some_and(|agreement| agreement.not_before <= now)
    }

    /// Notes the keys of notices that were read; returns all since the loss.
    #[cfg(feature = "records")]
    pub(super) fn note_published(&self, notices: &[Notice]) -> HashSet<Key> {
        let mut agreement = self.agreement.lock();
        let Some(agreement) = agreement.as_mut() else { return HashSet::new() };
        agreement.published.extend(notices.iter().filter_map(Notice::key));
        agreement.published.clone()
    }

    /// The blocks were compared, or it is tried again later.
    #[cfg(feature = "records")]
    pub(super) fn end_agreement(&self, compared: Result<(), String>) {
        let mut agreement = self.agreement.lock();
        let is_compared = compared.is_ok();
        let error = compared.err().map(|error| {
            format!(
                "after a loss of data, the blocks of the records are not compared with those of \
                 the store: {error}; it is tried again every {} s",
                AGREEMENT_PAUSE.micros() / 1_000_000
            )
        });
        self.agreement_error.store(error.map(std::sync::Arc::new));
        match agreement.as_mut() {
            Some(agreement) if !is_compared => {
                agreement.not_before = self.engine.now().after(AGREEMENT_PAUSE);
            }
            _ => *agreement = None,
        }
    }

    /// Publishes a notice now; returns whether the store has it. If not, a heartbeat publishes it.
    #[cfg(feature = "records")]
    pub(super) async fn publish_now(&self, notice: Notice) -> bool {
        if !self.primaries.any_in_use() {
            self.notices.add(notice);
            return false;
        }
        let publishing = self.publishing.lock().await;
        // After the notices that wait: an erasure keeps active blocks, so that nodes must learn of
        // the releases before it first.
        loop {
            let mut own = self.notices.take(NOTICES_PER_MESSAGE - 1);
            let is_last = own.len() < NOTICES_PER_MESSAGE - 1;
            if is_last {
                own.push(notice.clone());
            }
            // The notices in the reply are left to the next heartbeat.
            if self.send_notices(&own, &self.notices.read_to()).await.is_err() {
                self.notices.give_back(own);
                if !is_last {
                    self.notices.add(notice);
                }
                return false;
            }
            if is_last {
                drop(publishing);
                return true;
            }
        }
    }

    /// Sends notices of this node, and returns those of all nodes after a version.
    async fn send_notices(&self, own: &[Notice], after: &str) -> Result<NodeReply, StoreError> {
        let bodies: Vec<Vec<u8>> = own.iter().map(Notice::to_bytes).collect();
        let revision = self.engine.catalog().revision.to_string();
        let at = self.store_now();
        let name = self.node_name().to_owned();
        let state = NodeState { at, revision: revision.clone(), name }.to_line();
        let message = NodeMessage {
            node: &self.node_id,
            state: &state,
            gone: &self.peers.take_gone(),
            after,
            notices: &bodies,
        };
        let reply = self.store.exchange(&message).await?;
        self.peers.update(&self.node_id, &revision, &reply.nodes, at);
        self.notices.set_stored(reply.stored);
        Ok(reply)
    }

    /// Returns whether all notices were published and read.
    async fn exchange_messages(
        &self,
        read: &mut Vec<Notice>,
        until: Instant,
    ) -> Result<bool, StoreError> {
        for _ in 0..MESSAGES_MAX {
            // Two senders at once could reorder what they take.
            let publishing = self.publishing.lock().await;
            let own = self.notices.take(NOTICES_PER_MESSAGE);
            let is_last = own.len() < NOTICES_PER_MESSAGE;
            let reply = match self.send_notices(&own, &self.notices.read_to()).await {
                Ok(reply) => reply,
                Err(error) => {
                    self.notices.give_back(own);
                    return Err(error);
                }
            };
            drop(publishing);
            let is_page_full = reply.notices.len() >= NOTICES_PER_REPLY;
            if let Some((version, _)) = reply.notices.last() {
                self.notices.set_read_to(version.clone());
            }
            self.read_notices(&reply.notices, read);
            if reply.stored > NOTICES_MAX {
                self.trim_notices().await?;
            }
            if is_last && !is_page_full {
                return Ok(true);
            }
            if Instant::now() >= until {
                break;
            }
        }
        Ok(false)
    }

    /// Drops the oldest notices. A node that starts later, without shared records, does not learn
    /// of the active blocks among them.
    async fn trim_notices(&self) -> Result<(), StoreError> {
        let dropped = self.store.trim_notices(NOTICES_LEFT).await?;
        let now = self.store_now();
        let dropped = dropped.iter().filter_map(|body| Notice::from_bytes(body));
        let active = dropped.filter(|notice| notice.is_active_block(now)).count();
        self.notices.on_dropped(active as u64);
        Ok(())
    }

    fn apply_notice(&self, notice: Notice) {
        match notice.content {
            NoticeContent::Blocked(key, block) => {
                let now = self.store_now();
                if block.until > now {
                    let until = self.to_local_time(block.until, now);
                    self.store_block_locally(key, Block { until, ..block });
                }
            }
            NoticeContent::Freed(key) => self.free_locally(key),
            NoticeContent::Message => {}
        }
    }

    /// Another node has released the key: no block of it is left on this node.
    fn free_locally(&self, key: Key) {
        self.block_cache.forget(key);
        self.unsynced.forget(&[key]);
        self.mirror(&Batch::Unblock(vec![key.into()]));
    }
}

/// The last notice about each key, and every message, in the order of their versions.
fn latest_of_each_key(notices: Vec<Notice>) -> Vec<Notice> {
    let mut latest: HashMap<Key, Time> = HashMap::new();
    for notice in &notices {
        let Some(key) = notice.key() else { continue };
        let at = latest.entry(key).or_default();
        *at = notice.at.max(*at);
    }
    let is_latest =
        |notice: &Notice| notice.key().is_none_or(|key| latest.get(&key) == Some(&notice.at));
    notices.into_iter().filter(is_latest).collect()
}

pub(super) fn shift(at: Time, micros: i64) -> Time {
    if at.is_forever() { at } else { Time::from_micros(at.micros().saturating_add(micros)) }
}
