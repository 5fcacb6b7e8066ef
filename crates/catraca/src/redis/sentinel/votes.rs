//! The reports of all Sentinels: which primary they name, and when a majority last confirmed it.
//!
//! Pure: instants are arguments. Two majorities have a Sentinel in common, and a Sentinel never
//! returns to an older epoch. So once a majority names a new primary, no node can get a majority
//! for the old one, and a node that was confirmed on the old one was asked before that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::super::connect_error::ConnectError;
use super::super::url::RedisAddress;
use super::report::SentinelReport;

/// How long a report can overrule others. An older one may come from a Sentinel that hangs.
const RECENT: Duration = Duration::from_secs(1);
/// The most Sentinels of one primary.
const SENTINELS_MAX: usize = 32;

/// The last word of every Sentinel.
#[derive(Default)]
pub(super) struct SentinelVotes {
    sentinels: BTreeMap<RedisAddress, SentinelState>,
}

#[derive(Default)]
struct SentinelState {
    /// Whether the URL names it. Others are forgotten when a majority lists them no more.
    is_in_url: bool,
    /// The id by which another Sentinel has listed this address.
    listed_as: Option<String>,
    /// When it was asked, and what it reported.
    report: Option<(Instant, SentinelReport)>,
    /// Why it did not answer the last time.
    error: Option<ConnectError>,
    /// When the last attempt began.
    tried: Option<Instant>,
}

/// The primary that Sentinels name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedPrimary {
    pub server: RedisAddress,
    pub epoch: u64,
    /// Whether a majority of all Sentinels names it.
    pub by_majority: bool,
}

/// Why a primary is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// A Sentinel is replacing it.
    FailingOver(RedisAddress),
    /// A Sentinel knows a configuration of a higher epoch.
    Replaced(RedisAddress),
    /// Too few Sentinels ever named it.
    Minority,
}

impl SentinelState {
    /// Its id, if it was ever reported.
    fn id(&self) -> Option<&str> {
        let reported = self.report.as_ref().map(|(_, report)| report.id.as_str());
        reported.or(self.listed_as.as_deref())
    }
}

impl SentinelVotes {
    pub fn new(addresses: &[RedisAddress]) -> Self {
        let state = || SentinelState { is_in_url: true, ..SentinelState::default() };
        Self { sentinels: addresses.iter().map(|one| (one.clone(), state())).collect() }
    }

    /// All addresses at which a Sentinel may answer.
    pub fn addresses(&self) -> Vec<RedisAddress> {
        self.sentinels.keys().cloned().collect()
    }

    pub fn on_report(&mut self, sentinel: &RedisAddress, asked: Instant, report: SentinelReport) {
        let others = report.others.clone();
        let Some(state) = self.sentinels.get_mut(sentinel) else { return };
        state.report = Some((asked, report));
        state.error = None;
        state.tried = Some(asked);
        // A listed Sentinel may be one of the URL, under another address: those are asked first.
        if self.sentinels.values().any(|state| state.tried.is_none()) {
            return;
        }
        self.forget_unlisted(asked);
        for (id, address) in others {
            // A Sentinel that has moved does not answer at its old address any more.
            let is_known = self.recent(asked).iter().any(|(_, one)| one.id == id);
            if !is_known && self.sentinels.len() < SENTINELS_MAX {
                self.sentinels.entry(address).or_default().listed_as = Some(id);
            }
        }
    }

    /// Forgets addresses that do not answer and that neither the URL nor a Sentinel names, and the
    /// reports of those of the URL. Fewer than a majority may have been reset.
    fn forget_unlisted(&mut self, now: Instant) {
        let recent = self.recent(now);
        if recent.len() < self.majority(now) {
            return;
        }
        let listed = recent.iter().flat_map(|(_, report)| &report.others);
        let listed: BTreeSet<RedisAddress> = listed.map(|(_, address)| address.clone()).collect();
        let ids: BTreeSet<String> = self.recent_ids(now).map(str::to_owned).collect();
        self.sentinels.retain(|address, state| {
            let is_answering = state.report.as_ref().is_some_and(|(at, _)| is_recent(*at, now));
            if state.is_in_url && state.id().is_some_and(|id| !ids.contains(id)) {
                state.report = None;
                state.listed_as = None;
            }
            state.is_in_url || is_answering || listed.contains(address)
        });
    }

    /// The last report stays: it counts for as long as a report counts.
    pub fn on_error(&mut self, sentinel: &RedisAddress, tried: Instant, error: ConnectError) {
        let Some(state) = self.sentinels.get_mut(sentinel) else { return };
        state.error = Some(error);
        state.tried = Some(tried);
    }

    /// The primary of the highest epoch in recent reports; of several, the one with most votes.
    pub fn named_primary(&self, now: Instant) -> Option<NamedPrimary> {
        let recent = self.recent(now);
        let epoch = recent.iter().map(|(_, report)| report.epoch).max()?;
        let mut votes: BTreeMap<&RedisAddress, usize> = BTreeMap::new();
        for (_, report) in recent.iter().filter(|(_, report)| report.epoch == epoch) {
            *votes.entry(&report.primary).or_default() += 1;
        }
        let (server, count) = votes.into_iter().max_by_key(|(_, count)| *count)?;
        let by_majority = count >= self.majority(now);
        Some(NamedPrimary { server: server.clone(), epoch, by_majority })
    }

    /// When a majority had confirmed this primary: the instant at which the last Sentinel that is
    /// needed for a majority was asked.
    pub fn confirmed_at(
        &self,
        server: &RedisAddress,
        epoch: u64,
        now: Instant,
    ) -> Result<Instant, Doubt> {
        for (_, report) in self.recent(now) {
            if report.epoch > epoch {
                return Err(Doubt::Replaced(report.primary.clone()));
            }
            if report.is_failing_over && report.epoch == epoch && report.primary == *server {
                return Err(Doubt::FailingOver(server.clone()));
            }
        }
        let names = |report: &SentinelReport| report.primary == *server && report.epoch == epoch;
        let by_id = self.newest_by_id();
        let confirming = by_id.values().filter(|(_, report)| names(report));
        let mut asked: Vec<Instant> = confirming.map(|(asked, _)| *asked).collect();
        asked.sort_unstable_by(|a, b| b.cmp(a));
        asked.get(self.majority(now) - 1).copied().ok_or(Doubt::Minority)
    }

    /// The Sentinel that waits least before it takes the primary for down, and how long it waits.
    pub fn shortest_down_after(&self, now: Instant) -> Option<(RedisAddress, Duration)> {
        let waits = self.sentinels.iter().filter_map(|(address, state)| {
            let (_, report) = state.report.as_ref().filter(|(asked, _)| is_recent(*asked, now))?;
            Some((address.clone(), report.down_after?))
        });
        waits.min_by_key(|(_, down_after)| *down_after)
    }

    /// How many Sentinels are a majority of all that are known.
    pub fn majority(&self, now: Instant) -> usize {
        self.total(now) / 2 + 1
    }

    /// How many Sentinels watch the primary, reachable or not: as many as this node knows, and at
    /// least those of the URL. One that was reset lists no others, and is no majority.
    pub fn total(&self, now: Instant) -> usize {
        let known = self.sentinels.values().filter_map(SentinelState::id);
        let ids: BTreeSet<&str> = known.chain(self.recent_ids(now)).collect();
        let of_url = || self.sentinels.values().filter(|state| state.is_in_url);
        let identified: BTreeSet<&str> = of_url().filter_map(SentinelState::id).collect();
        let unidentified = of_url().filter(|state| state.id().is_none()).count();
        ids.len().max(identified.len() + unidentified)
    }

    /// The ids in recent reports, also of those that they list.
    fn recent_ids(&self, now: Instant) -> impl Iterator<Item = &str> {
        self.recent(now).into_iter().flat_map(|(_, report)| {
            let others = report.others.iter().map(|(id, _)| id.as_str());
            others.chain([report.id.as_str()])
        })
    }

    /// How many Sentinels have answered within the last second.
    pub fn recent_count(&self, now: Instant) -> usize {
        self.recent(now).len()
    }

    /// Whether a primary can be chosen by the answers since `asked`: a majority has answered, or
    /// every Sentinel has answered or failed.
    pub fn is_answered_since(&self, asked: Instant) -> bool {
        let answered = self.newest_by_id().values().filter(|(at, _)| *at >= asked).count();
        let tried = |state: &SentinelState| state.tried.is_some_and(|at| at >= asked);
        answered >= self.majority(asked) || self.sentinels.values().all(tried)
    }

    /// The error of a Sentinel that did not answer, first one that answered with a refusal: it has
    /// a remedy.
    pub fn error(&self) -> Option<&ConnectError> {
        let errors = || self.sentinels.values().filter_map(|state| state.error.as_ref());
        let refused = errors().find(|error| !matches!(error, ConnectError::Unreachable { .. }));
        refused.or_else(|| errors().next())
    }

    fn reports(&self) -> impl Iterator<Item = &(Instant, SentinelReport)> {
        self.sentinels.values().filter_map(|state| state.report.as_ref())
    }

    fn recent(&self, now: Instant) -> Vec<&(Instant, SentinelReport)> {
        self.newest_by_id().into_values().filter(|(asked, _)| is_recent(*asked, now)).collect()
    }

    /// The newest report of each Sentinel, at any of its addresses.
    fn newest_by_id(&self) -> BTreeMap<&str, &(Instant, SentinelReport)> {
        let mut newest: BTreeMap<&str, &(Instant, SentinelReport)> = BTreeMap::new();
        for report in self.reports() {
            let entry = newest.entry(&report.1.id).or_insert(report);
            if entry.0 < report.0 {
                *entry = report;
            }
        }
        newest
    }
}

fn is_recent(asked: Instant, now: Instant) -> bool {
    now.saturating_duration_since(asked) <= RECENT
}

#[cfg(test)]
mod tests;
