//! Checks that wait for a connection: those that wait at the same time go as one batch.
//!
//! A check joins the queue only if all connections are in use, so a lone check never waits for
//! company. The first caller that gets a connection sends an equal share of what waits; a task owns
//! the batch, so that a caller that gives up takes nothing from the others.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use catraca_core::decision::Decision;
use catraca_core::request::CHECKS_MAX;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::client_error::ClientError;
use super::pool::ConnectionPermit;
use super::transport::{HttpCall, ProblemText, Repeat, Transport};
use crate::json::DecisionBody;

/// The largest body of a batch, well below the server's limit of 1 MiB.
const BYTES_MAX: usize = 256 << 10;

type CheckResult = Result<Decision, ClientError>;

/// Checks that no connection has taken yet, in the order of arrival.
#[derive(Default)]
pub(super) struct CheckQueue {
    waiting: Mutex<VecDeque<WaitingCheck>>,
}

struct WaitingCheck {
    body: Bytes,
    deadline: Instant,
    /// Closed if the caller has given up.
    answer: oneshot::Sender<CheckResult>,
}

/// An item of the answer to a batch.
#[derive(Deserialize)]
#[serde(untagged)]
enum BatchItem<'a> {
    Decision(#[serde(borrow)] DecisionBody<'a>),
    Problem(ProblemText),
}

impl CheckQueue {
    /// Waits until a connection takes the check, alone or with others, and for its answer.
    pub async fn send(
        &self,
        transport: &Arc<Transport>,
        body: Bytes,
        deadline: Instant,
    ) -> CheckResult {
        let (answer, mut answered) = oneshot::channel();
        self.waiting.lock().push_back(WaitingCheck { body, deadline, answer });
        loop {
            let permit = tokio::select! {
                biased;
                result = &mut answered => return or_wait(result).await,
                permit = transport.pool.permit() => permit,
            };
            let batch = self.take(transport.pool.connections_max());
            if batch.is_empty() {
                // Another caller has sent this check and all others.
                drop(permit);
                return or_wait(answered.await).await;
            }
            tokio::spawn(send_batch(Arc::clone(transport), permit, batch));
        }
    }

    /// The next batch: an equal share of what waits, because the server decides the checks of a
    /// batch one after the other, and those of several connections at once. Checks whose callers
    /// have given up are left out.
    fn take(&self, connections: usize) -> Vec<WaitingCheck> {
        let mut waiting = self.waiting.lock();
        let checks_max = waiting.len().div_ceil(connections).min(CHECKS_MAX);
        let mut batch: Vec<WaitingCheck> = Vec::new();
        let mut bytes = 0;
        while let Some(next) = waiting.pop_front() {
            if next.answer.is_closed() {
                continue;
            }
            bytes += next.body.len() + 1;
            let is_full = batch.len() == checks_max || bytes > BYTES_MAX;
            if is_full && !batch.is_empty() {
                waiting.push_front(next);
                break;
            }
            batch.push(next);
        }
        batch
    }
}

/// Sends a batch, and gives each caller its answer.
async fn send_batch(
    transport: Arc<Transport>,
    permit: ConnectionPermit,
    mut batch: Vec<WaitingCheck>,
) {
    if batch.len() == 1 {
        let Some(single) = batch.pop() else { return };
        let sending = transport.send_check(single.body, &permit, Instant::now());
        if let Ok(answer) = timeout_at(single.deadline, sending).await {
            let result = answer.and_then(|answer| answer.read_decision(&transport));
            let _ = single.answer.send(result);
        }
        return;
    }
    // A caller with an earlier deadline stops waiting by itself.
    let deadline = batch.iter().map(|check| check.deadline).max().unwrap_or_else(Instant::now);
    let call = HttpCall::post("/v1/check/batch", join(&batch), Repeat::IfUnwritten);
    let Ok(answer) = timeout_at(deadline, transport.call_once(&call, &permit)).await else {
        return;
    };
    drop(permit);
    let items = answer.and_then(|answer| {
        let items: Vec<BatchItem<'_>> = answer.read(&transport)?;
        let results = items.into_iter().map(|item| item.into_result(&transport));
        let results: Vec<CheckResult> = results.collect();
        match results.len() == batch.len() {
            true => Ok(results),
            false => Err(transport.incompatible("the answer to a batch has another length")),
        }
    });
    match items {
        Ok(results) => {
            for (check, result) in batch.into_iter().zip(results) {
                let _ = check.answer.send(result);
            }
        }
        Err(error) => {
            for check in batch {
                let _ = check.answer.send(Err(error.clone()));
            }
        }
    }
}

impl BatchItem<'_> {
    fn into_result(self, transport: &Transport) -> CheckResult {
        match self {
            Self::Decision(body) => Ok(body.into_decision(transport.now())),
            Self::Problem(problem) => Err(transport.error_of_problem(problem)),
        }
    }
}

/// The bodies as a JSON list.
fn join(batch: &[WaitingCheck]) -> Bytes {
    let bytes: usize = batch.iter().map(|check| check.body.len() + 1).sum();
    let mut list = BytesMut::with_capacity(bytes + 1);
    for (index, check) in batch.iter().enumerate() {
        list.put_u8(if index == 0 { b'[' } else { b',' });
        list.put_slice(&check.body);
    }
    list.put_u8(b']');
    list.freeze()
}

/// The answer. A batch that was dropped without one has reached its deadline, and so has each of
/// its callers: they wait for their own.
async fn or_wait(answered: Result<CheckResult, oneshot::error::RecvError>) -> CheckResult {
    match answered {
        Ok(result) => result,
        Err(_) => std::future::pending().await,
    }
}
