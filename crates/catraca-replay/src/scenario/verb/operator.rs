//! Parses the verbs that operators and upstreams use, and the cycle.
//!
//! Whether a policy exists is not checked here: an earlier step may reload the catalog.

use std::sync::Arc;

use catraca::Catalog;
use catraca_core::located::Node;
use catraca_core::located::scalar::{duration_or_forever, keyword};
use catraca_core::policy::Mode;
use toml::de::DeValue;

use super::super::fields::{Fields, pairs};
use super::super::parse::Reader;
use super::super::step::{self, Step};
use super::decisions::{namespace, subject};
use super::{BlockStep, BucketsStep, FactStep, KeyStep, ReconcileStep, StepVerb};

const MODES: [(&str, Option<Mode>); 4] = [
    ("enforce", Some(Mode::Enforce)),
    ("shadow", Some(Mode::Shadow)),
    ("off", Some(Mode::Off)),
    ("catalog", None),
];

/// Reads a block.
pub(super) fn block(reader: &mut Reader<'_>, node: Node<'_>) -> Option<BlockStep> {
    let known = ["policy", "subject", "for", "reason", "namespace"];
    let fields = Fields::read(&mut reader.report, node, "block", &known)?;
    let target = target_of(reader, &fields);
    let reason = fields.text_or(&mut reader.report, "reason");
    let length = fields.need(&mut reader.report, "for", "\"10m\"")?;
    let span = duration_or_forever(&mut reader.report, length);
    Some(BlockStep { target: target?, span: span?, reason: reason? })
}

/// Reads an unblock or a reset.
pub(super) fn target(reader: &mut Reader<'_>, node: Node<'_>, what: &str) -> Option<KeyStep> {
    let fields = Fields::read(&mut reader.report, node, what, &["policy", "subject", "namespace"])?;
    target_of(reader, &fields)
}

fn target_of(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<KeyStep> {
    let policy = fields.text(&mut reader.report, "policy", "\"login\"");
    let subject = subject(reader, fields);
    let namespace = namespace(reader, fields);
    Some(KeyStep { namespace: namespace?, policy: policy?, subject: subject? })
}

/// Reads a query of buckets.
pub(super) fn buckets(reader: &mut Reader<'_>, node: Node<'_>) -> Option<BucketsStep> {
    let known = ["policy", "subject", "namespace"];
    let fields = Fields::read(&mut reader.report, node, "look at buckets", &known)?;
    let policy = fields.text_or(&mut reader.report, "policy");
    let subject = subject(reader, &fields);
    let namespace = namespace(reader, &fields);
    Some(BucketsStep { namespace: namespace?, policy: policy?, subject: subject? })
}

/// Reads an upstream's view of buckets.
pub(super) fn reconcile(reader: &mut Reader<'_>, node: Node<'_>) -> Option<ReconcileStep> {
    let known = ["subject", "observed_at", "states", "namespace"];
    let fields = Fields::read(&mut reader.report, node, "reconcile", &known)?;
    let subject = subject(reader, &fields);
    let namespace = namespace(reader, &fields);
    let observed = fields.need(&mut reader.report, "observed_at", "\"15m\"");
    let observed = observed.and_then(|node| reader.instant(node));
    let example = "[{ policy = \"entries_write\", available = 100 }]";
    let list = fields.need(&mut reader.report, "states", example)?;
    let items = list.items(&mut reader.report, example)?;
    let states: Vec<_> = items.into_iter().map(|item| level(reader, item)).collect();
    Some(ReconcileStep {
        namespace: namespace?,
        subject: subject?,
        observed_at: observed?,
        states: states.into_iter().collect::<Option<_>>()?,
    })
}

fn level(reader: &mut Reader<'_>, item: Node<'_>) -> Option<(String, i64)> {
    let fields = Fields::read(&mut reader.report, item, "state", &["policy", "available"])?;
    let policy = fields.text(&mut reader.report, "policy", "\"entries_write\"");
    let available = fields.need(&mut reader.report, "available", "100")?;
    let available = available.integer(&mut reader.report, "a whole number");
    Some((policy?, available?))
}

/// Reads facts to store, or to delete.
pub(super) fn facts(reader: &mut Reader<'_>, node: Node<'_>) -> Option<FactStep> {
    let known = ["attribute", "value", "state", "forget", "namespace"];
    let fields = Fields::read(&mut reader.report, node, "facts", &known)?;
    let attribute = fields.text(&mut reader.report, "attribute", "\"participant\"");
    let value = fields.text(&mut reader.report, "value", "\"12345678\"");
    let namespace = fields.text_or(&mut reader.report, "namespace");
    let facts = match (fields.get("state"), fields.get("forget")) {
        (Some(node), None) => {
            pairs(&mut reader.report, node, "facts such as { category = \"A\" }").map(Some)
        }
        (None, Some(node)) if node.value.as_bool() == Some(true) => Some(None),
        _ => {
            let message = "facts need either `state` or `forget`";
            let fix = "write state = { category = \"A\" }, or forget = true";
            reader.report.error("which-facts", fields.location, message, fix);
            None
        }
    };
    Some(FactStep { namespace: namespace?, attribute: attribute?, value: value?, facts: facts? })
}

/// Reads a mode that overrides the catalog's, or `catalog`, which ends the override.
pub(super) fn mode(reader: &mut Reader<'_>, node: Node<'_>) -> Option<StepVerb> {
    let fields = Fields::read(&mut reader.report, node, "mode", &["policy", "to"])?;
    let policy = fields.text(&mut reader.report, "policy", "\"login\"");
    let to = fields.need(&mut reader.report, "to", "\"shadow\"")?;
    let mode = keyword(&mut reader.report, to, &MODES);
    Some(StepVerb::Mode(policy?, mode?))
}

/// Reads the catalog of a reload: a file's name, or `{ text = '''…''' }`.
pub(super) fn reload(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Arc<Catalog>> {
    match node.value {
        DeValue::Table(_) => {
            let fields = Fields::read(&mut reader.report, node, "reload", &["text"])?;
            let text = fields.need(&mut reader.report, "text", "'''…'''")?;
            reader.catalog_text(text)
        }
        _ => reader.catalog_file(node),
    }
}

/// Reads the steps of a cycle.
pub(super) fn cycle(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Vec<Step>> {
    let items = node.items(&mut reader.report, "a list of steps such as [{ check = { … } }]")?;
    let steps: Vec<_> = items.into_iter().map(|item| step::inner(reader, item)).collect();
    steps.into_iter().collect()
}
