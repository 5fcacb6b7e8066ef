//! Decisions of the client: the same as those of an engine, and errors with their codes.

use catraca::core::credit_plan::CreditRejection;
use catraca::engine::Credit;
use catraca::settlement::SettleState;
use catraca::{
    Catalog, Check, CheckRef, Client, ClientError, Decision, Engine, Error, FailMode, Limiter,
    LimiterGate, Outcome, Settle, Subject,
};

use super::dropping_proxy::AnsweringServer;
use super::{CATALOG, builder, client};
use crate::keys::keygen;
use crate::test_server::TestServer;

/// What a program sees of a decision, without its instants and its ticket.
fn summary(decision: &Decision) -> String {
    let rows = decision.rows.iter();
    let rows = rows.map(|row| (row.policy.to_string(), row.charged, row.remaining, row.balance));
    format!(
        "{} {} {:?} {:?} {:?} {:?} {} {:?}",
        decision.allowed,
        decision.reason,
        decision.policy,
        decision.limit,
        decision.remaining,
        decision.retry_after.map(|wait| wait.ceil_secs()),
        decision.ticket.is_some(),
        rows.collect::<Vec<_>>(),
    )
}

fn payer<'a>() -> Subject<'a> {
    Subject::from([("payer", "a")])
}

/// A program over any limiter; returns what it saw.
async fn run_program(limiter: &impl Limiter) -> Result<Vec<String>, Error> {
    let mut seen = Vec::new();
    let login = Check::new("login", [("ip", "198.51.100.7")]);
    for _ in 0..4 {
        seen.push(summary(&limiter.check(&login).await?));
    }
    seen.push(summary(&limiter.peek(&Check::new("login", [("ip", "198.51.100.8")])).await?));
    let gate = LimiterGate::new(limiter, "login", ["ip"]);
    for _ in 0..3 {
        seen.push(summary(&gate.check(["198.51.100.9"]).await?));
    }
    seen.push(summary(&gate.peek([std::net::Ipv4Addr::LOCALHOST]).await?));
    for (reference, status) in [("E1", 200), ("E2", 404)] {
        let check = Check::new("lookup", payer()).reference(reference);
        let decision = limiter.check(&check).await?;
        seen.push(summary(&decision));
        let outcome = Outcome::status(status);
        let ticket = decision.ticket.unwrap();
        let settled = limiter.settle(&Settle::ticket(&ticket, &outcome)).await?;
        seen.push(format!("{:?} {:?}", settled.state, settled.rows));
        let check = CheckRef::Reference(reference, payer());
        let again = Settle { namespace: "default", check, outcome: &outcome };
        assert_eq!(limiter.settle(&again).await?.state, SettleState::Again);
        for event in ["payment", "payment"] {
            let subject = &payer();
            let call = Credit { namespace: "default", reference, event, subject };
            seen.push(format!("{:?}", limiter.credit(&call).await?));
        }
    }
    Ok(seen)
}

#[tokio::test]
async fn a_program_sees_the_same_decisions_in_process_and_on_a_server() {
    let engine = Engine::new(Catalog::parse(CATALOG).unwrap());
    let server = TestServer::with_catalog(CATALOG);
    let embedded = run_program(&engine).await.unwrap();
    let shared = run_program(&client(&server)).await.unwrap();
    assert_eq!(embedded, shared);
    let duplicate = format!("{:?}", Err::<(), _>(CreditRejection::Duplicate));
    assert!(embedded.contains(&duplicate), "{embedded:?}");
    assert!(embedded[3].starts_with("false blocked"), "{embedded:?}");
}

#[tokio::test]
async fn a_refused_call_has_the_code_and_the_text_of_the_server() {
    let server = TestServer::with_catalog(CATALOG);
    let client = builder(&server.address).fail(FailMode::Open).build().unwrap();
    let unknown = client.check(&Check::new("logn", [("ip", "::1")])).await;
    let Err(ClientError::Refused { status: 404, code, detail }) = unknown else {
        panic!("{unknown:?}");
    };
    assert_eq!(code, "unknown-gate");
    assert!(detail.contains("logn"), "{detail}");
    let unknown = Limiter::check(&client, &Check::new("logn", [("ip", "::1")])).await;
    let Err(Error::Refused(refusal)) = unknown else { panic!("{unknown:?}") };
    assert!(refusal.code() == "refused-by-server" && refusal.to_string().contains("unknown-gate"));
    let missing = client.check(&Check::new("login", Subject::new())).await.unwrap_err();
    assert_eq!(missing.code(), Some("missing-attribute"));
    let check = Check::new("login", [("ip", "::1")]).namespace("other");
    let namespace = client.check(&check).await.unwrap_err();
    assert!(matches!(namespace, ClientError::Namespace { .. }), "{namespace}");
    let settle = client.settle(&Settle::ticket("forged", &Outcome::status(200))).await;
    assert_eq!(settle.unwrap_err().code(), Some("bad-ticket"));
}

#[tokio::test]
async fn a_wrong_key_and_a_wrong_role_are_errors_in_every_fail_mode() {
    let reader = keygen(&["--role", "read", "--name", "dash"]);
    let checker = keygen(&["--role", "check", "--name", "shop"]);
    let tables = format!("{}{}", reader.table, checker.table);
    let server = TestServer::with_catalog(&format!("{CATALOG}{tables}"));
    let check = Check::new("login", [("ip", "::1")]);
    for key in [None, Some("catraca_wrong"), Some(reader.key.as_str())] {
        let mut builder = builder(&server.address).fail(FailMode::Open);
        if let Some(key) = key {
            builder = builder.key(key);
        }
        let refused = builder.build().unwrap().check(&check).await;
        assert!(matches!(refused, Err(ClientError::Unauthorized { .. })), "{key:?} {refused:?}");
    }
    let client = builder(&server.address).key(&checker.key).build().unwrap();
    assert!(client.check(&check).await.unwrap().allowed);
}

#[tokio::test]
async fn an_answer_of_another_program_is_incompatible() {
    let other = AnsweringServer::start("<html>hello</html>");
    let client: Client = builder(&other.address).build().unwrap();
    let answer = client.check(&Check::new("login", [("ip", "::1")])).await.unwrap_err();
    assert!(matches!(answer, ClientError::Incompatible { .. }), "{answer}");
}
