//! Reading the verbs that operators and upstreams use, and the cycle.
//!
//! Must not judge whether a policy exists: the catalog may be replaced by a step before.

use std::sync::Arc;

use catraca::Catalog;
use catraca_core::policy::Mode;
use catraca_core::time::parse_span;
use toml::de::DeValue;

use super::super::names;
use super::super::node::{Fields, Node};
use super::super::read::Reader;
use super::super::step::{self, Step};
use super::ask::{namespace, subject};
use super::{Blocking, Looking, Reconciling, Stating, Target, Verb};

const MODES: [(&str, Option<Mode>); 4] = [
    ("enforce", Some(Mode::Enforce)),
    ("shadow", Some(Mode::Shadow)),
    ("off", Some(Mode::Off)),
    ("catalog", None),
];

/// Reads a block.
pub(super) fn block(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Blocking> {
    let known = ["policy", "subject", "for", "reason", "namespace"];
    let fields = Fields::read(&mut reader.desk, node, "block", &known)?;
    let target = target_of(reader, &fields);
    let reason = fields.text_or(&mut reader.desk, "reason");
    let length = fields.need(&mut reader.desk, "for", "\"10m\"")?;
    let text = length.text(&mut reader.desk, "a duration such as \"10m\", or \"forever\"")?;
    let span = parse_span(text)
        .map_err(|error| reader.refuse("bad-duration", length.place, &error.to_string()));
    Some(Blocking { target: target?, span: span.ok()?, reason: reason? })
}

/// Reads an unblock or a reset.
pub(super) fn target(reader: &mut Reader<'_>, node: Node<'_>, what: &str) -> Option<Target> {
    let fields = Fields::read(&mut reader.desk, node, what, &["policy", "subject", "namespace"])?;
    target_of(reader, &fields)
}

fn target_of(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Target> {
    let policy = fields.text(&mut reader.desk, "policy", "\"login\"");
    let subject = subject(reader, fields);
    let namespace = namespace(reader, fields);
    Some(Target { namespace: namespace?, policy: policy?, subject: subject? })
}

/// Reads a look at buckets.
pub(super) fn buckets(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Looking> {
    let known = ["policy", "subject", "namespace"];
    let fields = Fields::read(&mut reader.desk, node, "look at buckets", &known)?;
    let policy = fields.text_or(&mut reader.desk, "policy");
    let subject = subject(reader, &fields);
    let namespace = namespace(reader, &fields);
    Some(Looking { namespace: namespace?, policy: policy?, subject: subject? })
}

/// Reads an upstream's view.
pub(super) fn reconcile(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Reconciling> {
    let known = ["subject", "observed_at", "states", "namespace"];
    let fields = Fields::read(&mut reader.desk, node, "reconcile", &known)?;
    let subject = subject(reader, &fields);
    let namespace = namespace(reader, &fields);
    let observed = fields.need(&mut reader.desk, "observed_at", "\"15m\"");
    let observed = observed.and_then(|node| reader.instant(node));
    let example = "[{ policy = \"entries_write\", available = 100 }]";
    let list = fields.need(&mut reader.desk, "states", example)?;
    let items = list.items(&mut reader.desk, example)?;
    let states: Vec<_> = items.into_iter().map(|item| level(reader, item)).collect();
    Some(Reconciling {
        namespace: namespace?,
        subject: subject?,
        observed_at: observed?,
        states: states.into_iter().collect::<Option<_>>()?,
    })
}

fn level(reader: &mut Reader<'_>, item: Node<'_>) -> Option<(String, i64)> {
    let fields = Fields::read(&mut reader.desk, item, "state", &["policy", "available"])?;
    let policy = fields.text(&mut reader.desk, "policy", "\"entries_write\"");
    let available = fields.need(&mut reader.desk, "available", "100")?;
    let available = available.integer(&mut reader.desk, i64::MIN);
    Some((policy?, available?))
}

/// Reads facts to state, or to forget.
pub(super) fn facts(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Stating> {
    let known = ["attribute", "value", "state", "forget"];
    let fields = Fields::read(&mut reader.desk, node, "facts", &known)?;
    let attribute = fields.text(&mut reader.desk, "attribute", "\"participant\"");
    let value = fields.text(&mut reader.desk, "value", "\"12345678\"");
    let facts = match (fields.get("state"), fields.get("forget")) {
        (Some(node), None) => {
            node.texts(&mut reader.desk, "facts such as { category = \"A\" }").map(Some)
        }
        (None, Some(node)) if node.value.as_bool() == Some(true) => Some(None),
        _ => {
            let message = "facts are stated or forgotten".to_owned();
            let fix = "write state = { category = \"A\" }, or forget = true".to_owned();
            reader.desk.error("which-facts", fields.place, message, fix);
            None
        }
    };
    Some(Stating { attribute: attribute?, value: value?, facts: facts? })
}

/// Reads a mode to override, or to give back to the catalog.
pub(super) fn mode(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Verb> {
    let fields = Fields::read(&mut reader.desk, node, "mode", &["policy", "to"])?;
    let policy = fields.text(&mut reader.desk, "policy", "\"login\"");
    let to = fields.need(&mut reader.desk, "to", "\"shadow\"")?;
    let word = to.text(&mut reader.desk, "a mode such as \"shadow\"")?;
    let Some((_, mode)) = MODES.iter().find(|(known, _)| *known == word) else {
        let known: Vec<&str> = MODES.iter().map(|(known, _)| *known).collect();
        let message = format!("`{word}` is not a mode");
        reader.desk.error("unknown-word", to.place, message, names::suggest(word, &known));
        return None;
    };
    Some(Verb::Mode(policy?, *mode))
}

/// Reads another catalog: a file's name, or `{ text = '''…''' }`.
pub(super) fn reload(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Arc<Catalog>> {
    match node.value {
        DeValue::Table(_) => {
            let fields = Fields::read(&mut reader.desk, node, "reload", &["text"])?;
            let text = fields.need(&mut reader.desk, "text", "'''…'''")?;
            reader.catalog_text(text)
        }
        _ => reader.catalog_file(node),
    }
}

/// Reads the steps of a cycle.
pub(super) fn cycle(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Vec<Step>> {
    let items = node.items(&mut reader.desk, "a list of steps such as [{ check = { … } }]")?;
    let steps: Vec<_> = items.into_iter().map(|item| step::inner(reader, item)).collect();
    steps.into_iter().collect()
}
