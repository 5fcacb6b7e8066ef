//! gRPC through the proxy: the four kinds of calls, their trailers, and rules about them.

use std::sync::Arc;

use hyper::http::uri::PathAndQuery;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status};

use super::grpc_service::{Client, GrpcUpstream, TextCodec, client};
use super::h2_helpers::{TlsProxy, catalog};

fn path(method: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(method)
}

async fn unary(client: &mut Client, text: &str) -> Result<String, Status> {
    client.ready().await.unwrap();
    let request = Request::new(text.to_owned());
    let response = client.unary(request, path("/test.Texts/Unary"), TextCodec).await?;
    Ok(response.into_inner())
}

/// The texts of a server stream, and how it ends.
async fn count(client: &mut Client, text: &str) -> (Vec<String>, Option<Status>) {
    client.ready().await.unwrap();
    let request = Request::new(text.to_owned());
    let response = client.server_streaming(request, path("/test.Texts/Count"), TextCodec).await;
    let mut stream = response.unwrap().into_inner();
    let mut texts = Vec::new();
    loop {
        match stream.message().await {
            Ok(Some(text)) => texts.push(text),
            Ok(None) => return (texts, None),
            Err(status) => return (texts, Some(status)),
        }
    }
}

#[test]
fn all_four_kinds_of_calls_pass() {
    let upstream = GrpcUpstream::start();
    let proxy = TlsProxy::start(&catalog("inflight = 1\nhold = '10m'", &upstream.url));
    let proxy = Arc::new(proxy);
    Runtime::new().unwrap().block_on(async {
        let mut client = client(Arc::clone(&proxy)).await;
        assert_eq!(unary(&mut client, "hello").await.unwrap(), "hello");

        client.ready().await.unwrap();
        let texts = tokio_stream::iter(["a", "b", "c"].map(str::to_owned));
        let joined =
            client.client_streaming(Request::new(texts), path("/test.Texts/Join"), TextCodec);
        assert_eq!(joined.await.unwrap().into_inner(), "abc");

        let (texts, status) = count(&mut client, "100").await;
        assert_eq!((texts.len(), status.is_none()), (100, true));

        // Each text is answered before the next one is sent: nothing waits in the proxy.
        client.ready().await.unwrap();
        let (sender, receiver) = mpsc::channel(1);
        let request = Request::new(ReceiverStream::new(receiver));
        sender.send("0".to_owned()).await.unwrap();
        let response = client.streaming(request, path("/test.Texts/Echo"), TextCodec).await;
        let mut answers = response.unwrap().into_inner();
        for number in 0..20 {
            assert_eq!(answers.message().await.unwrap().unwrap(), number.to_string());
            sender.send((number + 1).to_string()).await.unwrap();
        }
        assert_eq!(proxy.server.remaining_async("site").await, 0);
        drop(sender);
        assert_eq!(answers.message().await.unwrap().unwrap(), "20");
        assert!(answers.message().await.unwrap().is_none());
    });
    // Its lease is returned: every call was settled when it ended.
    proxy.server.wait_for_remaining("site", 1);
    assert_eq!(*upstream.te.lock(), ["trailers"; 4]);
}

#[test]
fn a_rule_reads_the_status_of_a_call() {
    let upstream = GrpcUpstream::start();
    let policy = "window = '99 per 1m'\n\
                  ban = [{ when = \"headers['grpc-status'] == '7'\", for = '10m' }]";
    for method in ["unary", "stream"] {
        let proxy = Arc::new(TlsProxy::start(&catalog(policy, &upstream.url)));
        Runtime::new().unwrap().block_on(async {
            let mut client = client(Arc::clone(&proxy)).await;
            assert_eq!(unary(&mut client, "allowed").await.unwrap(), "allowed");
            let status = match method {
                "unary" => unary(&mut client, "forbidden").await.unwrap_err(),
                // After three messages, so that the status is in the trailers.
                _ => count(&mut client, "3!").await.1.unwrap(),
            };
            assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
        });
        assert!(!proxy.server.peek("site").allowed, "{method}");
    }
}

#[test]
fn a_denied_call_is_an_error_that_names_the_status() {
    let upstream = GrpcUpstream::start();
    let proxy = Arc::new(TlsProxy::start(&catalog("window = '1 per 1h'", &upstream.url)));
    Runtime::new().unwrap().block_on(async {
        let mut client = client(Arc::clone(&proxy)).await;
        assert_eq!(unary(&mut client, "first").await.unwrap(), "first");
        let status = unary(&mut client, "second").await.unwrap_err();
        assert!(status.message().contains("429"), "{status:?}");
    });
    assert_eq!(upstream.te.lock().len(), 1);
}
