//! Operators and callers that act during the fault, and workers that ask every node about the acts.
//!
//! An act that is refused is tried again until a node acknowledges it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::acts::{Act, ActKind};
use super::history::CallerKind;
use super::http_client::{HttpClient, HttpResponse};
use super::load::{LoadState, NodeWorker, check_body, observe};
use super::node::{AUTOMATIC_LIMIT, NODES};
use super::run::Api;

/// From the start of the fault until the first act: callers have noticed the fault by then.
const DELAY: Duration = Duration::from_millis(300);
const RETRY: Duration = Duration::from_millis(100);
const OBSERVE_INTERVAL: Duration = Duration::from_millis(20);
/// Blocks that are only judged by whether the records have them, of each node.
const DURABLE_BLOCKS: usize = 120;
const DURABLE_INTERVAL: Duration = Duration::from_millis(150);
/// Of each node, the policy whose mode it sets.
const SWITCHES: [&str; NODES] = ["switch0", "switch1", "switch2"];
/// Acts of one round: one of each kind on every node.
pub const ACTS: usize = NODES * ActKind::ALL.len();

/// Callers that are blocked before the fault, and released during it.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The ids of the blocks, by round and node.
    blocks: Vec<String>,
}

impl Prepared {
    /// Blocks the callers of all rounds through one node.
    pub fn new(api: &mut Api, rounds: usize) -> Self {
        for policy in SWITCHES {
            api.call("POST /v1/blocks", &block_body(policy, "act-mode"));
        }
        let mut block = |number: usize| -> String {
            let customer = format!("act-release-{number}");
            let body = block_body("guard", &customer);
            let made = api.call("POST /v1/blocks", &body);
            let check = api.call("POST /v1/check", &check_body("guard", &customer));
            assert_eq!(check.body["allowed"], false, "{}", check.body);
            block_id(&made.body).unwrap()
        };
        Self { blocks: (0..rounds * NODES).map(&mut block).collect() }
    }
}

fn block_body(policy: &str, customer: &str) -> String {
    let subject = json!({ "customer": customer });
    json!({ "policy": policy, "subject": subject, "for": "1h" }).to_string()
}

fn block_id(answer: &Value) -> Option<String> {
    answer["blocks"][0]["id"].as_str().map(str::to_owned)
}

/// One actor on one node.
pub struct Actor {
    pub state: Arc<LoadState>,
    client: HttpClient,
    node: usize,
    round: usize,
}

impl Actor {
    pub fn new(state: Arc<LoadState>, address: &str, node: usize, round: usize) -> Self {
        Self { state, client: HttpClient::new(address), node, round }
    }

    /// The acts of one node in one round.
    pub async fn act(mut self, prepared: Prepared, makes_durable: bool) {
        sleep(DELAY).await;
        let number = self.round * NODES + self.node;
        self.set_mode().await;
        let customer = format!("act-block-{number}");
        self.repeat("POST /v1/blocks", &block_body("guard", &customer)).await;
        self.acknowledge(ActKind::Block, "guard", customer, false);
        let release = format!("DELETE /v1/blocks/{}", prepared.blocks[number]);
        self.repeat(&release, "").await;
        self.acknowledge(ActKind::Release, "guard", format!("act-release-{number}"), true);
        self.exceed(format!("act-limit-{number}")).await;
        if makes_durable {
            self.block_more().await;
        }
    }

    async fn set_mode(&mut self) {
        let is_off = self.round.is_multiple_of(2);
        let mode = if is_off { "off" } else { "enforce" };
        let body = json!({ "mode": mode }).to_string();
        let policy = SWITCHES[self.node];
        self.repeat(&format!("PUT /v1/policies/{policy}/mode"), &body).await;
        self.acknowledge(ActKind::Mode, policy, "act-mode".to_owned(), is_off);
    }

    /// Calls until the limit is exceeded, for which the policy blocks.
    async fn exceed(&mut self, customer: String) {
        let body = check_body("automatic", &customer);
        for _ in 0..20 * AUTOMATIC_LIMIT {
            let answer = self.client.call("POST /v1/check", &body).await;
            match answer {
                Ok(answer) if answer.body["blocked_until"].is_string() => {
                    let kind = ActKind::AutomaticBlock;
                    return self.acknowledge(kind, "automatic", customer, false);
                }
                Ok(answer) if answer.body["allowed"] == true => {}
                _ => sleep(RETRY).await,
            }
            if self.state.is_stopped() {
                return;
            }
        }
    }

    /// Blocks of which the answers say whether they are durable.
    async fn block_more(&mut self) {
        for number in 0..DURABLE_BLOCKS {
            let customer = format!("act-durable-{}-{}-{number}", self.round, self.node);
            let body = block_body("guard", &customer);
            let answer = self.client.call("POST /v1/blocks", &body).await;
            let made = answer.ok().filter(|made| made.body["durable"] == true);
            if let Some(id) = made.and_then(|made| block_id(&made.body)) {
                let at = self.state.now();
                self.state.acts.lock().unwrap().durable.push((id, at));
            }
            if self.state.is_stopped() {
                return;
            }
            sleep(DURABLE_INTERVAL).await;
        }
    }

    /// Repeats a call until it succeeds or the load ends.
    async fn repeat(&mut self, line: &str, body: &str) {
        let first = self.state.now();
        while !self.state.is_stopped() {
            let answer = self.client.call(line, body).await.ok();
            let is_success = |answer: &HttpResponse| (200..300).contains(&answer.status);
            let Some(answer) = answer.filter(is_success) else {
                self.state.acts.lock().unwrap().refused += 1;
                sleep(RETRY).await;
                continue;
            };
            let wait = self.state.now() - first;
            let mut history = self.state.acts.lock().unwrap();
            history.longest_wait = history.longest_wait.max(wait);
            if answer.body["durable"] == true {
                let at = self.state.now();
                history.durable.extend(block_id(&answer.body).map(|id| (id, at)));
            }
            return;
        }
    }

    fn acknowledge(&self, kind: ActKind, policy: &'static str, customer: String, allows: bool) {
        if self.state.is_stopped() {
            return;
        }
        let acknowledged = self.state.now();
        let node = self.node;
        let round = self.round;
        let act = Act { kind, policy, customer, allows, acknowledged, node, round };
        let mut history = self.state.acts.lock().unwrap();
        history.open -= 1;
        history.acts.push(act);
    }
}

/// Asks one node about every act of the round that was acknowledged.
pub async fn ask((state, address, node): NodeWorker) {
    let mut client = HttpClient::new(&address);
    let mut ticks = interval(OBSERVE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next = node;
    while !state.is_stopped() {
        ticks.tick().await;
        next += 1;
        let asked = {
            let history = state.acts.lock().unwrap();
            let of_round = |(_, act): &(usize, &Act)| act.round == state.round();
            let present: Vec<(usize, &Act)> =
                history.acts.iter().enumerate().filter(of_round).collect();
            let chosen = present.get(next % present.len().max(1));
            chosen.map(|(key, act)| (*key, check_body(act.policy, &act.customer)))
        };
        if let Some((key, body)) = asked {
            observe(&state, &mut client, CallerKind::Act, (node, key), &body).await;
        }
    }
}
