//! Tokens of a language model: a request reserves 500 of them, and pays those of its answer, which
//! are known only when the answer has been streamed.
//!
//! `cargo run -p catraca --features axum --example llm_tokens`

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::routing::post;
use axum::{Extension, Router};
use bytes::Bytes;
use catraca::tower::{OutcomeReport, RateLimitLayer};
use catraca::{Catalog, Engine};
use http_body::Frame;
use tokio::sync::mpsc::{Receiver, channel};

const CATALOG: &str = r#"
[policy.tokens]
by      = ["tenant"]
bucket  = { size = 2_000, refill = "2_000 per 1m" }
cost    = "reported"
reserve = 500
debt    = true                 # an answer of more than what is left is paid later
"#;

fn application<L: catraca::Limiter + 'static>(limiter: L) -> Router {
    let limit = RateLimitLayer::new(limiter, "tokens").by_header("tenant", "x-tenant");
    Router::new().route("/complete", post(complete)).layer(limit)
}

/// Streams an answer. Its cost is reported before its last part is sent.
async fn complete(Extension(report): Extension<OutcomeReport>, prompt: String) -> Body {
    let (sender, receiver) = channel(1);
    tokio::spawn(async move {
        let mut tokens = 0;
        for word in prompt.split_inclusive(' ') {
            tokens += 100;
            report.cost(tokens);
            if sender.send(Bytes::from(word.to_owned())).await.is_err() {
                return; // The client is gone, and pays for what was generated.
            }
        }
    });
    Body::new(TokenStream(receiver))
}

/// The parts of an answer, as a body.
struct TokenStream(Receiver<Bytes>);

impl http_body::Body for TokenStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new(Catalog::parse(CATALOG)?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, application(engine)).await?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::{Request, StatusCode};
    use catraca::{Check, ManualClock};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn an_answer_costs_its_tokens() -> Result<(), Box<dyn std::error::Error>> {
        let clock = ManualClock::default();
        let engine = Engine::builder(Catalog::parse(CATALOG)?).clock(clock).build();
        let engine = Arc::new(engine);
        let application = application(engine.clone());
        let send = |prompt: &'static str| {
            let request = Request::post("/complete").header("x-tenant", "acme");
            application.clone().oneshot(request.body(Body::from(prompt)).unwrap())
        };
        let left =
            || engine.peek(&Check::new("tokens", [("tenant", "acme")])).unwrap().rows[0].balance;

        let answer = send("one two three").await?;
        assert_eq!(left(), Some(1_500), "the reserve is held while the answer is streamed");
        assert_eq!(answer.into_body().collect().await?.to_bytes(), "one two three");
        assert_eq!(left(), Some(1_700), "three words of 100 tokens");

        let long = send("a b c d e f g h i j k l m n o p q r s t").await?;
        long.into_body().collect().await?;
        assert_eq!(left(), Some(-300));
        assert_eq!(send("one").await?.status(), StatusCode::TOO_MANY_REQUESTS);
        Ok(())
    }

    #[tokio::test]
    async fn a_client_that_leaves_pays_for_what_was_generated()
    -> Result<(), Box<dyn std::error::Error>> {
        let clock = ManualClock::default();
        let engine = Engine::builder(Catalog::parse(CATALOG)?).clock(clock).build();
        let engine = Arc::new(engine);
        let request = Request::post("/complete").header("x-tenant", "acme");
        let request = request.body(Body::from("a b c d e f g h"))?;
        let mut body = application(engine.clone()).oneshot(request).await?.into_body();
        body.frame().await.ok_or("a part")??;
        body.frame().await.ok_or("a part")??;
        drop(body);
        let check = Check::new("tokens", [("tenant", "acme")]);
        let left = engine.peek(&check)?.rows[0].balance.ok_or("a balance")?;
        // The channel holds one part more than were received.
        assert!((1_600..=1_800).contains(&left), "{left}");
        Ok(())
    }
}
