//! Enumerations in JSON bodies. Each is made from core's value by a complete match, so that a new
//! value cannot be forgotten; a test compares the words with those of logs and metrics. Matches of
//! enumerations that core may extend are complete for all values in its list, or do not compile.

use catraca_core::cell::block::Origin;
use catraca_core::credit_plan::CreditRejection;
use catraca_core::decision::Reason;
use catraca_core::policy::Mode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settlement::SettleState;

/// Defines the enumeration of a body, and its conversion from and to the value of core. `all` lists
/// the values of one that core may extend.
macro_rules! words {
    (
        $(#[$doc:meta])* $name:ident = $schema:literal from $source:ident $(, all $all:expr)? => {
            $( #[$variant_doc:meta] $from:ident => $to:ident ),* $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = $schema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $( #[$variant_doc] $to ),* }

        impl $name {
            #[inline]
            const fn of(value: $source) -> Self {
                match value {
                    $( $source::$from => Self::$to, )*
                    $( _ => { let _: &[$source] = $all; panic!("a value without a word") } )?
                }
            }
        }

        $( const _: () = {
            let all: &[$source] = $all;
            let mut index = 0;
            while index < all.len() {
                let _ = $name::of(all[index]);
                index += 1;
            }
        }; )?

        impl From<$source> for $name {
            #[inline]
            fn from(value: $source) -> Self {
                Self::of(value)
            }
        }

        impl From<$name> for $source {
            #[inline]
            fn from(word: $name) -> Self {
                match word { $( $name::$to => Self::$from ),* }
            }
        }
    };
}

words! {
    /// The reason of a decision, or of one policy's part of it.
    ReasonWord = "Reason" from Reason, all Reason::ALL => {
        /// Within the limit.
        Ok => Ok,
        /// The limit is exceeded.
        OverLimit => OverLimit,
        /// A block is active.
        Blocked => Blocked,
        /// The subject is on the blocklist.
        Blocklisted => Blocklisted,
        /// The subject is on the allowlist.
        Allowlisted => Allowlisted,
        /// The cost exceeds the whole limit, so it can never pass.
        TooCostly => TooCostly,
        /// An attribute is missing, and the policy denies in that case.
        Missing => Missing,
        /// The store is unavailable, and the policy denies in that case.
        Unavailable => Unavailable,
    }
}

words! {
    /// Whether a policy is enforced.
    ModeWord = "Mode" from Mode => {
        /// Its decisions count.
        Enforce => Enforce,
        /// It is evaluated and reported, but never denies.
        Shadow => Shadow,
        /// It is not evaluated.
        Off => Off,
    }
}

words! {
    /// Why a block started.
    OriginWord = "Origin" from Origin => {
        /// A limit was exceeded.
        Excess => Excess,
        /// A ban rule.
        Ban => Ban,
        /// An operator.
        Operator => Operator,
        /// An upstream denied the request.
        Upstream => Upstream,
    }
}

words! {
    /// The result of a settle.
    SettleStateWord = "SettlementState" from SettleState => {
        /// Applied now.
        Applied => Settled,
        /// Applied before, with this result.
        Again => Again,
        /// Not applied: the ticket had expired.
        Expired => Expired,
    }
}

words! {
    /// Why a credit was not applied.
    CreditReasonWord = "CreditRefusal" from CreditRejection, all CreditRejection::ALL => {
        /// No check with this reference is stored.
        Unknown => Unknown,
        /// It belongs to another subject.
        OtherSubject => OtherSubject,
        /// This event was credited before.
        Duplicate => Duplicate,
        /// The check is not settled yet.
        NotSettled => NotSettled,
        /// No rule credits this event and outcome.
        NotCreditable => NotCreditable,
    }
}

/// The name of a block's origin on every interface.
pub const fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Excess => "excess",
        Origin::Ban => "ban",
        Origin::Operator => "operator",
        Origin::Upstream => "upstream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(value: &impl Serialize) -> String {
        serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn bodies_have_the_words_of_logs_and_metrics() {
        use {Origin as O, SettleState as S};
        for reason in Reason::ALL {
            assert_eq!(word(&ReasonWord::from(*reason)), reason.as_str());
        }
        for mode in [Mode::Enforce, Mode::Shadow, Mode::Off] {
            assert_eq!(word(&ModeWord::from(mode)), mode.as_str());
        }
        for origin in [O::Excess, O::Ban, O::Operator, O::Upstream] {
            assert_eq!(word(&OriginWord::from(origin)), origin_name(origin));
        }
        for state in [S::Applied, S::Again, S::Expired] {
            assert_eq!(word(&SettleStateWord::from(state)), state.as_str());
        }
        for refused in CreditRejection::ALL {
            assert_eq!(word(&CreditReasonWord::from(*refused)), refused.as_str());
        }
    }
}
