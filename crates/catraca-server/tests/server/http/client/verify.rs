//! Mistakes in the configuration of a client, and the header that names it.

use super::{CATALOG, builder, client};
use crate::keys::keygen;
use crate::test_server::TestServer;

#[tokio::test]
async fn mistakes_are_named_and_a_correct_client_has_none() {
    let reader = keygen(&["--role", "read", "--name", "dash"]);
    let checker = keygen(&["--role", "check", "--name", "shop"]);
    let tables = format!("{}{}", reader.table, checker.table);
    let server = TestServer::with_catalog(&format!("{CATALOG}{tables}"));
    let shop = builder(&server.address).key(&checker.key).caller("shop/1.4").build().unwrap();
    assert_eq!(shop.verify(&["login", "lookup", "free"]).await.unwrap(), []);
    let dash = builder(&server.address).key(&reader.key).build().unwrap();
    let warnings = dash.verify(&["login", "logn"]).await.unwrap();
    let names: Vec<&str> = warnings.iter().map(|warning| warning.name()).collect();
    assert_eq!(names, ["wrong-role", "unknown-gate"]);
    assert!(warnings[1].to_string().contains("`logn`"));
    let stranger = builder(&server.address).key("catraca_wrong").build().unwrap();
    assert!(stranger.verify(&["login"]).await.is_err());
}

#[tokio::test]
async fn a_gate_that_only_the_default_policy_decides_is_unknown() {
    let server = TestServer::with_catalog(&format!("default = 'free'\n{CATALOG}"));
    let warnings = client(&server).verify(&["login", "undeclared"]).await.unwrap();
    let names: Vec<&str> = warnings.iter().map(|warning| warning.name()).collect();
    assert_eq!(names, ["unknown-gate"]);
}

#[tokio::test]
async fn a_key_of_one_namespace_finds_unknown_gates_too() {
    let shop = keygen(&["--role", "check", "--name", "shop", "--namespace", "shop"]);
    let server = TestServer::with_catalog(&format!("{CATALOG}{}", shop.table));
    let client = builder(&server.address).key(&shop.key).build().unwrap();
    let warnings = client.verify(&["login", "logn"]).await.unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].to_string().contains("`logn`"));
}
