//! Guards of locks, over locks of this process and over a server.

use std::sync::Arc;
use std::time::Duration;

use catraca::core::lock::LockTerms;
use catraca::core::lock::reply::ReleaseReply;
use catraca::locks::{
    LeaseLoss, LocalLocks, LockRequest, LockService, NotGranted, SlotConfirmation, SlotRequest,
};
use catraca::{Locks, Secret, SystemClock, Time};
use tokio::time::timeout;

use super::dropping_proxy::DroppingProxy;
use super::{PATIENCE, builder, client};
use crate::raw_connection::JSON;
use crate::test_server::TestServer;

fn local() -> LocalLocks {
    let locks = Locks::in_memory(Arc::new(SystemClock::new()), &Secret::from_bytes([7; 32]));
    LocalLocks::new(Arc::new(locks), LockTerms::default())
}

fn server() -> TestServer {
    TestServer::with_catalog("[policy.p]\nby = ['ip']\nfixed = '1 per 1s'\n")
}

fn request() -> LockRequest {
    LockRequest::new("payment", "order-7").ttl(Duration::from_secs(2))
}

/// A program over any locks.
async fn run_program(service: &impl LockService) {
    let lock = service.lock(request().owner_label("worker 3")).await.unwrap().unwrap();
    let taken = service.lock(request()).await.unwrap();
    let Err(NotGranted::Taken(taken)) = taken else { panic!("the lock is taken") };
    assert_eq!((taken.taken.as_str(), taken.owner_label.as_deref()), ("order-7", Some("worker 3")));
    // Several TTLs later the lease is still held, because the guard renews it.
    assert!(timeout(Duration::from_secs(7), lock.until_lost()).await.is_err());
    let fence = lock.fence();
    drop(lock);
    let waiting = service.lock(request().wait(Duration::from_secs(10))).await.unwrap();
    let lock = waiting.unwrap();
    assert!(lock.fence() > fence);
    assert_eq!(lock.release().await.unwrap(), ReleaseReply::Released);

    let at = |minutes: i64| Time::from_millis(2_000_000_000_000 + minutes * 60_000);
    let slot = SlotRequest::new("ana", at(0), at(30)).ttl(Duration::from_secs(30));
    let held = service.hold(&slot).await.unwrap().unwrap();
    let overlapping = service.hold(&SlotRequest::new("ana", at(15), at(45))).await.unwrap();
    assert!(matches!(overlapping, Err(NotGranted::Taken(_))), "{overlapping:?}");
    let confirmed = service.confirm(held.id, false).await.unwrap();
    assert!(matches!(confirmed, SlotConfirmation::Confirmed { fence, .. } if fence == held.fence));
    assert_eq!(service.cancel(held.id).await.unwrap(), ReleaseReply::Released);
    assert_eq!(service.cancel(held.id).await.unwrap(), ReleaseReply::Already);
    let confirmed = service.confirm(held.id, false).await.unwrap();
    assert_eq!(confirmed, SlotConfirmation::Ended { still_free: true });
}

#[tokio::test]
async fn a_program_holds_locks_of_this_process() {
    run_program(&local()).await;
}

#[tokio::test]
async fn the_same_program_holds_locks_of_a_server() {
    run_program(&client(&server())).await;
}

#[tokio::test]
async fn a_lock_that_an_operator_ended_is_lost() {
    let server = server();
    let client = client(&server);
    let lock = client.lock(request()).await.unwrap().unwrap();
    let mut connection = server.connect();
    let path = format!("DELETE /v1/locks/{}", lock.fence());
    connection.send(&path, &[JSON], br#"{"reason":"stuck"}"#);
    let forced = connection.read_response();
    assert_eq!(forced.status, 200, "{forced:?}");
    assert_eq!(timeout(PATIENCE, lock.until_lost()).await.unwrap(), LeaseLoss::Forced);
}

#[tokio::test]
async fn a_lock_is_lost_at_its_end_if_the_server_is_gone() {
    let server = server();
    let lock = client(&server).lock(request()).await.unwrap().unwrap();
    drop(server);
    assert_eq!(timeout(PATIENCE, lock.until_lost()).await.unwrap(), LeaseLoss::Expired);
}

#[tokio::test]
async fn an_acquire_whose_answer_was_lost_gets_the_same_lease() {
    let server = server();
    let proxy = DroppingProxy::start(&server.address, 2);
    let client = builder(&proxy.address).build().unwrap();
    assert!(client.release(catraca::core::lock::LeaseId::from_bytes([1; 16])).await.is_ok());
    let granted = client.acquire(&request()).await.unwrap().unwrap();
    assert_eq!(proxy.lost(), 1);
    let stats = server.request("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["success"], &stats["active"]), (&1.into(), &1.into()), "{stats}");
    // The answer to this release is lost too, and the second one says that it had worked.
    assert_eq!(client.release(granted.id).await.unwrap(), ReleaseReply::Already);
    assert_eq!(proxy.lost(), 2);
}
