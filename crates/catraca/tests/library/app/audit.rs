//! The audit of operators' acts: the reasons that it gets, and those that are refused.

use catraca::AppError;
use catraca::app::TEXT_MAX;
use catraca::records::Operator;

use super::every_act::{set_up, state, try_every_act};
use super::helpers::{ANA, RecordsFile, app_with, proposal, subject};

#[tokio::test]
async fn a_block_is_audited_with_its_reason_if_the_operator_gives_none() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    for why in [None, Some(""), Some("case 7")] {
        let blocked = app
            .block(
                &Operator { why, ..ANA },
                "default",
                "login",
                &subject(),
                proposal(Some("fraud")),
            )
            .await
            .unwrap();
        assert!(blocked.durable);
        let reset = app.reset(&ANA, "default", "login", &subject()).await.unwrap();
        assert!(reset.durable);
    }
    let rows = file.audit();
    let blocks = rows.iter().filter(|row| row.act == "block");
    let reasons: Vec<_> = blocks.map(|row| row.why.as_deref()).collect();
    assert_eq!(reasons, [Some("fraud"), Some("fraud"), Some("case 7")]);
}

#[tokio::test]
async fn a_reason_that_is_too_long_is_refused_and_changes_nothing() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    app.block(&ANA, "default", "login", &subject(), proposal(None)).await.unwrap();
    set_up(&app);
    let state_before = state(&app).await;
    let audit_before = file.audit();
    let long = "x".repeat(TEXT_MAX + 1);
    for (act, result) in try_every_act(&app, &Operator { why: Some(&long), ..ANA }).await {
        assert!(
            matches!(result, Err(AppError::Invalid { code: "text-too-long", .. })),
            "{act}: {result:?}"
        );
    }
    let refused = app.block(&ANA, "default", "login", &subject(), proposal(Some(&long))).await;
    assert!(matches!(refused, Err(AppError::Invalid { code: "text-too-long", .. })));
    assert_eq!(state(&app).await, state_before);
    assert_eq!(file.audit(), audit_before);
    // Characters, not bytes.
    let longest = "é".repeat(TEXT_MAX);
    for (act, result) in try_every_act(&app, &Operator { why: Some(&longest), ..ANA }).await {
        assert!(result.is_ok(), "{act}: {result:?}");
    }
    assert_ne!(state(&app).await, state_before);
}

#[tokio::test]
async fn a_reason_that_cannot_be_stored_is_refused() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let refused = app
        .block(
            &Operator { why: Some("a\0b"), ..ANA },
            "default",
            "login",
            &subject(),
            proposal(None),
        )
        .await;
    assert!(matches!(refused, Err(AppError::Call(_))), "{refused:?}");
    assert_eq!(file.audit(), []);
}
