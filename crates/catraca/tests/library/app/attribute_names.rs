//! Names of attributes that no caller sends are refused, with the nearest name.

use catraca::app::{FactMap, ListTargetText, NewListEntry};
use catraca::records::ListName;
use catraca::{App, AppError, BlockProposal, Catalog, Span, Subject};

use super::helpers::{ANA, CATALOG, RecordsFile, app_with};

fn entry(attribute: &str) -> NewListEntry {
    let target =
        ListTargetText::Value { attribute: attribute.to_owned(), value: "c-66".to_owned() };
    NewListEntry { namespace: None, target, until: None, reason: None, why: None }
}

async fn list(app: &App, list: ListName, attribute: &str) -> Result<(), AppError> {
    let entry = app.list_entry(&entry(attribute))?;
    app.add_to_list(&ANA, list, vec![(entry, None)], false).await.map(drop)
}

fn detail(error: AppError) -> (&'static str, String) {
    match error {
        AppError::Invalid { code, detail } => (code, detail),
        other => panic!("{other}"),
    }
}

/// Replaces the catalog by one that also counts by `customer`.
async fn add_customer(app: &App) {
    let catalog = format!("{CATALOG}\n[policy.api]\nby = ['customer']\nwindow = '1 per 1h'\n");
    app.engine().reload(Catalog::parse(&catalog).unwrap());
}

/// Regression: an entry under a misspelt name was accepted, and matched no caller.
#[tokio::test]
async fn an_entry_of_a_list_needs_an_attribute_that_the_catalog_names() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    add_customer(&app).await;
    for name in [ListName::Block, ListName::Allow] {
        let (code, detail) = detail(list(&app, name, "customr").await.unwrap_err());
        assert_eq!(code, "bad-entry");
        assert!(detail.contains("`customr`: did you mean `customer`?"), "{detail}");
        list(&app, name, "customer").await.unwrap();
    }
}

/// Callers do not send facts, and lists do not look them up.
#[tokio::test]
async fn an_entry_about_a_fact_is_refused() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let country = detail(list(&app, ListName::Block, "country").await.unwrap_err()).1;
    assert!(country.contains("`country` comes from `ip`"), "{country}");
    add_customer(&app).await;
    let gold = FactMap::from([("plan".to_owned(), "gold".to_owned())]);
    app.set_facts(&ANA, None, "customer", "c-66", gold).await.unwrap();
    let plan = detail(list(&app, ListName::Block, "plan").await.unwrap_err()).1;
    assert!(plan.contains("`plan` comes from `customer`"), "{plan}");
}

/// An entry stays in force if a later catalog does not name its attribute, and can be removed.
#[tokio::test]
async fn an_entry_whose_attribute_left_the_catalog_is_removed_as_before() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    add_customer(&app).await;
    list(&app, ListName::Block, "customer").await.unwrap();
    app.engine().reload(Catalog::parse(CATALOG).unwrap());
    let page = app.list_entries(ListName::Block, None, None, 9).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    assert!(list(&app, ListName::Block, "customer").await.is_err(), "no new entry");
    let target = entry("customer").target;
    app.remove_from_list(&ANA, ListName::Block, None, &target).await.unwrap();
}

/// Regression: a search under a misspelt name answered that there are no blocks.
#[tokio::test]
async fn a_search_needs_an_attribute_of_the_catalog_or_of_the_records() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let unknown = |error| {
        let (code, detail) = detail(error);
        assert_eq!(code, "bad-attribute");
        detail
    };
    let found = unknown(app.values_to_find("addr", "192.0.2.1").await.unwrap_err());
    assert!(found.contains("`addr`") && !found.contains("did you mean"), "{found}");
    add_customer(&app).await;
    let found = unknown(app.values_to_find("customr", "c-66").await.unwrap_err());
    assert!(found.contains("did you mean `customer`?"), "{found}");
    assert!(
        unknown(app.export(&ANA, None, "customr", "c-66").await.unwrap_err()).contains("customer")
    );
    assert!(
        unknown(app.erase(&ANA, None, "customr", "c-66").await.unwrap_err()).contains("customer")
    );
    assert!(app.values_to_find("country", "pt").await.is_err(), "no key contains a fact");

    let subject = Subject::from([("customer", "c-66")]);
    let proposal = BlockProposal::by_operator(Span::from_secs(60), None);
    app.block(&ANA, "default", "api", &subject, proposal).await.unwrap();
    app.engine().reload(Catalog::parse(CATALOG).unwrap());
    assert_eq!(app.values_to_find("customer", "c-66").await.unwrap()[0].value, "c-66");
}
