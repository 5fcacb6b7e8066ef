//! Limit: the algorithm of a policy with its terms, and the penalty of an excess.
//!
//! Batches carry these numbers to the stores, so a store does not need the catalog. The units in
//! use are stored in cells. What an algorithm does is in its file; this one only dispatches.

use crate::algorithm::{Algorithm, LimitOptions, TermsWriter};
use crate::cell::CellKind;
use crate::codec::Codec;
use crate::for_each_algorithm;
use crate::located::schema::join;
use crate::located::{FieldSchema, Node, Report, SourceLocation};
use crate::time::Span;

pub use crate::algorithm::{BucketTerms, WindowTerms};

/// The largest integer that every store, Lua's doubles included, computes exactly.
pub const EXACT_MAX: i64 = 1 << 53;

macro_rules! limit {
    (() $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*) => {
        /// The algorithm of a policy with its numbers.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Limit {
            $($(#[$doc])* $name($terms),)*
            /// Nothing is counted: the policy only bans on outcomes.
            Unlimited,
        }

        /// The fields of a policy or a tier that select an algorithm.
        pub(crate) const LIMIT_FIELDS: &[FieldSchema] = &[$(<$terms as Algorithm>::FIELD,)*];

        /// The same fields, each with the options that belong to its algorithm alone.
        pub(crate) const OPTION_FIELDS: [FieldSchema;
            LIMIT_FIELDS.len() $(+ <$terms as Algorithm>::OPTION_FIELDS.len())*] =
            join(&[$(&[<$terms as Algorithm>::FIELD], <$terms as Algorithm>::OPTION_FIELDS,)*]);

        impl Limit {
            /// Reads the terms of the algorithm whose field is called `name`.
            pub(crate) fn read(
                name: &str,
                report: &mut Report,
                node: Node<'_>,
                options: LimitOptions,
            ) -> Option<Self> {
                $(if name == <$terms as Algorithm>::FIELD.name {
                    return <$terms>::read(report, node, options).map(Self::$name);
                })*
                None
            }

            /// The options of the algorithm whose field is called `name`.
            pub(crate) fn options_of(name: &str) -> &'static [&'static str] {
                $(if name == <$terms as Algorithm>::FIELD.name {
                    return <$terms as Algorithm>::OPTIONS;
                })*
                &[]
            }

            /// The fields of a policy or a tier whose algorithm takes leases.
            pub fn lease_fields() -> impl Iterator<Item = &'static str> {
                let all = [$(
                    (<$terms as Algorithm>::FIELD.name, <$terms as Algorithm>::TAKES_LEASE),
                )*];
                all.into_iter().filter(|(_, takes_lease)| *takes_lease).map(|(name, _)| name)
            }

            /// Whether the two limits of tiers have no common state, so that the tiers must not
            /// share a counter.
            pub fn counts_apart_from(&self, other: &Self, count_denied: bool) -> bool {
                match (self, other) {
                    $((Self::$name(own), Self::$name(other)) => {
                        own.counts_apart_from(other, count_denied)
                    })*
                    _ => false,
                }
            }

            /// The limit divided by the number of nodes, rounded up: what one node admits while the
            /// shared store is unavailable.
            #[must_use]
            pub fn share(&self, nodes: i64) -> Self {
                match self {
                    $(Self::$name(terms) => Self::$name(terms.share(nodes)),)*
                    Self::Unlimited => Self::Unlimited,
                }
            }
        }
    };
}

for_each_algorithm!(limit);

/// `match_terms!(limit, terms => with_terms, without_a_limit)`: one `match` over all algorithms.
macro_rules! match_terms {
    (
        ($limit:expr, $bound:ident => $with:expr, $without:expr)
        $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*
    ) => {
        match $limit {
            $(Limit::$name($bound) => $with,)*
            Limit::Unlimited => $without,
        }
    };
}

impl Limit {
    /// The largest cost that can ever be admitted, if the algorithm has one.
    #[inline]
    pub fn capacity(&self) -> Option<i64> {
        for_each_algorithm!(match_terms self, terms => terms.largest_cost(), None)
    }

    /// The algorithm's name in the catalog; `none` for a policy without a limit.
    pub fn algorithm(&self) -> &'static str {
        for_each_algorithm!(match_terms self, terms => field_of(terms).name, "none")
    }

    /// The kind of the counter; `None` if nothing is counted.
    pub fn kind(&self) -> Option<CellKind> {
        for_each_algorithm!(match_terms self, terms => Some(kind_of(terms)), None)
    }

    /// Whether a check takes one lease, at any cost, and its settle ends the lease.
    #[inline]
    pub fn takes_lease(&self) -> bool {
        for_each_algorithm!(match_terms self, terms => takes_lease(terms), false)
    }

    /// The units that must be free for a row to fit: at least one, even if its check reserves none
    /// (`reserve = 0`, or a cost of zero). A lease is one unit, and a row without a limit always
    /// has room.
    #[inline]
    pub fn need(&self, held: i64) -> i64 {
        if self.takes_lease() || matches!(self, Self::Unlimited) { 1 } else { held.max(1) }
    }

    /// The number of windows, if there are several; otherwise 0.
    pub fn several_windows(&self) -> usize {
        match self {
            Self::Window(windows) if windows.len() > 1 => windows.len(),
            _ => 0,
        }
    }

    /// The span to which the limit refers; of several windows, that of the first.
    #[inline]
    pub fn reported_span(&self) -> Option<Span> {
        for_each_algorithm!(match_terms self, terms => terms.reported_span(), None)
    }

    /// How long a charged unit counts at most, if it leaves all at once.
    pub fn longest_window(&self) -> Option<Span> {
        for_each_algorithm!(match_terms self, terms => terms.longest_window(), None)
    }

    /// Whether every store computes a charge of this size exactly; reports it if not.
    pub(crate) fn check_charge(
        &self,
        report: &mut Report,
        location: SourceLocation,
        charge: i64,
    ) -> bool {
        for_each_algorithm!(
            match_terms self, terms => terms.check_charge(report, location, charge), true
        )
    }

    /// The limit as text, in the words of the catalog.
    pub fn describe(&self) -> String {
        let none = "none: it only bans";
        for_each_algorithm!(match_terms self, terms => terms.describe(), none.to_owned())
    }

    /// What a reader who does not know the algorithm should know about it; empty if nothing.
    pub fn remark(&self) -> &'static str {
        for_each_algorithm!(match_terms self, terms => terms.remark(), "")
    }

    /// Writes the terms for the script of the Redis store.
    pub fn write_terms(&self, to: &mut impl TermsWriter, lease: u64) {
        for_each_algorithm!(match_terms self, terms => terms.write_terms(to, lease), ())
    }
}

fn field_of<A: Algorithm>(_: &A) -> FieldSchema {
    A::FIELD
}

fn kind_of<A: Algorithm>(_: &A) -> CellKind {
    A::Cell::KIND
}

#[inline]
fn takes_lease<A: Algorithm>(_: &A) -> bool {
    A::TAKES_LEASE
}

/// How long a block lasts, and how repeated offences lengthen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalty {
    /// The length of the first block.
    pub first: Span,
    /// Each further block is this many times longer than the one before.
    pub factor: i64,
    /// No block lasts longer.
    pub max: Span,
    /// How long after a block's end its level still counts; zero for blocks of a fixed length.
    pub forget: Span,
}

impl Penalty {
    /// A block of one length that does not escalate.
    pub const fn without_escalation(span: Span) -> Self {
        Self { first: span, factor: 1, max: span, forget: Span::ZERO }
    }

    /// Whether repeated offences lengthen the block.
    pub fn escalates(&self) -> bool {
        self.forget > Span::ZERO
    }

    /// The length of the block at `level`; the first offence has level zero.
    pub fn length(&self, level: u32) -> Span {
        let mut span = self.first.min(self.max);
        for _ in 0..level {
            // Stop early: `level` may be large, and further steps would not change the span.
            if self.factor == 1 || span >= self.max {
                break;
            }
            span = span.times(self.factor).min(self.max);
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{FixedTerms, InflightTerms};

    /// One limit of each algorithm, and none.
    fn limits() -> [Limit; 5] {
        let span = Span::from_secs(1);
        let window = WindowTerms { limit: 4, span };
        [
            Limit::Bucket(BucketTerms { size: 3, tokens: 1, period: 1_000_000 }),
            Limit::Window([window].into_iter().collect()),
            Limit::Fixed(FixedTerms { limit: 5, span, aligned: true }),
            Limit::Inflight(InflightTerms { limit: 6, hold: span }),
            Limit::Unlimited,
        ]
    }

    #[test]
    fn a_limit_has_the_name_that_the_catalog_uses() {
        let names = limits().map(|limit| limit.algorithm());
        assert_eq!(names, ["bucket", "window", "fixed", "inflight", "none"]);
        assert_eq!(Limit::lease_fields().collect::<Vec<_>>(), ["inflight"]);
    }

    #[test]
    fn only_several_windows_are_counted_as_such() {
        assert!(limits().iter().all(|limit| limit.several_windows() == 0));
        let window = WindowTerms { limit: 4, span: Span::from_secs(1) };
        let two = Limit::Window([window, window].into_iter().collect());
        assert_eq!(two.several_windows(), 2);
    }

    #[test]
    fn a_limit_is_described_in_the_words_of_the_catalog() {
        let texts = limits().map(|limit| format!("{} ({})", limit.describe(), limit.remark()));
        let expected = [
            "bucket of 3, refill 1 per 1s (starts full)",
            "window 4 per 1s (never more in any such span)",
            "fixed 5 per 1s (starts with the first request)",
            "6 in flight ()",
            "none: it only bans ()",
        ];
        assert_eq!(texts, expected);
        let window = WindowTerms { limit: 4, span: Span::from_secs(1) };
        let two = Limit::Window(vec![window, window].into());
        assert_eq!(two.describe(), "window 4 per 1s and 4 per 1s");
        assert_eq!(two.remark(), "never more in any such span; all apply");
    }

    #[test]
    fn leases_and_no_limit_need_one_unit_at_any_cost() {
        assert_eq!(limits().map(|limit| limit.need(7)), [7, 7, 7, 1, 1]);
        assert_eq!(limits().map(|limit| limit.need(0)), [1; 5]);
        let second = Some(Span::from_secs(1));
        let spans = limits().map(|limit| limit.longest_window());
        assert_eq!(spans, [None, second, second, None, None]);
        let spans = limits().map(|limit| limit.reported_span());
        assert_eq!(spans, [Some(Span::from_secs(3)), second, second, None, None]);
    }

    /// Numbers in decimal, other bytes in hexadecimal.
    impl TermsWriter for String {
        fn numbers(&mut self, numbers: &[i64]) {
            numbers.iter().for_each(|number| *self += &format!("{number} "));
        }

        fn raw(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|byte| *self += &format!("{byte:02x}"));
            *self += " ";
        }
    }

    #[test]
    fn terms_are_written_in_the_order_in_which_the_script_reads_them() {
        let written = limits().map(|limit| {
            let mut text = String::new();
            limit.write_terms(&mut text, 0x0102_0304_0506_0708);
            text
        });
        let bucket = BucketTerms { size: 3, tokens: 1, period: 1_000_000 };
        let tag = u32::from_be_bytes(bucket.refill_tag().to_le_bytes());
        let expected = [
            format!("3 1 1000000 {tag:08x} "),
            "01 4 1000000 ".to_owned(),
            "5 1000000 01 ".to_owned(),
            "6 1000000 0102030405060708 ".to_owned(),
            String::new(),
        ];
        assert_eq!(written, expected);
    }

    #[test]
    fn shares_are_rounded_up_and_never_nothing() {
        let window = |limit| {
            let terms = WindowTerms { limit, span: Span::from_secs(60) };
            Limit::Window([terms].into_iter().collect())
        };
        assert_eq!(window(10).share(3), window(4));
        assert_eq!(window(1).share(8), window(1));
        assert_eq!(window(10).share(1), window(10));
        let span = Span::from_secs(1);
        let fixed = |limit| Limit::Fixed(FixedTerms { limit, span, aligned: true });
        assert_eq!(fixed(100).share(4), fixed(25));
        let inflight = |limit| Limit::Inflight(InflightTerms { limit, hold: span });
        assert_eq!(inflight(20).share(3), inflight(7));
        assert_eq!(Limit::Unlimited.share(9), Limit::Unlimited);
    }
}
