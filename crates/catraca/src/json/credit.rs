//! JSON body of a credit.

use catraca_core::policy::Name;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use super::words::CreditReasonWord;
use crate::settlement::CreditResult;

/// The result of a credit.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "CreditOutcome"))]
pub struct CreditBody<'a> {
    applied: bool,
    /// Why it was not applied; null if it was.
    reason: Option<CreditReasonWord>,
    /// The amount that each bucket was credited.
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<Vec<CreditedBucketBody<'a>>>,
}

/// The amount that one bucket was credited.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "CreditedBucket"))]
pub struct CreditedBucketBody<'a> {
    #[cfg_attr(feature = "schema", schemars(example = &"lookups"))]
    policy: &'a str,
    #[cfg_attr(feature = "schema", schemars(example = 1))]
    amount: i64,
}

impl<'a> From<&'a CreditResult> for CreditBody<'a> {
    fn from(result: &'a CreditResult) -> Self {
        let credited = |given: &'a Vec<(Name, i64)>| {
            let rows = given.iter();
            let rows = rows.map(|(policy, amount)| CreditedBucketBody { policy, amount: *amount });
            rows.collect()
        };
        Self {
            applied: result.is_ok(),
            reason: result.as_ref().err().map(|reason| CreditReasonWord::from(*reason)),
            policies: result.as_ref().ok().map(credited),
        }
    }
}
