//! Export and erasure by identifier.
//!
//! Must not write the identifier anywhere: the audit says only whose attribute it was.

use std::collections::BTreeMap;

use catraca::Time;
use catraca::records::{Deed, Noted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::shown;
use super::{Answered, Call, Desk, Problem, TEXT_MAX, bounded, told};

/// What neither call can reach, and why that is well.
const COUNTERS: &str = "counters are keyed digests without names; each lapses with its window";

/// Whom a request about privacy concerns.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concerned {
    #[schemars(example = &"payer")]
    attribute: String,
    /// The real value; it is written nowhere.
    #[schemars(example = &"52998224725")]
    value: String,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"their request of this morning")]
    why: Option<String>,
}

/// Everything that the records hold of somebody.
#[derive(Serialize, JsonSchema)]
pub struct Exported {
    #[schemars(example = &"payer")]
    attribute: String,
    blocks: Vec<ExportedBlock>,
    lists: Vec<ExportedEntry>,
    /// Facts by their names.
    facts: BTreeMap<String, String>,
    /// What operators did about them.
    acts: Vec<shown::Audited>,
    /// What this cannot show, and why.
    #[schemars(example = COUNTERS)]
    counters: &'static str,
    /// Whether the note in the audit is on disk.
    durable: bool,
}

/// A block with its history.
#[derive(Serialize, JsonSchema)]
pub struct ExportedBlock {
    #[serde(flatten)]
    block: shown::Block,
    history: Vec<shown::Act>,
}

/// An entry of a list about somebody.
#[derive(Serialize, JsonSchema)]
pub struct ExportedEntry {
    #[schemars(example = &"blocklist")]
    list: String,
    reason: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
}

/// What was erased of somebody, and what was kept.
#[derive(Serialize, JsonSchema)]
pub struct Erased {
    #[schemars(example = &"payer")]
    attribute: String,
    erased: ErasedRows,
    retained: RetainedRows,
    /// What this cannot reach, and why that is well.
    #[schemars(example = COUNTERS)]
    counters: &'static str,
    /// Whether the note in the audit is on disk.
    durable: bool,
}

/// Rows that are no more.
#[derive(Serialize, JsonSchema)]
pub struct ErasedRows {
    #[schemars(example = 2)]
    blocks: u64,
    #[schemars(example = 1)]
    facts: u64,
    #[schemars(example = 3)]
    acts: u64,
}

/// Rows that still protect others, and go when they end.
#[derive(Serialize, JsonSchema)]
pub struct RetainedRows {
    #[schemars(example = 1)]
    blocks: u64,
    #[schemars(example = 0)]
    lists: u64,
    #[schemars(example = 0)]
    debts: u64,
}

/// `POST /v1/privacy/export`.
pub fn export(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Concerned = call.wire()?;
    let about = desk.engine.known_as(&wire.attribute, &wire.value)?;
    let durable = noted(desk, &wire, "export")?;
    let found = desk.records()?.export(&about)?;
    let blocks = found.blocks.iter().map(|(row, history)| ExportedBlock {
        block: shown::Block::from(row),
        history: history.iter().map(shown::Act::from).collect(),
    });
    let lists = found.lists.iter().map(|(list, reason, until)| {
        let until = until.map(|until| Time::from_micros(until).to_rfc3339());
        ExportedEntry { list: list.to_string(), reason: reason.clone(), until }
    });
    let facts = found.facts.iter().map(|(name, fact)| (name.to_string(), fact.to_string()));
    told(&Exported {
        attribute: wire.attribute,
        blocks: blocks.collect(),
        lists: lists.collect(),
        facts: facts.collect(),
        acts: found.audit.iter().map(shown::Audited::from).collect(),
        counters: COUNTERS,
        durable,
    })
}

/// `POST /v1/privacy/erase`.
pub fn erase(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Concerned = call.wire()?;
    let about = desk.engine.known_as(&wire.attribute, &wire.value)?;
    let erased = desk.records()?.erase(&about, desk.engine.now())?;
    desk.engine.forget_facts(&wire.attribute, &wire.value)?;
    let durable = noted(desk, &wire, "erase")?;
    told(&Erased {
        attribute: wire.attribute,
        erased: ErasedRows { blocks: erased.blocks, facts: erased.facts, acts: erased.audit },
        retained: RetainedRows {
            blocks: erased.retained_blocks,
            lists: erased.retained_lists,
            debts: erased.retained_debts,
        },
        counters: COUNTERS,
        durable,
    })
}

fn noted(desk: &Desk<'_>, wire: &Concerned, act: &str) -> Result<bool, Problem> {
    let why = bounded("why", wire.why.as_deref())?;
    let target = format!("one value of {}", wire.attribute);
    desk.recorded(why, vec![Deed::Note(Noted { act: act.to_owned(), target })])
}
