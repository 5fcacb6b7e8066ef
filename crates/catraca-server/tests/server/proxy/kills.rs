//! Kill -9 of the client, of the upstream and of the server itself, in every phase of a request.
//!
//! A check is settled, or what it holds ends with `hold`, and no lease leaks. All three are
//! processes of their own. The ordinary run has one case per phase and store, and `CATRACA_DEEP=1`
//! runs every victim in every phase.

mod actors;
mod scene;

use std::time::{Duration, Instant};

use catraca_testkit::redis::RedisServer;

use scene::{Scene, Store, WHOLE_REQUESTS};

use super::helpers::{SOON, wait_until};

/// How far the request is when the victim dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillPhase {
    /// The proxy collects the body, which the route reads, before it checks.
    Collecting,
    /// The check waits for a shared store, which does not answer.
    CheckWaiting,
    /// The proxy connects to the upstream, which does not speak yet.
    Connecting,
    /// The upstream has the head of the request.
    HeadSent,
    /// The upstream has a part of the body.
    BodyUnderWay,
    /// The upstream has the whole request, and does not answer.
    Waiting,
    /// The client has the head of the response.
    HeadReceived,
    /// The client has a part of the response's body.
    AnswerUnderWay,
    /// The proxy holds a part of the response back, because a ban may replace it.
    AnswerHeld,
    /// The client has gone, and the proxy reads the rest of the response for the rules.
    RestRead,
    /// The upstream has a wish to switch protocols, and does not answer. A rule reads the body.
    UpgradePending,
    /// Both sides have switched to another protocol.
    TunnelOpen,
    /// The client has the whole response. A shared store does not answer, so that the settle waits.
    Ended,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Client,
    Upstream,
    Server,
}

use KillPhase::{
    AnswerHeld, AnswerUnderWay, BodyUnderWay, CheckWaiting, Collecting, Connecting, Ended,
    HeadReceived, HeadSent, RestRead, TunnelOpen, UpgradePending, Waiting,
};

const PHASES: [KillPhase; 13] = [
    Connecting,
    HeadSent,
    BodyUnderWay,
    Waiting,
    HeadReceived,
    AnswerUnderWay,
    Ended,
    Collecting,
    AnswerHeld,
    RestRead,
    UpgradePending,
    TunnelOpen,
    CheckWaiting,
];
const VICTIMS: [Victim; 3] = [Victim::Client, Victim::Upstream, Victim::Server];

/// The cases of a run. `first` chooses the victim of the first phase in an ordinary run.
fn cases(first: usize) -> Vec<(KillPhase, Victim)> {
    let is_deep = std::env::var_os("CATRACA_DEEP").is_some();
    let mut cases = Vec::new();
    for (number, phase) in PHASES.into_iter().enumerate() {
        for (index, victim) in VICTIMS.into_iter().enumerate() {
            if is_deep || (number + first) % VICTIMS.len() == index {
                cases.push((phase, victim));
            }
        }
    }
    cases
}

#[test]
fn no_kill_leaves_a_lease_behind_in_memory() {
    for (phase, victim) in cases(2) {
        // Only a check of a shared store waits.
        if phase == CheckWaiting {
            continue;
        }
        run(phase, victim, &Store::Memory);
    }
}

#[test]
fn no_kill_leaves_a_lease_behind_in_redis() {
    for (phase, victim) in cases(0) {
        let Some(redis) = RedisServer::start() else { return };
        run(phase, victim, &Store::Redis(redis));
    }
}

/// Runs one case, and prints its line.
fn run(phase: KillPhase, victim: Victim, store: &Store) {
    // The server releases a lease at once, unless it is killed or its store does not answer.
    // Without its client, a response that is held back is waited for.
    let is_awaited = phase == AnswerHeld && victim == Victim::Client;
    let is_settled_at_once = victim != Victim::Server && phase != Ended && !is_awaited;
    let hold = if is_settled_at_once { "10m" } else { "2s" };
    let mut scene = Scene::open(phase, hold, store);
    scene.serve_whole_requests();
    if phase == CheckWaiting {
        store.pause();
    }
    scene.begin_request(phase);
    if phase == Ended {
        store.pause();
        scene.finish_response();
    }
    if victim == Victim::Server && phase != Ended {
        scene.wait_for_snapshot();
    }
    let killed = Instant::now();
    scene.kill(victim);
    store.resume();
    if victim == Victim::Client && matches!(phase, RestRead | UpgradePending) {
        // The request goes on without its client, and ends.
        scene.finish_without_client();
    }
    if victim == Victim::Server {
        scene.restart_server();
    }
    let is_settled = scene.counts().leases == 0;
    wait_until(&format!("no lease is left: {phase:?} {victim:?}"), || scene.counts().leases == 0);
    if phase == CheckWaiting && victim != Victim::Server {
        wait_until("the check has ended", || scene.counts().charged > WHOLE_REQUESTS);
        wait_until("its lease has ended", || scene.counts().leases == 0);
    }
    let waited = killed.elapsed();
    let counts = scene.counts();
    let settled = if is_settled { "yes" } else { "after the first look, or its hold ended" };
    print!("phase={phase:?} victim={victim:?} store={} charged={}", store.name(), counts.charged);
    println!(" settled={settled} leases={} after={waited:?}", counts.leases);
    // Without a snapshot since, the last request is lost with the process.
    let is_exact = matches!(store, Store::Redis(_)) || victim != Victim::Server || phase != Ended;
    // A check that waits for the store may die with the server.
    let is_exact = is_exact && !(phase == CheckWaiting && victim == Victim::Server);
    let charged = match phase {
        Collecting => WHOLE_REQUESTS..=WHOLE_REQUESTS,
        _ if is_exact => WHOLE_REQUESTS + 1..=WHOLE_REQUESTS + 1,
        _ => WHOLE_REQUESTS..=WHOLE_REQUESTS + 1,
    };
    assert!(charged.contains(&counts.charged), "{phase:?} {victim:?}: {counts:?}");
    assert!(waited < SOON + Duration::from_secs(2), "{waited:?}");
    assert!(scene.serves_again(victim), "{phase:?} {victim:?}: the next request fails");
}
