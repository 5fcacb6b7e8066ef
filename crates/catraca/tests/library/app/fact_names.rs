//! The name of a fact is about one attribute in all namespaces, or about one in each of them.

use std::collections::BTreeMap;

use catraca::Catalog;
use catraca::app::FactMap;

use super::helpers::{ANA, CATALOG, RecordsFile, app_with};

fn region(name: &str) -> FactMap {
    FactMap::from([("region".to_owned(), name.to_owned())])
}

/// Regression: a fact of all namespaces made those of a namespace ineffective, and nothing said so.
#[tokio::test]
async fn a_fact_of_all_namespaces_says_which_facts_it_makes_ineffective() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let catalog = format!("{CATALOG}\n[attribute.customer]\n[attribute.site]\n");
    app.engine().reload(Catalog::parse(&catalog).unwrap());
    for customer in ["c-1", "c-2"] {
        let set = app.set_facts(&ANA, Some("shop"), "customer", customer, region("eu"));
        assert!(set.await.unwrap().ignored.is_empty());
    }
    let same = app.set_facts(&ANA, Some("blog"), "site", "s-1", region("us")).await.unwrap();
    assert!(same.ignored.is_empty());
    let in_shop = || app.facts_in_namespace("shop", "customer", "c-1").unwrap();
    assert_eq!(in_shop(), region("eu"));

    let set = app.set_facts(&ANA, None, "site", "s-1", region("br")).await.unwrap();
    assert_eq!(set.ignored, BTreeMap::from([("shop".to_owned(), 2)]));
    assert_eq!(in_shop(), FactMap::new());
    assert_eq!(app.facts_in_namespace("blog", "site", "s-1").unwrap(), region("us"));
    assert_eq!(app.engine().ignored_facts(), 2);

    app.forget_facts(&ANA, None, "site", "s-1").await.unwrap();
    assert_eq!(in_shop(), region("eu"), "the name is free again");
}
