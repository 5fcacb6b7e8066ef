//! Nodes with records of their own: the store is the authority for lists, facts, modes and epochs.
//!
//! An operator's change is written to the store and to the records of this node. Other nodes read
//! all rules when the store's change counter moves, apply them, and write the difference to their
//! own records, so that their queries show them. Of two acts about a rule the newer one counts. The
//! records never fill an empty store: a node that was stopped does not know what was changed since.
//! A running node does, and writes again what the store has lost.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use catraca_core::batch::{Batch, UnblockRow};
use catraca_core::time::Time;
use parking_lot::Mutex;

use super::SharedDriver;
use super::erasures::PendingErasures;
use super::known_rules::{KnownRule, KnownRules, RuleState};
use super::rule_changes::changed_rules;
use super::rule_item::{RuleItem, RuleName};
use crate::engine::{ResumeBatches, ResumeError, ResumeSummary, random_bytes};
use crate::records::{AttributeValue, Record, RecordKind, Records, RecordsError, RestoredItem};
use crate::store::{PrimaryId, RuleWriteMode, StampedRule, StoreError, StoreStatus, When};

/// What the store is bound to instead of the identity of records.
const IDENTITY: &str = "of each node ([records] scope = \"node\")";
/// How long a node that starts may read notices.
const FIRST_EXCHANGE_TIME: Duration = Duration::from_secs(60);
/// Rules in one write.
const RULES_PER_WRITE: usize = 500;

/// The rules that nodes share through the store.
pub(super) struct NodeScope {
    pub records: Arc<Records>,
    known: Mutex<KnownRules>,
    pending: Mutex<PendingRules>,
    /// Whether the store has lost data, and did not get all rules again yet.
    lost_data: AtomicBool,
    /// Rules of the store that this node cannot read.
    unreadable_rules: AtomicUsize,
    /// What other nodes want erased.
    pub erasures: Arc<PendingErasures>,
}

/// Changes of this node that the store did not take yet.
#[derive(Default)]
struct PendingRules {
    names: BTreeSet<RuleName>,
    /// The number of the last of these changes.
    number: u64,
}

impl NodeScope {
    /// Why this node does not do what others do, and the remedy.
    pub fn error(&self) -> Option<String> {
        let rules = self.unreadable_rules.load(Ordering::Relaxed);
        if rules == 0 {
            return self.erasures.error();
        }
        Some(format!(
            "{rules} lists, facts and modes of other nodes cannot be read: a node with another \
             secret or a newer version wrote them; what this node could read last stays in force; \
             give it the newest secret and version, and restart it"
        ))
    }
}

impl SharedDriver {
    /// Whether the records are those of this node alone.
    pub fn is_node_scope(&self) -> bool {
        self.options.records == super::RecordsScope::Node
    }

    /// What the store is bound to: nodes that share counters must share blocks and lists.
    pub(super) fn records_identity(&self, records: &Records) -> Result<String, RecordsError> {
        if self.is_node_scope() { Ok(IDENTITY.to_owned()) } else { records.identity() }
    }

    /// Reads rules and blocks from the store; the records of this node get what they lack.
    pub(super) async fn resume_node_scope(
        &self,
        records: Arc<Records>,
        here: Time,
        now: Time,
    ) -> Result<ResumeSummary, ResumeError> {
        self.engine.local_changes().follow();
        let known = self.recorded_rules(&records, now).await?;
        // On a second attempt the first one stays.
        let scope = self.node_scope.get_or_init(|| NodeScope {
            records: Arc::clone(&records),
            known: Mutex::new(KnownRules::from_records(known)),
            pending: Mutex::default(),
            lost_data: AtomicBool::new(false),
            unreadable_rules: AtomicUsize::new(0),
            erasures: Arc::default(),
        });
        let read = self.read_rules(scope, now).await?;
        drop(records.hide_values(here, &self.engine.catalog(), self.engine.digester()));
        self.begin_agreement();
        self.exchange_notices(FIRST_EXCHANGE_TIME).await;
        let mut blocks = 0;
        self.engine.store().for_each_block(|_, block| blocks += u64::from(block.until > here));
        Ok(ResumeSummary { blocks, ..read })
    }

    /// The rules of the records, by name.
    async fn recorded_rules(
        &self,
        records: &Arc<Records>,
        now: Time,
    ) -> Result<BTreeMap<RuleName, RuleItem>, ResumeError> {
        let reader = Arc::clone(records);
        let digester = self.engine.digester().clone();
        let read = move || {
            let mut rules = BTreeMap::new();
            // Since forever: no released keys.
            reader.restore_changes(now, Time::FOREVER, |item| {
                if let Some(rule) = RuleItem::from_restored(item) {
                    rules.insert(rule.name(&digester), rule);
                }
            })?;
            Ok(rules)
        };
        tokio::task::spawn_blocking(read).await.map_err(|error| {
            ResumeError::Store(StoreError::unavailable(error.to_string()).into())
        })?
    }

    /// Brings the rules of this node, of its records and of the store together.
    pub(super) async fn catch_up_rules(
        &self,
        scope: &NodeScope,
        status: &StoreStatus,
        lost_data: bool,
        changed: bool,
    ) -> Result<(), String> {
        let to_text = |error: StoreError| error.to_string();
        // Until all of it has succeeded, the next heartbeats try again.
        let lost_data = scope.lost_data.fetch_or(lost_data, Ordering::Relaxed) || lost_data;
        if lost_data {
            let all = scope.known.lock().names();
            self.put_known(scope, &all).await.map_err(to_text)?;
        }
        let flushed = self.flush_rules(scope).await.map_err(to_text)?;
        if changed || lost_data || flushed {
            self.read_rules(scope, status.now).await.map_err(|error| error.to_string())?;
        }
        scope.lost_data.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the rules that operators changed to the store; returns whether it has them, and all
    /// earlier ones if there are none. If not, the next heartbeats try again.
    pub async fn write_rule_changes(&self, changes: &[RecordKind]) -> bool {
        let Some(scope) = self.node_scope.get() else { return false };
        let names = self.note_acts(scope, changes);
        if names.is_empty() {
            return self.primaries.any_in_use() && scope.pending.lock().names.is_empty();
        }
        let number = self.engine.local_changes().last();
        if self.primaries.any_in_use() && self.put_known(scope, &names).await.is_ok() {
            return true;
        }
        let mut pending = scope.pending.lock();
        pending.names.extend(names);
        pending.number = number;
        false
    }

    /// Removes the facts about these values, in one namespace or in all; returns whether they are
    /// removed from the store.
    pub async fn forget_shared_facts(
        &self,
        about: &[AttributeValue],
        within: Option<&str>,
    ) -> bool {
        let Some(scope) = self.node_scope.get() else { return false };
        let is_erased = |rule: &RuleItem| match rule {
            RuleItem::Fact(fact) => {
                let in_scope = within.is_none() || fact.namespace.as_deref() == within;
                in_scope && about.contains(&fact.about)
            }
            _ => false,
        };
        let removals: Vec<RecordKind> = {
            let known = scope.known.lock();
            let erased = known.rules().filter(|(_, rule)| is_erased(rule));
            erased.filter_map(|(_, rule)| rule.to_removal()).collect()
        };
        self.write_rule_changes(&removals).await
    }

    /// Writes the changes that wait. Returns whether there were any.
    async fn flush_rules(&self, scope: &NodeScope) -> Result<bool, StoreError> {
        let PendingRules { names, number } = std::mem::take(&mut *scope.pending.lock());
        if names.is_empty() {
            return Ok(false);
        }
        let all: Vec<RuleName> = names.iter().cloned().collect();
        if let Err(error) = self.put_known(scope, &all).await {
            let mut pending = scope.pending.lock();
            pending.names.extend(names);
            pending.number = pending.number.max(number);
            return Err(error);
        }
        self.engine.local_changes().on_written(number);
        Ok(true)
    }

    /// Writes what this node knows of these rules; the store keeps what is newer.
    async fn put_known(&self, scope: &NodeScope, names: &[RuleName]) -> Result<(), StoreError> {
        for chunk in names.chunks(RULES_PER_WRITE) {
            let writes = {
                let known = scope.known.lock();
                known.to_writes(chunk, |rule| self.seal_json(&rule.to_json()))
            };
            self.store.write_rules(&writes, RuleWriteMode::Merge).await?;
        }
        Ok(())
    }

    /// Releases keys again that a primary may still have as blocked, because it lost the release.
    /// Only the block that was released is ended: another node may have blocked the key since.
    pub(super) async fn release_again(
        &self,
        scope: &NodeScope,
        id: PrimaryId,
        since: Time,
    ) -> Result<(), String> {
        let records = Arc::clone(&scope.records);
        let now = self.engine.now();
        let read = move || {
            let mut rows: Vec<UnblockRow> = Vec::new();
            records.restore_changes(now, since, |item| {
                if let RestoredItem::Released(key, Some(end))
                | RestoredItem::ResetKey(key, Some(end)) = item
                {
                    rows.push(UnblockRow { key, only_until: Some(end) });
                }
            })?;
            Ok::<_, RecordsError>(rows)
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
        let mut rows = read.map_err(|error| error.to_string())?;
        let mut blocked = HashSet::new();
        self.engine.store().for_each_block(|key, block| {
            if block.until > now {
                blocked.insert(key);
            }
        });
        // A key that was blocked again stays blocked.
        rows.retain(|row| self.is_on(id, row.key) && !blocked.contains(&row.key));
        for chunk in rows.chunks(super::unsynced_blocks::BATCH) {
            let released = self.store.apply(&Batch::Unblock(chunk.to_vec()), When::Store).await;
            released.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Reads all rules of the store, merges them with those of this node, applies and records them.
    async fn read_rules(&self, scope: &NodeScope, now: Time) -> Result<ResumeSummary, ResumeError> {
        let read = self.engine.local_changes().begin_read();
        let stored = self.stored_rules().await?;
        let catalog = Arc::clone(&self.engine.rules().catalog);
        let mut batches = ResumeBatches::new(now, now, &catalog);
        let merged = {
            let mut known = scope.known.lock();
            let merged = known.merge(stored, now);
            scope.unreadable_rules.store(known.unreadable(), Ordering::Relaxed);
            for (_, rule) in known.rules() {
                // Rules need no batches.
                let _ = batches.add(rule.to_restored());
            }
            merged
        };
        let summary = self.engine.conclude_read(batches, &read);
        // No response waits for these records.
        let here = self.engine.now();
        let records = merged.changes.into_iter().map(|kind| Record::automatic(here, kind));
        drop(scope.records.record(records.collect()));
        self.put_known(scope, &merged.lost).await?;
        for chunk in merged.purged.chunks(RULES_PER_WRITE) {
            self.store.write_rules(chunk, RuleWriteMode::Purge).await?;
        }
        Ok(summary)
    }

    /// The rules and tombstones of the store.
    async fn stored_rules(&self) -> Result<BTreeMap<RuleName, KnownRule>, StoreError> {
        let mut rules = BTreeMap::new();
        let mut from = Some(0);
        while let Some(cursor) = from {
            let page = self.store.read_rules(cursor).await?;
            for StampedRule { name, stamp, body } in page.rules {
                let read = |body: Vec<u8>| {
                    let rule = self.open_json(&body).and_then(|json| RuleItem::from_json(&json));
                    rule.map_or(RuleState::Unreadable(None), RuleState::Present)
                };
                let state = body.map_or(RuleState::Removed, read);
                rules.insert(name, KnownRule { stamp, state });
            }
            from = page.next;
        }
        Ok(rules)
    }

    /// Notes changes of this node; returns the names of the rules that they concern.
    fn note_acts(&self, scope: &NodeScope, changes: &[RecordKind]) -> Vec<RuleName> {
        let digester = self.engine.digester();
        let now = self.store_now();
        let tie_breaker = u32::from_le_bytes(random_bytes());
        let mut known = scope.known.lock();
        let mut names = Vec::new();
        for change in changes {
            let (removed, added) = changed_rules(&known, change, digester);
            for name in removed {
                known.act(name.clone(), None, now, tie_breaker);
                names.push(name);
            }
            for rule in added {
                let name = rule.name(digester);
                known.act(name.clone(), Some(rule), now, tie_breaker);
                names.push(name);
            }
        }
        names
    }

    pub(super) fn seal_json(&self, body: &serde_json::Value) -> Vec<u8> {
        self.sealer.seal(u128::from_le_bytes(random_bytes()), body.to_string().as_bytes())
    }

    pub(super) fn open_json(&self, sealed: &[u8]) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.sealer.open(sealed)?).ok()
    }
}
