//! Acts of operators who name no namespace, while the records cannot be read.

use catraca::App;
use catraca::app::AppError;

use super::helpers::{ANA, RecordsFile, app_with, proposal, subject};

async fn act_namespace(app: &App, stated: Option<&str>, keys: &[&str]) -> Result<String, AppError> {
    app.act_namespace(stated, keys.iter().map(|name| (*name).to_owned()).collect()).await
}

/// Regression: the act was in `default`, and its answer a success, although the records know other
/// namespaces.
#[tokio::test]
async fn an_act_is_refused_while_it_is_unknown_which_namespaces_there_are() {
    let file = RecordsFile::new();
    let earlier = app_with(&file);
    earlier.block(&ANA, "blog", "login", &subject(), proposal(None)).await.unwrap();
    drop(earlier);
    file.fail_reads();
    let app = app_with(&file);
    let refused = act_namespace(&app, None, &[]).await.unwrap_err();
    assert!(matches!(refused, AppError::UnknownNamespaces), "{refused:?}");
    assert!(refused.to_string().contains("name one in `namespace`"), "{refused}");
    // A stated one is believed: an act must not fail because the records do.
    assert_eq!(act_namespace(&app, Some("blog"), &[]).await.unwrap(), "blog");
    let refused = act_namespace(&app, None, &["shop"]).await.unwrap_err().to_string();
    assert!(refused.contains("`default`, `shop`"), "{refused}");
}

#[tokio::test]
async fn what_was_read_before_an_outage_is_used_during_it() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    assert_eq!(act_namespace(&app, None, &[]).await.unwrap(), "default");
    file.fail_reads();
    assert_eq!(act_namespace(&app, None, &[]).await.unwrap(), "default");

    let file = RecordsFile::new();
    let app = app_with(&file);
    app.block(&ANA, "blog", "login", &subject(), proposal(None)).await.unwrap();
    assert!(act_namespace(&app, None, &[]).await.is_err());
    file.fail_reads();
    let refused = act_namespace(&app, None, &[]).await.unwrap_err().to_string();
    assert!(refused.contains("`blog`, `default`"), "{refused}");
}
