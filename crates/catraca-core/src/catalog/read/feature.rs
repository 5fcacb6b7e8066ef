//! Fields whose code is left out of this build: the catalog is refused, and the error names the
//! feature of the crate that has it.

use crate::located::{Report, SourceLocation, TableFields};
use crate::policy::Policy;

/// The codes of builds without some feature; the server has every feature, and never reports them.
pub(super) const FEATURE_CODES: [(&str, &str); 1] =
    [("missing-feature", "A field that needs a cargo feature which is not enabled.")];

/// The fields of a policy that need the feature `settle`, at least with some values.
const SETTLE_FIELDS: [&str; 5] = ["ban", "watch", "credit", "inflight", "cost"];

/// Reports a field of a feature that this build does not have.
pub(super) fn report_missing(
    report: &mut Report,
    location: SourceLocation,
    what: &str,
    feature: &str,
) {
    let message = format!("{what} needs the cargo feature `{feature}`, which is not enabled");
    let fix = format!("enable it: catraca = {{ version = \"…\", features = [\"{feature}\"] }}");
    report.error("missing-feature", location, message, fix);
}

/// Reports a policy whose checks are settled, in a build that cannot make tickets.
pub(super) fn check_settle(report: &mut Report, fields: &TableFields<'_>, policy: &Policy) {
    if cfg!(feature = "settle") {
        return;
    }
    let mut terms = policy.base.iter().chain(policy.tiers.iter().map(|tier| &tier.terms));
    if terms.any(|terms| policy.needs_ticket(terms)) {
        let location = SETTLE_FIELDS.iter().find_map(|field| fields.key(field));
        let what = format!("settling the checks of policy `{}`", policy.name);
        report_missing(report, location.unwrap_or(fields.location), &what, "settle");
    }
}
