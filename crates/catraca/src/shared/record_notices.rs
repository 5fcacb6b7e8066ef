//! What notices tell besides blocks. Nodes with records of their own: what a notice says about the
//! subject of a block, for the records of the other nodes, and erasures that every node must carry
//! out.
//!
//! Subjects are encrypted: the store must not have the values of callers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catraca_core::batch::{Batch, Reply};
use catraca_core::cell::Block;
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Penalty;
use catraca_core::time::{Span, Time};
use serde_json::{Value, json};

use super::SharedDriver;
use super::erasures::Erasure;
use super::node_scope::NodeScope;
use super::notice::{Notice, NoticeContent};
use crate::event::{BlockEvent, Event, SubjectKey};
use crate::records::{
    AttributeValue, BlockQuery, BlockStates, PAGE_MAX, Record, RecordKind, RecordsError,
    RestoredItem,
};
use crate::store::{StoreError, When};

/// The reason in the history of a block that the store has lost.
const LOST: &str = "the store no longer has it";

impl SharedDriver {
    /// What the records of other nodes need to know of an event; empty with shared records.
    pub(super) fn attachment_of(&self, event: &Event<'_>) -> Vec<u8> {
        if !self.is_node_scope() {
            return Vec::new();
        }
        let body = match event {
            Event::Blocked { at, block } => block_json(*at, block),
            Event::Unblocked { at, subject } => {
                json!({ "at": at.micros(), "subject": subject_json(subject), "freed": true })
            }
            Event::Reset { at, subject } => {
                json!({ "at": at.micros(), "subject": subject_json(subject), "reset": true })
            }
            _ => return Vec::new(),
        };
        self.seal_json(&body)
    }

    /// Makes every other node erase what its records have about these values. Returns whether the
    /// store has the order; if not, a later heartbeat publishes it.
    pub async fn publish_erasure(
        &self,
        about: &[AttributeValue],
        within: Option<&str>,
        at: Time,
    ) -> bool {
        let values: Vec<Value> =
            about.iter().map(|value| json!([value.attribute, value.value])).collect();
        let body = json!({ "at": at.micros(), "erase": values, "within": within });
        let attachment = self.seal_json(&body);
        let at = self.store_now();
        self.publish_now(Notice { at, content: NoticeContent::Message, attachment }).await
    }

    /// Records the notices of other nodes. After a loss of data, or at the start, the records may
    /// have some of them already, or blocks that the store has no more: they are compared when all
    /// notices are read.
    pub(super) async fn record_notices(&self, notices: &[Notice], is_read_to_end: bool) {
        let Some(scope) = self.node_scope.get() else {
            if is_read_to_end {
                self.end_agreement(Ok(()));
            }
            return;
        };
        let published = self.note_published(notices);
        if !self.is_agreement_due() {
            self.record_news(scope, notices, None);
            return;
        }
        let standing = self.recorded_blocks(scope).await;
        self.record_news(scope, notices, standing.as_ref().ok());
        let compared = match standing {
            Ok(_) if !is_read_to_end => return,
            Ok(standing) => self.agree_about_blocks(scope, standing, &published).await,
            Err(error) => Err(error),
        };
        self.end_agreement(compared);
    }

    /// Records the notices that the records do not have yet. `standing` has their active blocks.
    fn record_news(
        &self,
        scope: &NodeScope,
        notices: &[Notice],
        standing: Option<&HashMap<Key, Time>>,
    ) {
        let mut kinds: Vec<(Time, RecordKind)> = Vec::new();
        let mut erasures = Vec::new();
        for notice in notices {
            let is_known = match (standing, &notice.content) {
                (Some(standing), NoticeContent::Blocked(key, block)) => {
                    standing.get(key) == Some(&block.until) || block.until <= self.store_now()
                }
                (Some(standing), NoticeContent::Freed(key)) => !standing.contains_key(key),
                (_, NoticeContent::Message) => false,
                (None, _) => !self.notices.is_news(notice),
            };
            if is_known {
                continue;
            }
            let body = self.open_json(&notice.attachment);
            let record = body.as_ref().and_then(|body| record_of(body, notice));
            let erasure = body.as_ref().and_then(erasure_of);
            self.count_unreadable(u64::from(record.is_none() && erasure.is_none()));
            kinds.extend(record);
            erasures.extend(erasure);
        }
        let records = kinds.into_iter().map(|(at, kind)| Record::automatic(at, kind)).collect();
        drop(scope.records.record(records));
        // An erasure retains active blocks, so the releases before it must be queued first.
        erasures.into_iter().for_each(|erasure| scope.erasures.add(erasure));
        scope.erasures.start(&scope.records, self.engine.now());
    }

    /// The active blocks that the records of this node have, with their ends.
    async fn recorded_blocks(&self, scope: &NodeScope) -> Result<HashMap<Key, Time>, String> {
        let records = Arc::clone(&scope.records);
        let now = self.store_now();
        let read = move || {
            let mut blocks = HashMap::new();
            records.restore(now, Time::FOREVER, |item| {
                if let RestoredItem::Block(key, block) = item
                    && block.until > now
                    && !block.shadow
                {
                    blocks.insert(key, block.until);
                }
            })?;
            Ok::<_, RecordsError>(blocks)
        };
        self.read_for_agreement(read).await
    }

    /// Blocks of the records that no notice is about. If the store has them, their notices were
    /// lost or never written, and they are published again; else they have ended.
    async fn agree_about_blocks(
        &self,
        scope: &NodeScope,
        standing: HashMap<Key, Time>,
        published: &HashSet<Key>,
    ) -> Result<(), String> {
        let unpublished: Vec<Key> =
            standing.into_keys().filter(|key| !published.contains(key)).collect();
        if unpublished.is_empty() {
            return Ok(());
        }
        let in_store = self.blocks_in_store(&unpublished).await;
        let in_store = in_store.map_err(|error| error.to_string())?;
        let unpublished: HashSet<Key> = unpublished.into_iter().collect();
        let rows = self.read_for_agreement(active_rows(scope, self.store_now())).await?;
        let now = self.engine.now();
        let mut ended = Vec::new();
        for (at, event) in rows {
            let key = event.subject.key;
            if let Some(block) = in_store.get(&key) {
                let until = self.to_local_time(block.until, self.store_now());
                self.store_block_locally(key, Block { until, ..block.clone() });
                let event = BlockEvent { block: block.clone(), ..event };
                // Not as news: a node that has released it since must not block it again.
                self.notify_at(&Event::Blocked { at, block: Box::new(event) }, at);
            } else if unpublished.contains(&key) {
                let mut record = Record::automatic(now, RecordKind::Release(event.subject));
                record.why = Some(LOST.to_owned());
                ended.push(record);
            }
        }
        drop(scope.records.record(ended));
        Ok(())
    }

    /// The active blocks that the store has for these keys. A proposal of no length changes none.
    async fn blocks_in_store(&self, keys: &[Key]) -> Result<HashMap<Key, Block>, StoreError> {
        let penalty = Penalty::without_escalation(Span::ZERO);
        let proposal = BlockProposal::new(penalty, Origin::Operator, false, BlockNote::default());
        let mut found = HashMap::new();
        for chunk in keys.chunks(super::unsynced_blocks::BATCH) {
            let rows = chunk.iter().map(|key| (*key, proposal.clone())).collect();
            let reply = self.store.apply(&Batch::Block(rows), When::Store).await?;
            let Reply::Block(replies) = reply else {
                return Err(StoreError::mismatched_reply());
            };
            let now = self.store_now();
            for (key, reply) in chunk.iter().zip(replies) {
                let block = reply.map(|reply| reply.block);
                let active = block.filter(|block| block.is_active(now, false));
                found.extend(active.map(|block| (*key, block)));
            }
        }
        Ok(found)
    }
}

/// The active blocks of the records, each with the instant at which it started.
fn active_rows(
    scope: &NodeScope,
    now: Time,
) -> impl FnOnce() -> Result<Vec<(Time, BlockEvent)>, RecordsError> + Send + use<> {
    let records = Arc::clone(&scope.records);
    move || {
        let mut all = Vec::new();
        let mut query = BlockQuery {
            states: BlockStates::Active,
            namespace: None,
            policy: None,
            about: Vec::new(),
            origin: None,
            reason: None,
            after: None,
            limit: PAGE_MAX,
        };
        loop {
            let page = records.blocks(&query, now)?;
            all.extend(page.rows.into_iter().map(|row| {
                let first_of_act = row.first_of_act();
                let subject = row.subject;
                let block = row.block;
                // The records show no block of an earlier epoch as active.
                let event = BlockEvent { subject, epoch: now, first_of_act, block };
                (row.since, event)
            }));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(all),
            }
        }
    }
}

fn subject_json(subject: &SubjectKey) -> Value {
    json!({
        "namespace": subject.namespace,
        "policy": subject.policy,
        "parts": subject.parts,
    })
}

fn block_json(at: Time, event: &BlockEvent) -> Value {
    json!({
        "at": at.micros(),
        "subject": subject_json(&event.subject),
        "epoch": event.epoch.micros(),
        "act": event.first_of_act.map(|key| key.to_bytes()),
    })
}

fn read_subject(body: &Value, key: Key) -> Option<SubjectKey> {
    let pair = |pair: &Value| Some((text(&pair[0])?, text(&pair[1])?));
    let parts = body["parts"].as_array()?.iter().map(pair).collect::<Option<Vec<_>>>()?;
    let namespace = text(&body["namespace"])?;
    Some(SubjectKey { key, namespace, policy: text(&body["policy"])?, parts })
}

/// The record of a notice.
fn record_of(body: &Value, notice: &Notice) -> Option<(Time, RecordKind)> {
    let subject = read_subject(&body["subject"], notice.key()?)?;
    let at = Time::from_micros(body["at"].as_i64()?);
    let kind = match &notice.content {
        NoticeContent::Blocked(_, block) => {
            let act = serde_json::from_value::<[u8; 16]>(body["act"].clone()).ok();
            RecordKind::Block(Box::new(BlockEvent {
                subject,
                epoch: Time::from_micros(body["epoch"].as_i64()?),
                first_of_act: act.map(Key::from_bytes),
                block: block.clone(),
            }))
        }
        NoticeContent::Freed(_) if body["reset"] == true => RecordKind::Reset(subject),
        NoticeContent::Freed(_) => RecordKind::Release(subject),
        NoticeContent::Message => return None,
    };
    Some((at, kind))
}

/// The erasure that a notice orders.
fn erasure_of(body: &Value) -> Option<Erasure> {
    let pair =
        |pair: &Value| Some(AttributeValue { attribute: text(&pair[0])?, value: text(&pair[1])? });
    let about = body["erase"].as_array()?.iter().map(pair).collect::<Option<Vec<_>>>()?;
    let at = Time::from_micros(body["at"].as_i64()?);
    Some(Erasure { about, within: text(&body["within"]), at })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
