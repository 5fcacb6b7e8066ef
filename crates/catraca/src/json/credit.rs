//! JSON body of a credit.

use std::borrow::Cow;

use catraca_core::policy::Name;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::CreditReasonWord;
use crate::settlement::CreditResult;

/// The result of a credit.
#[derive(Clone, Debug, Deserialize, Serialize)]
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
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "CreditedBucket"))]
pub struct CreditedBucketBody<'a> {
    #[cfg_attr(feature = "schema", schemars(example = &"lookups"))]
    policy: Cow<'a, str>,
    #[cfg_attr(feature = "schema", schemars(example = 1))]
    amount: i64,
}

impl<'a> From<&'a CreditResult> for CreditBody<'a> {
    fn from(result: &'a CreditResult) -> Self {
        let credited = |given: &'a Vec<(Name, i64)>| {
            let rows = given.iter();
            let rows = rows.map(|(policy, amount)| CreditedBucketBody {
                policy: Cow::Borrowed(policy),
                amount: *amount,
            });
            rows.collect()
        };
        Self {
            applied: result.is_ok(),
            reason: result.as_ref().err().map(|reason| CreditReasonWord::from(*reason)),
            policies: result.as_ref().ok().map(credited),
        }
    }
}

impl CreditBody<'_> {
    /// The result; `None` if the body says neither that the credit was applied nor why it was not.
    pub fn into_result(self) -> Option<CreditResult> {
        if let Some(reason) = self.reason {
            return Some(Err(reason.into()));
        }
        let credited =
            |bucket: CreditedBucketBody<'_>| (Name::from(&*bucket.policy), bucket.amount);
        Some(Ok(self.policies?.into_iter().map(credited).collect()))
    }
}
