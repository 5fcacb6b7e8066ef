//! Serves a connection of a client that chose HTTP/2.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::handler;
use super::proxied_connection::ProxiedConnection;
use super::stream_phase::StreamExecutor;
use crate::listener::ConnectionStream;

/// The most requests of a connection at once.
const STREAMS_MAX: u32 = 100;
/// How much of a request may wait for its upstream: what a client of HTTP/2 has by default.
const STREAM_WINDOW: u32 = 64 << 10;
/// As much as all streams, so that an upstream that does not read a request cannot stop the others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_MAX;
/// The most requests that a client has reset before the proxy took them, and that the proxy has to
/// remember. The next one is a flood (CVE-2023-44487) and ends the connection.
const PENDING_RESETS_MAX: usize = 20;
/// The most requests of a connection that the proxy resets because they are not valid.
const INVALID_REQUESTS_MAX: usize = 1_024;
/// The largest head of a request in bytes.
const HEAD_BYTES_MAX: u32 = 16 << 10;
/// The most bytes of a response that wait for the client.
const SEND_BYTES_MAX: usize = 64 << 10;
/// How often a silent client is asked whether it is there, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves the requests of a connection until it ends.
pub async fn serve(stream: ConnectionStream, proxied: &Arc<ProxiedConnection>) {
    let connection = Arc::clone(proxied.connection());
    let shared = Arc::clone(proxied);
    let service = service_fn(move |request| {
        let response = handler::respond(request, Arc::clone(&shared));
        async move { Ok::<_, Infallible>(response.await) }
    });
    let server = Arc::clone(&proxied.proxy.context);
    let executor = StreamExecutor { connection: Arc::clone(&connection), server };
    let http = http2::Builder::new(executor)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_local_error_reset_streams(INVALID_REQUESTS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut http = pin!(http);
    let mut is_stopping = false;
    poll_fn(|cx| {
        connection.set_waker(cx.waker());
        if connection.is_closing() {
            return Poll::Ready(());
        }
        if connection.is_stopping() && !is_stopping {
            is_stopping = true;
            http.as_mut().graceful_shutdown();
        }
        // Errors are dropped: the peer hung up, and there is no response to send.
        http.as_mut().poll(cx).map(drop)
    })
    .await;
}
