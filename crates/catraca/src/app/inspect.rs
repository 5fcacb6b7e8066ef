//! Inspect: all there is to know of a subject, in one answer. Changes nothing.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::SystemTime;

use catraca_core::decision::{Decision, DecisionRow, Reason};
use catraca_core::lists::AccessListEntry;
use catraca_core::policy::{Name, Policy, Tier};
use catraca_core::refusal::Refusal;
use catraca_core::request::Check;
use catraca_core::subject::Subject;
use catraca_core::time::{Span, Time};

use super::blocks::ListedBlock;
use super::facts::FactMap;
use super::{App, AppError};
use crate::error::Error;
use crate::records::{
    BlockQuery, BlockRow, BlockStates, Incomplete, KeyAttempts, ListName, ListRow, Records,
};
use crate::rule_set::RuleSet;

/// How many active blocks of one value an inspection lists. Blocks of one act count once.
pub const INSPECTED_BLOCKS_MAX: u32 = 1_000;

/// How many blocks that have ended an inspection lists.
pub const INSPECTED_ENDED_MAX: u32 = 10;

/// How far back attempts are counted.
const DAY: Span = Span::from_secs(86_400);

/// All there is to know of a subject.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The list entry that decides for the subject before its policies, if there is one.
    pub list: Option<InspectedEntry>,
    /// Every policy that applies to the subject, with its present figures.
    pub policies: Vec<InspectedPolicy>,
    /// The facts about the values of the subject that apply in this namespace.
    pub facts: FactMap,
    /// The active blocks of this namespace that name a value of the subject, and those that the
    /// same acts made; at most [`INSPECTED_BLOCKS_MAX`] acts of each value.
    pub blocks: Vec<BlockRow>,
    /// Whether there are more active blocks than these.
    pub more_blocks: bool,
    /// The blocks of this namespace that named a value of the subject and have ended, those that
    /// ended last first; at most [`INSPECTED_ENDED_MAX`].
    pub ended_blocks: Vec<BlockRow>,
    /// Why the newest blocks may be missing, if so.
    pub incomplete: Option<Incomplete>,
}

/// The list entry that decides for a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedEntry {
    /// `allowlisted` or `blocklisted`.
    pub decision: Reason,
    /// The entry; the value of a private attribute is a pseudonym.
    pub entry: AccessListEntry,
    /// Where it comes from.
    pub source: EntrySource,
}

/// Where a list entry comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySource {
    /// A file of the catalog.
    Catalog,
    /// An operator added it at run time.
    RunTime {
        /// When it was added or last changed; absent if the records do not have it yet.
        #[doc(hidden)]
        since: Option<Time>,
        /// The operator, if the records have one.
        by: Option<String>,
    },
}

impl EntrySource {
    /// When an entry of an operator was added or last changed; absent if the records do not have
    /// it yet.
    pub fn since(&self) -> Option<SystemTime> {
        match self {
            Self::RunTime { since, .. } => since.map(SystemTime::from),
            Self::Catalog => None,
        }
    }
}

/// The figures of one policy for a subject, as a check of cost one would see them.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedPolicy {
    /// The tier whose own counter the row shows: requests that the tier matches are counted there,
    /// and the subject does not say whether it matches. Absent for the row that the subject itself
    /// selects.
    pub tier: Option<InspectedTier>,
    /// The row of the decision.
    pub row: DecisionRow,
    /// The message for the caller, if the policy would deny it.
    pub message: Option<String>,
    /// The attempts of this key in the last day, if the records count those of single keys.
    pub attempts: Option<KeyAttempts>,
}

/// What a tier matches: names with their accepted values, as in the catalog. The values of private
/// attributes are pseudonyms.
pub type InspectedTier = Vec<(String, Vec<String>)>;

impl App {
    /// Inspects a subject.
    pub async fn inspect(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Inspection, AppError> {
        let incomplete = match self.parts.records {
            Some(_) => self.await_queued_records().await?,
            None => None,
        };
        let (blocks, more_blocks) = self.blocks_of(namespace, subject).await?;
        Ok(Inspection {
            incomplete,
            ended_blocks: self.ended_blocks_of(namespace, subject).await?,
            list: self.deciding_entry(namespace, subject).await?,
            policies: self.inspect_policies(namespace, subject).await?,
            facts: self.facts_of(namespace, subject)?,
            blocks,
            more_blocks,
        })
    }

    /// The list entry that decides for a subject, at every gate.
    async fn deciding_entry(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Option<InspectedEntry>, AppError> {
        let rules = self.rules();
        let digester = self.engine().digester();
        let found = rules.list_entry_for(namespace, subject, digester, self.now())?;
        let Some(found) = found else { return Ok(None) };
        let stored = found.entry.clone();
        let mut entry = stored.clone();
        self.hide_private_target(&mut entry.target);
        let decision = if found.allows { Reason::Allowlisted } else { Reason::Blocklisted };
        let list = if found.allows { ListName::Allow } else { ListName::Block };
        let source = match found.is_of_catalog {
            true => EntrySource::Catalog,
            false => {
                let row = self.recorded_entry(list, stored).await?;
                let since = row.as_ref().map(|row| row.at);
                EntrySource::RunTime { since, by: row.and_then(|row| row.by) }
            }
        };
        Ok(Some(InspectedEntry { decision, entry, source }))
    }

    /// The row of a run-time entry.
    async fn recorded_entry(
        &self,
        list: ListName,
        entry: AccessListEntry,
    ) -> Result<Option<ListRow>, AppError> {
        if self.parts.records.is_none() {
            return Ok(None);
        }
        self.await_queued_records().await?;
        self.read_records(move |records| records.list_row(list, &entry)).await
    }

    async fn inspect_policies(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<InspectedPolicy>, AppError> {
        let rules = self.rules();
        let mut found: Vec<InspectedPolicy> = Vec::new();
        for policy in &rules.catalog.policies {
            // Without lists: they would hide the figures.
            let check = Check {
                namespace,
                subject: subject.reborrow(),
                lists: false,
                ..Check::new(&policy.name, Subject::new())
            };
            match self.peek(&check).await {
                Ok(decision) => {
                    let keys = self.attempts_of(namespace, &policy.name, subject).await?;
                    let own = own_rows(decision, policy, None);
                    found.extend(own.enumerate().map(|(index, inspected)| InspectedPolicy {
                        attempts: keys.get(index).copied().flatten(),
                        ..inspected
                    }));
                }
                Err(error) => ignore_inapplicable(error)?,
            }
            self.inspect_tiers(&rules, policy, &check, &mut found).await?;
        }
        Ok(found)
    }

    /// Adds the counters of the tiers of a policy that requests of the subject may have charged,
    /// although the subject does not select these tiers.
    async fn inspect_tiers(
        &self,
        rules: &RuleSet,
        policy: &Policy,
        check: &Check<'_>,
        found: &mut Vec<InspectedPolicy>,
    ) -> Result<(), AppError> {
        let Some((id, _)) = rules.catalog.find(&policy.name) else { return Ok(()) };
        for (index, tier) in (0_u8..).zip(&policy.tiers) {
            match self.engine().tier_peek_exchange(rules, check, id, index) {
                Ok(None) => {}
                Ok(Some(exchange)) => {
                    let decision = self.run(exchange).await?;
                    found.extend(own_rows(decision, policy, Some(self.shown_tier(tier))));
                }
                Err(error) => ignore_inapplicable(error)?,
            }
        }
        Ok(())
    }

    fn shown_tier(&self, tier: &Tier) -> InspectedTier {
        let shown = |(name, values): &(Name, Vec<Name>)| {
            let pairs = values.iter().map(|value| (name.to_string(), value.to_string()));
            let mut pairs: Vec<(String, String)> = pairs.collect();
            self.hide_private_parts(&mut pairs);
            (name.to_string(), pairs.into_iter().map(|(_, value)| value).collect())
        };
        tier.when.iter().map(shown).collect()
    }

    /// The attempts of each key of a policy; none if they are not counted.
    async fn attempts_of(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<Option<KeyAttempts>>, AppError> {
        if self.parts.records.as_ref().is_none_or(|records| !records.counts_keys()) {
            return Ok(Vec::new());
        }
        let keys = self.engine().resolve_keys(&self.rules(), namespace, policy, subject)?;
        let since = self.now().before(DAY);
        let read = move |records: &Records| {
            keys.iter().map(|subject| records.attempts(subject.key, since)).collect()
        };
        self.read_records(read).await
    }

    fn facts_of(&self, namespace: &str, subject: &Subject<'_>) -> Result<FactMap, AppError> {
        let mut facts = FactMap::new();
        for (attribute, value) in subject.pairs() {
            facts.extend(self.facts_in_namespace(namespace, attribute, &value)?);
        }
        Ok(facts)
    }

    /// The last blocks of a subject that have ended.
    async fn ended_blocks_of(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<BlockRow>, AppError> {
        let mut blocks: Vec<BlockRow> = Vec::new();
        if self.parts.records.is_none() {
            return Ok(blocks);
        }
        for (attribute, value) in subject.pairs() {
            let query = BlockQuery {
                namespace: Some(namespace.to_owned()),
                about: self.stored_values(attribute, &value)?,
                states: BlockStates::Ended,
                limit: INSPECTED_ENDED_MAX,
                ..BlockQuery::default()
            };
            let page = self.recorded_blocks(query).await?;
            blocks.extend(page.rows.into_iter().map(|listed| listed.row));
        }
        blocks.sort_by_key(|row| Reverse((row.block.until, row.since, row.id)));
        // A key of several attributes is found by each of them.
        blocks.dedup_by_key(|row| row.id);
        blocks.truncate(INSPECTED_ENDED_MAX as usize);
        Ok(blocks)
    }

    /// The active blocks that name a value of the subject, and whether there are more.
    async fn blocks_of(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<(Vec<BlockRow>, bool), AppError> {
        let mut blocks: Vec<BlockRow> = Vec::new();
        let mut has_more = false;
        if self.parts.records.is_none() {
            return Ok((blocks, has_more));
        }
        let mut known = HashSet::new();
        for (attribute, value) in subject.pairs() {
            let about = self.stored_values(attribute, &value)?;
            let namespace = Some(namespace.to_owned());
            let limit = INSPECTED_BLOCKS_MAX;
            let query = BlockQuery { namespace, about, limit, ..BlockQuery::default() };
            let page = self.recorded_blocks(query).await?;
            has_more |= page.next.is_some();
            // A key of several attributes is found by each of them.
            let found = page
                .rows
                .into_iter()
                .flat_map(|ListedBlock { row, members }| std::iter::once(row).chain(members));
            blocks.extend(found.filter(|row| known.insert(row.id)));
        }
        Ok((blocks, has_more))
    }
}

/// The rows of the policy itself. One that `otherwise` selected instead is found under its own
/// name.
fn own_rows(
    decision: Decision,
    policy: &Policy,
    tier: Option<InspectedTier>,
) -> impl Iterator<Item = InspectedPolicy> {
    let message = decision.message;
    let own = decision.rows.into_iter().filter(|row| row.policy == policy.name);
    own.map(move |row| InspectedPolicy {
        tier: tier.clone(),
        row,
        message: message.clone(),
        attempts: None,
    })
}

/// A policy that lacks an attribute or a tier does not apply to the subject.
fn ignore_inapplicable(error: Error) -> Result<(), AppError> {
    match error {
        Error::Refused(Refusal::MissingAttribute { .. } | Refusal::NoTier(_)) => Ok(()),
        error => Err(error.into()),
    }
}
