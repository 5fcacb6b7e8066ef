//! `[store] shard_by`: the attribute by whose values keys are distributed over servers.
//!
//! The only field of a process section that is read here: it decides which keys policies may have.

use super::schema;
use super::section::Sections;
use crate::located::names;
use crate::located::{DefaultValue, FieldSchema, Report};
use crate::policy::Name;

/// The field, for the owner of `[store]` to declare among the others.
pub const SHARD_BY: FieldSchema = FieldSchema::new(
    "shard_by",
    schema::NAME,
    "for a [cluster](shared.md#a-cluster): the attribute by whose values keys are distributed; \
     must be in the key of every policy",
)
.or(DefaultValue::Absent("keys are distributed by namespace"))
.after_restart();

/// Reads the field.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>) -> Option<Name> {
    let (_, store) = sections.all("store").first()?;
    // The owner of the section reports a section that is not a table.
    let (_, node) = store.as_entries()?.into_iter().find(|(key, _)| key.text == SHARD_BY.name)?;
    let name = node.text(report, "an attribute's name")?;
    names::check_name(report, node.location, name, "attribute").then(|| name.into())
}
