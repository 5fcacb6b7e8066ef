//! The limit of a policy or of a tier, which has at most one. Each algorithm reads its own terms.

use crate::algorithm::LimitOptions;
use crate::limit::{LIMIT_FIELDS, Limit};
use crate::located::{FieldResult, Report, SourceLocation, TableFields};
use crate::rate::Rate;

/// The first algorithm in the text of a policy or a tier, with the location of its field.
pub(super) fn algorithm(fields: &TableFields<'_>) -> Option<(&'static str, SourceLocation)> {
    all_algorithms(fields).min_by_key(|(_, location)| *location)
}

/// Whether a field that limits is misspelt, so that its algorithm is unknown.
pub(super) fn is_misspelt(fields: &TableFields<'_>) -> bool {
    let limits = LIMIT_FIELDS.iter().map(|field| field.name);
    limits.chain(["ban", "tier"]).any(|name| fields.is_misspelt(name))
}

/// Reads the limit of a policy or of a tier, and reports a second algorithm beside it.
pub(super) fn read(
    report: &mut Report,
    fields: &TableFields<'_>,
    options: LimitOptions,
) -> FieldResult<Limit> {
    let Some((name, _)) = algorithm(fields) else { return FieldResult::Absent };
    for (other, location) in all_algorithms(fields).filter(|(other, _)| *other != name) {
        let message = format!("`{other}` beside `{name}`: a policy has one algorithm");
        let fix = format!("remove `{other}`, or make two policies and a gate of both");
        report.error("two-algorithms", location, message, fix);
    }
    fields.parse(name, |node| Limit::read(name, report, node, options))
}

/// The refill of a bucket as it is written. A refill that is no rate is reported by [`read`].
pub(super) fn written_refill(fields: &TableFields<'_>) -> Option<Rate> {
    let bucket = fields.get("bucket")?.value.as_table()?;
    Rate::parse(bucket.get("refill")?.get_ref().as_str()?).ok()
}

/// The names of the algorithms that accept a field of a policy.
pub(super) fn algorithms_with(option: &str) -> Vec<&'static str> {
    let names = LIMIT_FIELDS.iter().map(|field| field.name);
    names.filter(|name| Limit::options_of(name).contains(&option)).collect()
}

fn all_algorithms(
    fields: &TableFields<'_>,
) -> impl Iterator<Item = (&'static str, SourceLocation)> {
    LIMIT_FIELDS.iter().filter_map(|field| Some((field.name, fields.key(field.name)?)))
}
