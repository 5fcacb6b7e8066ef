//! Algorithms: what a limit counts, and how. Each has one file: its terms and how a catalog writes
//! them, its cell, what checks and settles do to the cell, and the bytes of both.
//!
//! [`for_each_algorithm`](crate::for_each_algorithm) is the only list. Everything that must know
//! all algorithms is generated from it, or calls [`Limit`](crate::limit::Limit), which dispatches
//! with one `match`. The cell of an algorithm is a kind of state, and those are a second list:
//! [`for_each_kind`](crate::for_each_kind).

pub mod bucket;
pub mod fixed_window;
pub mod in_flight;
pub mod sliding_window;

use crate::batch::WindowFigures;
use crate::cell::CellTable;
use crate::codec::Codec;
use crate::digest::Key;
use crate::located::{FieldSchema, Node, Report, SourceLocation, TableFields, scalar};
use crate::rate::Percent;
use crate::time::{Span, Time};

pub use bucket::BucketTerms;
pub use bucket::shared_buckets::SharedBuckets;
pub use fixed_window::FixedTerms;
pub use in_flight::InflightTerms;
pub use sliding_window::{WindowList, WindowTerms};

/// The list of algorithms. Calls the macro `$then` with its arguments in parentheses and one row
/// per algorithm: its variant of [`Limit`](crate::limit::Limit), its terms, its cell, and its name
/// as a field.
///
/// Messages and suggestions name the algorithms in this order.
#[macro_export]
macro_rules! for_each_algorithm {
    ($then:ident $($args:tt)*) => {
        $then! {
            ($($args)*)
            /// One exact sliding window, or several that must all admit the request.
            Window($crate::algorithm::WindowList, $crate::cell::SlidingWindow) window;
            /// A token bucket.
            Bucket($crate::algorithm::BucketTerms, $crate::cell::Bucket) bucket;
            /// A fixed window that starts at its first charged unit, or at multiples of its length.
            Fixed($crate::algorithm::FixedTerms, $crate::cell::FixedWindow) fixed;
            /// Concurrent requests, one lease each.
            Inflight($crate::algorithm::InflightTerms, $crate::cell::InFlight) inflight;
        }
    };
}

/// One algorithm, implemented by its terms.
///
/// A counter is found by `load`, which advances it to the instant of the row. The other functions
/// get what `load` returned.
pub trait Algorithm: Clone {
    /// The state of one key.
    type Cell: Codec;
    /// What a row has of the cell while a batch runs: the copy of a small cell, which is written
    /// back as a whole; `()` for a cell that can be large and is changed in place.
    type RowState;

    /// The field of a policy or a tier that contains the terms. Its name is the algorithm's.
    const FIELD: FieldSchema;
    /// Further fields of a policy that belong to this algorithm alone, read by [`LimitOptions`].
    const OPTION_FIELDS: &'static [FieldSchema] = &[];
    /// The fields of a policy that have a meaning with this algorithm, of those that do not have
    /// one with every algorithm.
    const OPTIONS: &'static [&'static str];
    /// Whether a check takes one lease, at any cost, and its settle ends the lease.
    const TAKES_LEASE: bool = false;

    /// Reads the terms from a catalog.
    fn read(report: &mut Report, node: Node<'_>, options: LimitOptions) -> Option<Self>;

    /// Whether every store computes a charge of this size exactly; reports it if not.
    fn check_charge(&self, _: &mut Report, _: SourceLocation, _charge: i64) -> bool {
        true
    }

    /// The terms as text, in the words of the catalog.
    fn describe(&self) -> String;

    /// What a reader who does not know the algorithm should know about it; empty if nothing.
    fn remark(&self) -> &'static str {
        ""
    }

    /// Writes the terms for the script of the Redis store; `lease` is the id of the row's lease.
    /// The Lua file of the algorithm reads them in this order.
    fn write_terms(&self, to: &mut impl TermsWriter, lease: u64);

    /// The largest cost that can ever be admitted, if there is one.
    fn largest_cost(&self) -> Option<i64>;

    /// The terms divided by the number of nodes. Rounded up, so that no share is zero; all shares
    /// together exceed the limit by less than one unit per node.
    #[must_use]
    fn share(&self, nodes: i64) -> Self;

    /// Whether a counter cannot serve both terms.
    fn counts_apart_from(&self, _other: &Self, _count_denied: bool) -> bool {
        false
    }

    /// The span to which the limit refers; of several windows, that of the first.
    fn reported_span(&self) -> Option<Span> {
        None
    }

    /// How long a charged unit counts at most, if it leaves all at once.
    fn longest_window(&self) -> Option<Span> {
        None
    }

    /// Finds the counter and advances it to the instant of `at`: refills a bucket, drops entries
    /// and leases that have ended.
    fn load<C: CellTable<Self::Cell>>(
        &self,
        at: CounterPosition<'_>,
        cells: &mut C,
    ) -> CounterState<Self::RowState>;

    /// Free units; negative for a debt, or if the limit was lowered.
    fn free<C: CellTable<Self::Cell>>(
        &self,
        state: &Self::RowState,
        at: CounterPosition<'_>,
        cells: &mut C,
    ) -> i64;

    /// Charges units, which are not zero, or one lease. Returns the amount charged.
    fn charge<C: CellTable<Self::Cell>>(
        &self,
        state: &mut Self::RowState,
        at: CounterPosition<'_>,
        cells: &mut C,
        units: i64,
        lease: u64,
    ) -> i64;

    /// Counts the units of a denied check, which are above zero, for policies with `count_denied`.
    /// Each window then contains at most its limit.
    fn count_denied<C: CellTable<Self::Cell>>(
        &self,
        _state: &mut Self::RowState,
        _at: CounterPosition<'_>,
        _cells: &mut C,
        _units: i64,
    ) {
    }

    /// Gives back units of the charge made at `charged_at`. Returns how many.
    fn refund<C: CellTable<Self::Cell>>(
        &self,
        _state: &mut Self::RowState,
        _at: CounterPosition<'_>,
        _cells: &mut C,
        _charged_at: Time,
        _units: i64,
    ) -> i64 {
        0
    }

    /// Ends a lease before its time.
    fn release_lease<C: CellTable<Self::Cell>>(
        &self,
        _at: CounterPosition<'_>,
        _cells: &mut C,
        _lease: u64,
    ) {
    }

    /// The figures of the row, for a check that needs `need` units.
    fn figures<C: CellTable<Self::Cell>>(
        &self,
        state: &Self::RowState,
        at: CounterPosition<'_>,
        cells: &mut C,
        need: i64,
    ) -> RowFigures;
}

/// The options of a policy that apply to its limit and to those of its tiers.
#[derive(Clone, Copy, Debug)]
pub struct LimitOptions {
    /// `margin`: scales the size of a bucket.
    pub margin: Option<Percent>,
    /// `align`: whether fixed windows start at multiples of their span.
    pub aligned: bool,
    /// `hold`: how long a lease lasts.
    pub hold: Span,
}

impl LimitOptions {
    /// Reads the options of a policy, whose `hold` is known already.
    pub(crate) fn read(report: &mut Report, fields: &TableFields<'_>, hold: Span) -> Self {
        let margin = fields.parse("margin", |node| scalar::percent(report, node));
        let align = [("clock", true)];
        let aligned = fields.parse("align", |node| scalar::keyword(report, node, &align));
        Self {
            margin: margin.valid().copied(),
            aligned: aligned.or(false).unwrap_or_default(),
            hold,
        }
    }
}

/// Takes the terms of a limit in the types that the Redis script reads.
pub trait TermsWriter {
    /// Integers below 2^53, as doubles.
    fn numbers(&mut self, numbers: &[i64]);
    /// Raw bytes.
    fn raw(&mut self, bytes: &[u8]);
}

/// The key and the instant of a row's counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterPosition<'a> {
    /// The key of the counter: the row's own, or that of an overflow cell.
    pub key: Key,
    /// The instant of the row: that of the batch, or the last write of the counter if that is
    /// later. Then the clock of a shared store was set back.
    pub now: Time,
    /// The buckets of the other tiers that share the counter.
    pub shared: Option<&'a SharedBuckets>,
}

/// A counter that was advanced to the instant of its row.
#[derive(Debug)]
pub struct CounterState<S> {
    /// What the row has of the cell.
    pub state: S,
    /// The instant of the row.
    pub now: Time,
    /// Whether the key has a cell.
    pub exists: bool,
}

/// The figures of a row in a reply.
#[derive(Clone, Debug)]
pub struct RowFigures {
    /// The limit; `None` if nothing is counted. Of several windows, that with the fewest free.
    pub limit: Option<i64>,
    /// Free units; negative for a bucket in debt.
    pub free: i64,
    /// When `need` units are free if no other request comes; `None` if that never happens.
    pub fits_at: Option<Time>,
    /// When all units are free.
    pub full_at: Time,
    /// The figures of each of several windows; empty for everything else.
    pub windows: Box<[WindowFigures]>,
}

/// One node's part of a limit, rounded up.
const fn part_of(limit: i64, nodes: i64) -> i64 {
    (limit + nodes - 1) / nodes
}
