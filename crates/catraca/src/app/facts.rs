//! Facts about attribute values, such as a category or a plan: list, show, set and delete.
//!
//! Facts that operators set take precedence over those of the catalog.

use std::collections::BTreeMap;

use super::operator::{OwnedOperator, TEXT_MAX};
use super::{App, AppError};
use crate::records::{AttributeValue, FactCursor, FactRow, Operator, Page, RecordKind};

/// The most facts in one change.
pub const FACTS_MAX: usize = 32;

/// Facts by name.
pub type FactMap = BTreeMap<String, String>;

/// The facts about one value, before and after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFacts {
    /// The facts before.
    pub before: FactMap,
    /// The facts now.
    pub after: FactMap,
    /// Whether the change is on disk.
    pub durable: bool,
}

impl App {
    /// The facts that operators set, in the order of attribute, value and name.
    pub async fn stated_facts(
        &self,
        after: Option<FactCursor>,
        limit: u32,
    ) -> Result<Page<FactRow, FactCursor>, AppError> {
        let mut page = self.read_records(move |records| records.facts(after, limit)).await?;
        for row in &mut page.rows {
            self.engine().hide_private_value(&row.about.attribute, &mut row.about.value);
        }
        if let Some((attribute, value, _)) = &mut page.next {
            self.engine().hide_private_value(attribute, value);
        }
        Ok(page)
    }

    /// All facts about a value, of operators and of the catalog.
    pub fn facts_about(&self, attribute: &str, value: &str) -> Result<FactMap, AppError> {
        let facts = self.engine().facts_about(attribute, value)?;
        Ok(facts.iter().map(|(name, fact)| (name.to_string(), fact.to_string())).collect())
    }

    /// Sets these facts about a value; others stay as they are.
    pub async fn set_facts(
        &self,
        by: &Operator<'_>,
        attribute: &str,
        value: &str,
        facts: FactMap,
    ) -> Result<ChangedFacts, AppError> {
        let by = OwnedOperator::new(by)?;
        check_facts(&facts)?;
        self.required_records()?;
        let app = self.clone();
        let attribute = attribute.to_owned();
        let value = value.to_owned();
        self.run_to_end(async move {
            let _change = app.parts.change_lock.lock().await;
            let before = app.facts_about(&attribute, &value)?;
            let pairs: Vec<(&str, &str)> = facts.iter().map(|(n, f)| (&**n, &**f)).collect();
            app.engine().state_facts(&attribute, &value, &pairs)?;
            let (stored, merge) = app.merged_value(&attribute, &value)?;
            let change = RecordKind::SetFacts(stored, facts.into_iter().collect());
            let durable = app.record_change(&by, vec![merge, change]).await?;
            let after = app.facts_about(&attribute, &value)?;
            Ok(ChangedFacts { before, after, durable })
        })
        .await
    }

    /// Deletes all facts that operators set about a value. The catalog's own facts remain.
    pub async fn forget_facts(
        &self,
        by: &Operator<'_>,
        attribute: &str,
        value: &str,
    ) -> Result<ChangedFacts, AppError> {
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let app = self.clone();
        let attribute = attribute.to_owned();
        let value = value.to_owned();
        self.run_to_end(async move {
            let _change = app.parts.change_lock.lock().await;
            let before = app.facts_about(&attribute, &value)?;
            if !app.engine().forget_facts(&attribute, &value)? {
                let detail = format!(
                    "no operator set a fact about this value of `{attribute}`; the catalog's facts \
                     are changed in its file"
                );
                return Err(AppError::not_found("unknown-value", detail));
            }
            let (stored, merge) = app.merged_value(&attribute, &value)?;
            let change = RecordKind::ForgetFacts(stored);
            let durable = app.record_change(&by, vec![merge, change]).await?;
            let after = app.facts_about(&attribute, &value)?;
            Ok(ChangedFacts { before, after, durable })
        })
        .await
    }

    /// A value as the records store it, and the record that moves the facts about it there: some
    /// may be stored in the form of an older catalog or secret.
    fn merged_value(
        &self,
        attribute: &str,
        value: &str,
    ) -> Result<(AttributeValue, RecordKind), AppError> {
        // The first form is that of the catalog in use; the others are older ones.
        let mut forms = self.engine().stored_names(attribute, value)?.into_iter();
        let stored = forms.next();
        let stored = stored
            .ok_or_else(|| AppError::invalid("bad-attribute", "the value has no stored form"))?;
        let merge = RecordKind::MergeFacts { into: stored.clone(), from: forms.collect() };
        Ok((stored, merge))
    }
}

fn check_facts(facts: &FactMap) -> Result<(), AppError> {
    if facts.is_empty() || facts.len() > FACTS_MAX {
        let detail = format!("send 1 to {FACTS_MAX} facts, such as {{\"plan\":\"gold\"}}");
        return Err(AppError::invalid("bad-facts", detail));
    }
    let fits = |text: &String| (1..=TEXT_MAX).contains(&text.chars().count());
    if !facts.iter().all(|(name, fact)| fits(name) && fits(fact)) {
        let detail = format!("a fact's name and its text have 1 to {TEXT_MAX} characters each");
        return Err(AppError::invalid("bad-facts", detail));
    }
    Ok(())
}
