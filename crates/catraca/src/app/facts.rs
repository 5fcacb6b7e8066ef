//! Facts about attribute values, such as a category or a plan: list, show, set and delete.
//!
//! Facts that operators set take precedence over those of the catalog.

use std::collections::BTreeMap;

use catraca_core::policy::Name;
use catraca_core::request::validate_storable;

use super::namespaces::check_namespace;
use super::operator::{OwnedOperator, TEXT_MAX};
use super::page_size::check_page_size;
use super::{App, AppError};
use crate::records::{AttributeValue, FactCursor, FactRow, Operator, Page, RecordKind, Records};

/// The most facts in one change.
pub const FACTS_MAX: usize = 32;

/// The most facts of one namespace. Facts of all namespaces are not bounded.
pub const NAMESPACE_FACTS_MAX: usize = 10_000;

/// Facts by name.
pub type FactMap = BTreeMap<String, String>;

/// The facts about one value, before and after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFacts {
    /// The facts before.
    pub before: FactMap,
    /// The facts now.
    pub after: FactMap,
    /// How many facts of single namespaces are ignored because of this change, by namespace: they
    /// have the name of a fact that applies in all namespaces now, and are about another attribute.
    pub ignored: BTreeMap<String, usize>,
    /// The names of the facts that no tier, rule or policy of the catalog reads: most likely they
    /// are misspelt.
    pub unread: Vec<String>,
    /// Whether the change is on disk.
    pub durable: bool,
}

impl App {
    /// The facts that operators set, in the order of attribute, value, name and namespace. With a
    /// namespace, only those of this namespace.
    pub async fn stated_facts(
        &self,
        namespace: Option<&str>,
        after: Option<FactCursor>,
        limit: u32,
    ) -> Result<Page<FactRow, FactCursor>, AppError> {
        check_page_size(limit)?;
        let namespace = namespace.map(str::to_owned);
        let query = move |records: &Records| records.facts(namespace.as_deref(), after, limit);
        let incomplete = self.await_queued_records().await?;
        let mut page = self.read_records(query).await?;
        page.incomplete = incomplete;
        for row in &mut page.rows {
            self.engine().hide_private_value(&row.about.attribute, &mut row.about.value);
        }
        if let Some((attribute, value, ..)) = &mut page.next {
            self.engine().hide_private_value(attribute, value);
        }
        Ok(page)
    }

    /// The facts about a value: those that operators set in one namespace alone, or without a
    /// namespace those of all namespaces, of operators and of the catalog.
    pub fn facts_about(
        &self,
        namespace: Option<&str>,
        attribute: &str,
        value: &str,
    ) -> Result<FactMap, AppError> {
        Ok(fact_map(self.engine().facts_about(namespace, attribute, value)?))
    }

    /// The facts about a value that apply in a namespace: its own go before those of all
    /// namespaces, and those of operators before the catalog's.
    pub fn facts_in_namespace(
        &self,
        namespace: &str,
        attribute: &str,
        value: &str,
    ) -> Result<FactMap, AppError> {
        Ok(fact_map(self.engine().facts_in_namespace(namespace, attribute, value)?))
    }

    /// Sets these facts about a value, in one namespace or in all; others stay as they are.
    pub async fn set_facts(
        &self,
        by: &Operator<'_>,
        namespace: Option<&str>,
        attribute: &str,
        value: &str,
        facts: FactMap,
    ) -> Result<ChangedFacts, AppError> {
        let by = OwnedOperator::new(by)?;
        check_facts(&facts)?;
        check_namespace(namespace)?;
        self.check_fact_attribute(attribute)?;
        self.required_records()?;
        let app = self.clone();
        let namespace = namespace.map(str::to_owned);
        let attribute = attribute.to_owned();
        let value = value.to_owned();
        self.run_to_end(async move {
            let change_order = app.parts.change_lock.lock().await;
            let own = namespace.as_deref();
            let before = app.facts_about(own, &attribute, &value)?;
            // Facts that replace others need no room.
            let added = facts.keys().filter(|name| !before.contains_key(*name)).count();
            app.check_room_for_facts(own, added)?;
            let pairs: Vec<(&str, &str)> = facts.iter().map(|(n, f)| (&**n, &**f)).collect();
            // The forms under which facts are stored now.
            let (about, merge) = app.merged_value(&attribute, &value)?;
            app.engine().state_facts(own, &attribute, &value, &pairs)?;
            let ignored = app.ignored_in_namespaces(own, &attribute, &facts);
            let unread = app.unread_names(&facts);
            let facts = facts.into_iter().collect();
            let change = RecordKind::SetFacts { namespace: namespace.clone(), about, facts };
            let durable = app.record_change(&change_order, &by, vec![merge, change]).await?;
            let after = app.facts_about(namespace.as_deref(), &attribute, &value)?;
            Ok(ChangedFacts { before, after, ignored, unread, durable })
        })
        .await
    }

    /// Refuses facts about an attribute that the catalog does not name: most likely it is misspelt,
    /// and no check would use them.
    fn check_fact_attribute(&self, attribute: &str) -> Result<(), AppError> {
        validate_storable("the attribute's name", attribute)?;
        let known = self.catalog().check_attribute_name(attribute);
        known.map_err(|unknown| AppError::invalid("bad-facts", unknown.to_string()))
    }

    /// Deletes all facts that operators set about a value, in one namespace or in all. The
    /// catalog's own facts remain.
    pub async fn forget_facts(
        &self,
        by: &Operator<'_>,
        namespace: Option<&str>,
        attribute: &str,
        value: &str,
    ) -> Result<ChangedFacts, AppError> {
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let app = self.clone();
        let namespace = namespace.map(str::to_owned);
        let attribute = attribute.to_owned();
        let value = value.to_owned();
        self.run_to_end(async move {
            let change_order = app.parts.change_lock.lock().await;
            let own = namespace.as_deref();
            let before = app.facts_about(own, &attribute, &value)?;
            let (about, merge) = app.merged_value(&attribute, &value)?;
            if !app.engine().forget_facts(own, &attribute, &value)? {
                let detail = format!(
                    "no operator set a fact about this value of `{attribute}`; the catalog's facts \
                     are changed in its file"
                );
                return Err(AppError::not_found("unknown-value", detail));
            }
            let change = RecordKind::ForgetFacts { namespace: namespace.clone(), about };
            let durable = app.record_change(&change_order, &by, vec![merge, change]).await?;
            // A value that no caller can have is not known any more when its facts are gone.
            let after = match app.engine().normalised_value(&attribute, &value) {
                Ok(_) => app.facts_about(namespace.as_deref(), &attribute, &value)?,
                Err(_) => FactMap::new(),
            };
            let ignored = BTreeMap::new();
            Ok(ChangedFacts { before, after, ignored, unread: Vec::new(), durable })
        })
        .await
    }

    /// The facts of single namespaces that facts of all namespaces make ineffective.
    fn ignored_in_namespaces(
        &self,
        namespace: Option<&str>,
        attribute: &str,
        facts: &FactMap,
    ) -> BTreeMap<String, usize> {
        if namespace.is_some() {
            return BTreeMap::new();
        }
        let names = facts.keys().map(String::as_str);
        let ignored = self.rules().stated.namesakes(attribute, names);
        ignored.into_iter().map(|(namespace, count)| (namespace.to_string(), count)).collect()
    }

    /// The names that the catalog does not mention.
    fn unread_names(&self, facts: &FactMap) -> Vec<String> {
        let catalog = self.catalog();
        let read = catalog.attribute_names();
        let is_read =
            |name: &String| read.contains(&**name) || catalog.facts.source(name).is_some();
        facts.keys().filter(|name| !is_read(name)).cloned().collect()
    }

    /// Bounds the facts of one namespace: its operators need not be trusted by those of others.
    fn check_room_for_facts(&self, namespace: Option<&str>, added: usize) -> Result<(), AppError> {
        let Some(namespace) = namespace else { return Ok(()) };
        let count = self.engine().count_facts(namespace);
        if count + added <= NAMESPACE_FACTS_MAX {
            return Ok(());
        }
        let detail = format!(
            "the namespace has {count} facts and may have {NAMESPACE_FACTS_MAX}; nothing was \
             changed: forget facts first"
        );
        Err(AppError::invalid("too-many-facts", detail))
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

fn fact_map(facts: BTreeMap<Name, Name>) -> FactMap {
    facts.iter().map(|(name, fact)| (name.to_string(), fact.to_string())).collect()
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
