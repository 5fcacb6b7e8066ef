//! Times requests of one service. A request is built, answered and dropped on one thread, without a
//! runtime: every future must be ready at its first poll.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use axum::extract::ConnectInfo;
use http::{Request, Response, StatusCode};
use rustix::time::{ClockId, clock_gettime};
use tower::Service;

/// Clients that take turns.
const ADDRESSES: u32 = 1_000;

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Measures the CPU time of the thread.
    Time,
    /// Sends the requests only, for valgrind, under which the product's clock cannot be read.
    Send,
}

/// Nanoseconds per request; panics if a response does not have the expected status.
pub fn run_requests<S, B>(mut service: S, mode: Mode, requests: u64, expected: StatusCode) -> f64
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    // Every address has its counter, and where requests are to be denied, no unit is left.
    for client in 0..ADDRESSES {
        send(&mut service, client);
    }
    let start = cpu_ns(mode);
    for number in 0..requests {
        let client = (number % u64::from(ADDRESSES)) as u32;
        assert_eq!(send(&mut service, client), expected);
    }
    (cpu_ns(mode) - start) as f64 / requests as f64
}

/// The CPU time of this thread, so that other processes do not count.
fn cpu_ns(mode: Mode) -> i64 {
    if mode == Mode::Send {
        return 0;
    }
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn send<S, B>(service: &mut S, client: u32) -> StatusCode
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let peer = SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + client), 50_000));
    let mut request = Request::new(());
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    let Poll::Ready(Ok(response)) = pin!(service.call(request)).poll(&mut context) else {
        panic!("a response at the first poll")
    };
    response.status()
}
