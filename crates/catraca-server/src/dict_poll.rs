//! Asks the DICT for the states of a participant's buckets, and takes them over.
//!
//! The call is limited by the DICT too, so it passes the gate of `listBucketStates` like any other.
//! Rules of reconciling are the engine's.

mod fetch;

use std::sync::Weak;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use catraca::records::Operator;
use catraca::{BucketObservation, Check, Outcome, Settle, Subject};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use crate::config::{DICT_POLL_GATE, DictSection};
use crate::context::ServerContext;
use crate::http_wire::dict_states::{DictStates, ObservedBucket, read_states};
use crate::observe::background_tasks::BackgroundTask;
use fetch::{StatesRequest, StatesResponse};

const NAMESPACE: &str = "default";
const PARTICIPANT: &str = "participant";
const CATEGORY: &str = "category";
/// The first poll comes soon after the start, when all front ends are ready.
const FIRST_POLL: Duration = Duration::from_secs(1);

/// Polls as `[dict] poll` says, until the server is gone; returns at once if it says `off`.
pub async fn poll_periodically(context: Weak<ServerContext>) {
    let section = context.upgrade().map(|context| context.reloadable.load().process.dict.clone());
    let Some((section, interval)) = section.and_then(|own| own.poll.map(|every| (own, every)))
    else {
        return;
    };
    let mut next = Instant::now() + FIRST_POLL.min(interval);
    let mut own_category = None;
    loop {
        sleep_until(next).await;
        next += interval;
        let Some(context) = context.upgrade() else { return };
        let polled = poll(&context, &section, &mut own_category).await;
        let error = polled.err().map(|error| format!("{error:#}"));
        context.observer.background.note(BackgroundTask::DictPoll, error);
    }
}

/// Asks once, and takes the answer over. `own_category` is the category of the namespace that was
/// last logged because it is another than the bank's.
async fn poll(
    context: &ServerContext,
    section: &DictSection,
    own_category: &mut Option<String>,
) -> Result<()> {
    let participant = section.participant.as_deref().context("[dict] has no participant")?;
    let subject = Subject::from([(PARTICIPANT, participant)]);
    let check = Check::new(DICT_POLL_GATE, subject.clone());
    let decision = context.app.check(&check).await.context("the poll cannot be checked")?;
    let reason = decision.reason.as_str();
    ensure!(decision.allowed, "the poll is denied by {DICT_POLL_GATE}: {reason}");
    // Charges after this instant may be missing from the answer.
    let observed_at = context.app.now();
    let request = StatesRequest {
        upstream: section.upstream.as_deref().context("[dict] has no upstream")?,
        path: &section.path,
        participant,
        ca_file: section.ca_file.as_ref().map(|file| context.reloader.folder().join(file)),
    };
    let response = request.send().await;
    if let Some(ticket) = &decision.ticket {
        let outcome =
            response.as_ref().map_or_else(|_| Outcome::default(), StatesResponse::outcome);
        context.app.settle(&Settle::ticket(ticket, &outcome)).await?;
    }
    let response = response?;
    ensure!(response.status == 200, "the upstream answered with status {}", response.status);
    let states = match read_states(&response.body) {
        Ok(states) => states,
        Err(why) => bail!("the answer of the upstream cannot be read: {why}"),
    };
    adopt_category(context, participant, &states, own_category).await?;
    let observed: Vec<BucketObservation<'_>> =
        states.buckets.iter().map(ObservedBucket::observation).collect();
    if !observed.is_empty() {
        let taken = context.app.reconcile(NAMESPACE, &subject, observed_at, &observed).await?;
        let unmirrored = taken.skipped.into_iter().map(|state| state.policy).collect();
        context.observer.unmirrored.note(unmirrored);
        for drift in taken.drifts.iter().filter(|drift| drift.before != drift.after) {
            let policy = &*drift.policy;
            debug!(policy, before = drift.before, after = drift.after, "balance of the DICT");
        }
    }
    Ok(())
}

/// States the category that the bank reports as a fact of all namespaces, so that the right tiers
/// apply. A fact of the namespace goes before it and is left alone: an operator has set it.
async fn adopt_category(
    context: &ServerContext,
    participant: &str,
    states: &DictStates,
    own_category: &mut Option<String>,
) -> Result<()> {
    let Some(category) = &states.category else { return Ok(()) };
    let catalog = context.app.catalog();
    if catalog.facts.source(CATEGORY).is_none_or(|owner| **owner != *PARTICIPANT) {
        return Ok(());
    }
    let known = context.app.facts_about(None, PARTICIPANT, participant)?;
    if known.get(CATEGORY) != Some(category) {
        let by = Operator { name: "dict-poll", why: Some("the category that the DICT reports") };
        let facts = [(CATEGORY.to_owned(), category.clone())].into_iter().collect();
        context.app.set_facts(&by, None, PARTICIPANT, participant, facts).await?;
        info!(participant, category, "the DICT reports another category");
    }
    let own = context.app.facts_about(Some(NAMESPACE), PARTICIPANT, participant)?;
    let other = own.get(CATEGORY).filter(|own| *own != category).cloned();
    if let Some(own) = other.as_ref().filter(|_| other != *own_category) {
        warn!(
            participant,
            category,
            own,
            "a fact of the namespace sets another category than the DICT, and goes before it"
        );
    }
    *own_category = other;
    Ok(())
}
