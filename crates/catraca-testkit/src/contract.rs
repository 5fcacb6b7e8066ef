//! The store contract: one set of test cases with explicit instants that every store must pass.
//!
//! The name of a case says what the store promises. The expected figures are written out, not
//! computed, so that a store that uses core's rules and a store with its own copy of them (the Lua
//! script) are held to the same numbers.

mod blocks;
mod concurrency;
mod counters;
mod extremes;
mod forgetting;
mod gates;
mod harness;
mod outcomes;
mod references;
mod settling;
mod shared_counters;
mod tiers;

use std::panic::{AssertUnwindSafe, catch_unwind};

use catraca::store::Store;

pub use concurrency::admitted_at_once;
use harness::{CaseResult, StoreHarness};

/// The result of one case on one store.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the store promises, in words.
    pub name: String,
    /// On failure, the expected and the actual value.
    pub result: Result<(), String>,
}

/// Runs every case, each on a new empty store from `make`.
pub fn run_all(make: impl Fn() -> Box<dyn Store>) -> Vec<Case> {
    CASES.iter().map(|(name, case)| run_case(name, *case, make())).collect()
}

type CaseFn = fn(&StoreHarness) -> CaseResult;

/// Runs one case. A panic counts as a failure, so that the other cases still run.
fn run_case(name: &str, case: CaseFn, store: Box<dyn Store>) -> Case {
    let harness = StoreHarness { store };
    let outcome = catch_unwind(AssertUnwindSafe(|| case(&harness)));
    let result = outcome.unwrap_or_else(|_| Err("panicked; see the message above".to_owned()));
    Case { name: name.replace("::", ": ").replace('_', " "), result }
}

/// Builds the list of cases, each as its `module::function` path and the function.
macro_rules! cases {
    ($($module:ident: $($case:ident),+;)+) => {
        &[$($((concat!(stringify!($module), "::", stringify!($case)), $module::$case),)+)+]
    };
}

const CASES: &[(&str, CaseFn)] = cases! {
    counters:
        the_instant_given_is_the_instant_used,
        time_never_runs_backwards_for_a_key,
        keys_do_not_meet,
        a_bucket_refills_to_the_microsecond,
        a_bucket_loses_no_remainder,
        a_window_frees_a_unit_at_exactly_its_span,
        a_thousand_units_of_one_instant_are_a_thousand,
        several_windows_must_all_fit,
        several_windows_have_figures_of_their_own,
        a_fixed_window_opens_at_its_first_unit,
        an_aligned_window_opens_at_the_clock,
        a_lease_ends_by_itself_at_its_hold,
        counted_denials_push_the_window_on,
        counted_denials_fill_a_fixed_window,
        a_row_without_a_limit_counts_nothing;
    gates:
        a_denial_charges_nobody,
        an_admission_charges_everybody,
        a_veto_charges_nobody,
        every_excess_starts_its_own_block,
        a_shadow_row_never_decides,
        a_peek_moves_nothing,
        too_much_never_fits_and_starts_nothing,
        nothing_needs_one_free_and_charges_none,
        another_algorithm_starts_fresh_and_the_block_stays;
    blocks:
        an_excess_blocks_once_and_to_the_instant,
        a_block_gives_no_quota_back,
        the_later_end_wins,
        a_block_without_end_stands,
        a_release_says_whether_a_block_stood,
        repeated_offences_last_longer,
        a_release_of_another_end_changes_nothing,
        a_release_keeps_the_level,
        a_restored_level_is_forgotten_when_its_block_says,
        shadow_blocks_are_seen_by_shadow_rows_only,
        shadow_and_real_levels_never_mix,
        a_reset_forgets_everything;
    settling:
        a_refund_reaches_its_own_entry_only,
        a_refund_fills_a_bucket_to_its_size,
        a_refund_never_reaches_the_next_fixed_window,
        an_extra_charge_stops_at_what_is_free,
        debt_goes_below_zero,
        crossing_the_limit_starts_the_block,
        no_crossing_while_an_excess_stands,
        a_drain_leaves_nothing,
        a_settle_counts_once,
        a_late_settle_changes_nothing,
        a_lease_comes_back_at_settle;
    outcomes:
        a_rule_bans_at_once,
        strikes_ban_together_and_are_spent,
        strikes_age_and_rest_while_a_block_stands,
        a_watched_ratio_bans,
        a_watched_ratio_forgets_whole_slices,
        a_ban_and_an_operator_keep_the_later_end;
    references:
        the_first_admitted_check_owns_a_reference,
        a_reference_knows_its_charged_rows_and_its_outcome,
        a_reference_hears_only_of_its_own_check,
        a_reference_is_forgotten_on_time,
        a_credit_counts_once_per_event,
        a_credit_is_capped_and_lifts_no_block,
        an_upstreams_lower_view_wins,
        an_upstreams_higher_view_needs_an_untouched_bucket;
    forgetting:
        a_full_bucket_is_forgotten_at_a_whole_second,
        an_empty_window_is_forgotten_at_a_whole_second,
        other_terms_keep_tokens_and_drop_the_remainder,
        a_smaller_bucket_is_clamped_and_debt_is_kept,
        another_number_of_windows_keeps_the_units,
        a_lowered_limit_counts_what_is_there;
    tiers:
        a_thousand_requests_of_two_tiers_get_the_limits_of_both,
        a_tier_has_a_counter_of_its_own,
        a_block_is_of_the_key_and_not_of_the_tier,
        a_settle_reaches_the_counter_that_was_charged,
        an_excess_of_a_tier_blocks_the_key,
        credits_and_views_reach_the_bucket_of_the_tier,
        a_reset_clears_the_counters_it_names,
        a_peek_drops_no_entries;
    shared_counters:
        a_shared_bucket_is_forgotten_when_it_is_full_for_all,
        credits_and_views_keep_a_shared_bucket;
    extremes:
        the_largest_amounts_are_too_much_and_break_nothing,
        the_largest_bucket_is_exact,
        the_fastest_refill_gives_no_false_denial,
        the_deepest_debt_stops_at_the_floor,
        the_longest_times_do_not_wrap,
        absurd_views_and_credits_are_clamped;
    concurrency:
        a_crowd_at_one_instant_gets_exactly_the_limit,
        a_crowd_leaves_the_balance_of_its_charges,
        a_crowd_over_time_never_gets_more_than_the_rate,
        a_crowd_in_excess_starts_one_block,
        crossing_gates_do_not_deadlock_and_stay_whole,
        a_crowd_settles_once,
        a_crowd_credits_once;
};
