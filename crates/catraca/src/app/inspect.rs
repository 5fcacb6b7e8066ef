//! Inspect: all there is to know of a subject, in one answer. Changes nothing.

use catraca_core::decision::{DecisionRow, Reason};
use catraca_core::refusal::Refusal;
use catraca_core::request::Check;
use catraca_core::subject::Subject;

use super::blocks::ListedBlock;
use super::facts::FactMap;
use super::{App, AppError};
use crate::error::Error;
use crate::records::{BlockQuery, BlockRow};

/// All there is to know of a subject.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// `allowlisted` or `blocklisted`, if a list decides for the subject.
    pub list: Option<Reason>,
    /// Every policy that applies to the subject, with its present figures.
    pub policies: Vec<InspectedPolicy>,
    /// The facts about the values of the subject.
    pub facts: FactMap,
    /// The active blocks of this namespace that name a value of the subject, and those that the
    /// same acts made; at most a page of each value.
    pub blocks: Vec<BlockRow>,
}

/// The figures of one policy for a subject, as a check of cost one would see them.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedPolicy {
    /// The row of the decision.
    pub row: DecisionRow,
    /// The message for the caller, if the policy would deny it.
    pub message: Option<String>,
}

impl App {
    /// Inspects a subject.
    pub async fn inspect(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Inspection, AppError> {
        Ok(Inspection {
            list: self.deciding_list(namespace, subject)?,
            policies: self.inspect_policies(namespace, subject).await?,
            facts: self.facts_of(subject)?,
            blocks: self.blocks_of(namespace, subject).await?,
        })
    }

    fn deciding_list(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Option<Reason>, AppError> {
        // Which gate does not matter: a list decides for all of them.
        let Some(gate) = self.catalog().gates.keys().next().cloned() else { return Ok(None) };
        let check = Check { namespace, subject: copy(subject), ..Check::new(&gate, []) };
        Ok(self.engine().decide_by_list(&self.rules(), &check)?.map(|decision| decision.reason))
    }

    async fn inspect_policies(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<InspectedPolicy>, AppError> {
        let catalog = self.catalog();
        let mut found: Vec<InspectedPolicy> = Vec::new();
        for policy in &catalog.policies {
            // Without lists: they would hide the figures.
            let check = Check {
                namespace,
                subject: copy(subject),
                lists: false,
                ..Check::new(&policy.name, [])
            };
            let decision = match self.peek(&check).await {
                Ok(decision) => decision,
                // Such a policy does not apply to this subject.
                Err(Error::Refused(Refusal::MissingAttribute { .. } | Refusal::NoTier(_))) => {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let message = decision.message;
            // A policy that `otherwise` selected instead is found under its own name.
            let own = decision.rows.into_iter().filter(|row| row.policy == policy.name);
            found.extend(own.map(|row| InspectedPolicy { row, message: message.clone() }));
        }
        Ok(found)
    }

    fn facts_of(&self, subject: &Subject<'_>) -> Result<FactMap, AppError> {
        let mut facts = FactMap::new();
        for (attribute, value) in subject.pairs() {
            facts.extend(self.facts_about(attribute, value)?);
        }
        Ok(facts)
    }

    async fn blocks_of(
        &self,
        namespace: &str,
        subject: &Subject<'_>,
    ) -> Result<Vec<BlockRow>, AppError> {
        let mut blocks: Vec<BlockRow> = Vec::new();
        if self.parts.records.is_none() {
            return Ok(blocks);
        }
        for (attribute, value) in subject.pairs() {
            let about = self.stored_values(attribute, value)?;
            let namespace = Some(namespace.to_owned());
            let page =
                self.blocks(BlockQuery { namespace, about, ..BlockQuery::default() }).await?;
            // A key of several attributes is found by each of them.
            let found = page
                .rows
                .into_iter()
                .flat_map(|ListedBlock { row, members }| std::iter::once(row).chain(members));
            for row in found {
                if blocks.iter().all(|known| known.id != row.id) {
                    blocks.push(row);
                }
            }
        }
        Ok(blocks)
    }
}

/// The same subject, for a check that lives shorter.
fn copy<'short, 'long: 'short>(subject: &Subject<'long>) -> Subject<'short> {
    subject.pairs().iter().copied().collect()
}
