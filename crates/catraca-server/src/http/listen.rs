//! The listener: accept, serve, and stop without losing an answer.
//!
//! Without keys only loopback is served; any other address is refused by name. Must not queue
//! without bound.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, Response};
use bytes::Bytes;
use catraca::Engine;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use super::{Front, body, check, router};

/// Connections served at once; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 8_192;
/// How long a request's head may take, and an idle connection stay.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// How long answers in flight may take after a stop.
const DRAIN: Duration = Duration::from_secs(10);

/// A listener that is bound and not yet serving.
pub struct Server {
    listener: TcpListener,
    front: Front,
}

/// Binds an address; without keys it must be loopback.
pub async fn bind(address: SocketAddr, front: Front) -> anyhow::Result<Server> {
    if !address.ip().is_loopback() {
        bail!(
            "{address} can be reached by others, and there are no keys yet to tell them apart; \
             listen on a loopback address such as 127.0.0.1:{}",
            address.port()
        );
    }
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    Ok(Server { listener, front })
}

impl Server {
    /// The address it listens on.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is done, then lets answers in flight finish.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let router = router::router(self.front.clone());
        let mut stop = std::pin::pin!(stop);
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
            let (stream, peer) = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    // Out of descriptors, most likely: wait for one to come free.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
                () = &mut stop => break,
            };
            let served = connection(stream, peer, self.front.clone(), router.clone());
            let watched = graceful.watch(served);
            tokio::spawn(async move {
                // A peer that hangs up in the middle is its own business.
                let _ = watched.await;
                drop(place);
            });
        }
        let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    front: Front,
    router: axum::Router,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    // Small answers must leave at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let (front, router) = (front.clone(), router.clone());
        async move { Ok::<_, Infallible>(respond(request, peer, front, router).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .serve_connection(TokioIo::new(stream), service)
}

/// The check is answered here; everything else goes to the router.
async fn respond(
    request: Request<Incoming>,
    peer: SocketAddr,
    front: Front,
    router: axum::Router,
) -> Response<Either<Full<Bytes>, Body>> {
    if request.uri().path() == "/v1/check" && request.method() == Method::POST {
        let answer = match body::read(request.into_body()).await {
            Ok(body) => check::answer(&front.engine, &body, Engine::check),
            Err(problem) => problem.answer(),
        };
        return answer.map(Either::Left);
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    match router.oneshot(request).await {
        Ok(answer) => answer.map(Either::Right),
        Err(never) => match never {},
    }
}
