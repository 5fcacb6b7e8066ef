//! With each heartbeat a node publishes the blocks that it started and released, and applies those
//! of the other nodes to its local fallback: while the store is unavailable, a block of any node
//! denies on every node.
//!
//! The store keeps the newest [`NOTICES_MAX`] notices. An error here does not open the circuit
//! breaker: decisions do not depend on notices.

use std::collections::HashMap;

use catraca_core::batch::Batch;
use catraca_core::cell::Block;
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::SharedDriver;
use super::notice::{Notice, NoticeContent};
use super::peers::NodeState;
use crate::event::Event;
use crate::store::{NOTICES_PER_REPLY, NodeMessage, NodeReply, StoreError};

/// The most notices in the store.
const NOTICES_MAX: u64 = 100_000;
/// How many are left when there are more: not every heartbeat of a flood then drops some.
const NOTICES_LEFT: u64 = 99_000;
/// Notices in one message.
const NOTICES_PER_MESSAGE: usize = 256;
/// Messages in one heartbeat; what is left waits for the next one.
const MESSAGES_MAX: usize = 400;

impl SharedDriver {
    /// Publishes a block, a release or a reset to the other nodes, with the next heartbeat.
    pub fn notify(&self, event: &Event<'_>) {
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
        self.notices.add(Notice { at: self.store_now(), content, attachment });
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

    /// Publishes and reads notices. `all` reads them from the oldest on: the store may have lost
    /// data, and its versions may have begun again.
    pub(super) async fn exchange_notices(&self, all: bool) {
        if all {
            self.notices.set_read_to(String::new());
        }
        let mut read = Vec::new();
        let exchanged = self.exchange_messages(&mut read).await;
        let error = exchanged.err().map(|error| {
            format!("other nodes do not learn of the blocks and releases of this one: {error}")
        });
        let is_complete = error.is_none();
        self.notice_error.store(error.map(std::sync::Arc::new));
        let latest = latest_of_each_key(read);
        #[cfg(feature = "records")]
        {
            self.apply_messages(&latest);
            self.record_notices(&latest, all && is_complete).await;
        }
        #[cfg(not(feature = "records"))]
        let _ = is_complete;
        for notice in latest {
            if self.notices.accept(&notice) {
                self.apply_notice(notice);
            }
        }
        self.notices.forget_old(self.store_now());
    }

    /// Publishes a notice now; returns whether the store has it. If not, a heartbeat publishes it.
    #[cfg(feature = "records")]
    pub(super) async fn publish_now(&self, notice: Notice) -> bool {
        // The notices in the reply are left to the next heartbeat.
        let is_published = self.primaries.any_in_use()
            && self.send_notices(std::slice::from_ref(&notice)).await.is_ok();
        if !is_published {
            self.notices.add(notice);
        }
        is_published
    }

    /// Sends notices of this node, and returns those that it has not read.
    async fn send_notices(&self, own: &[Notice]) -> Result<NodeReply, StoreError> {
        let bodies: Vec<Vec<u8>> = own.iter().map(Notice::to_bytes).collect();
        let revision = self.engine.catalog().revision.to_string();
        let at = self.store_now();
        let name = self.node_name().to_owned();
        let state = NodeState { at, revision: revision.clone(), name }.to_line();
        let message = NodeMessage {
            node: &self.node_id,
            state: &state,
            gone: &self.peers.take_gone(),
            after: &self.notices.read_to(),
            notices: &bodies,
        };
        let reply = self.store.exchange(&message).await?;
        self.peers.update(&self.node_id, &revision, &reply.nodes, at);
        self.notices.set_stored(reply.stored);
        Ok(reply)
    }

    async fn exchange_messages(&self, read: &mut Vec<Notice>) -> Result<(), StoreError> {
        for _ in 0..MESSAGES_MAX {
            let own = self.notices.take(NOTICES_PER_MESSAGE);
            let is_last = own.len() < NOTICES_PER_MESSAGE;
            let reply = match self.send_notices(&own).await {
                Ok(reply) => reply,
                Err(error) => {
                    self.notices.give_back(own);
                    return Err(error);
                }
            };
            let is_page_full = reply.notices.len() >= NOTICES_PER_REPLY;
            if let Some((version, _)) = reply.notices.last() {
                self.notices.set_read_to(version.clone());
            }
            let notices = reply.notices.iter();
            read.extend(notices.filter_map(|(_, body)| Notice::from_bytes(body)));
            if reply.stored > NOTICES_MAX {
                self.trim_notices().await?;
            }
            if is_last && !is_page_full {
                break;
            }
        }
        Ok(())
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
            NoticeContent::Freed(key) => {
                self.block_cache.forget(key);
                self.mirror(&Batch::Unblock(vec![key.into()]));
            }
            NoticeContent::Message => {}
        }
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

fn shift(at: Time, micros: i64) -> Time {
    if at.is_forever() { at } else { Time::from_micros(at.micros().saturating_add(micros)) }
}
