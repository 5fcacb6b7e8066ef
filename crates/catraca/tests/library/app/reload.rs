//! A reload records the revision, the changes, and who made them.

use catraca::app::{CatalogChange, FactMap};
use catraca::{App, Catalog};

use super::helpers::{
    ANA, CATALOG, IP, RecordsFile, app_with, app_without_records, check, proposal, subject,
};

/// A catalog with one policy more.
fn larger_catalog() -> Catalog {
    let search = "[policy.search]\nby = ['ip']\nwindow = '1 per 1m'";
    Catalog::parse(&format!("{CATALOG}\n{search}")).unwrap()
}

/// Reloads as an operator, on a thread for blocking work: a reload waits for the disk.
async fn reload(app: &App, catalog: Catalog, requires_keys: bool) -> bool {
    let app = app.clone();
    let reload = move || {
        let changes = ["policy search is new".to_owned(), "policy pay is cheaper".to_owned()];
        let by = Some("ana");
        let why = "case 7";
        app.reload(CatalogChange { catalog, changes: &changes, requires_keys, by, why })
    };
    tokio::task::spawn_blocking(reload).await.unwrap()
}

#[tokio::test]
async fn the_revision_and_each_change_are_recorded() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let revision = larger_catalog().revision;
    assert!(reload(&app, larger_catalog(), false).await);
    assert!(check(&app, "search").await.allowed);
    let [row] = &file.records.revisions(9).unwrap()[..] else { panic!() };
    assert_eq!(
        (&*row.revision, row.policies, row.by.as_deref()),
        (&*revision, Some(3), Some("ana"))
    );
    let audit = file.audit();
    let changes: Vec<_> =
        audit.iter().filter(|row| row.act == "change").map(|row| &*row.target).collect();
    assert_eq!(changes, ["policy search is new", "policy pay is cheaper"]);
    assert!(audit.iter().all(|row| row.by == "ana" && row.why.as_deref() == Some("case 7")));
    assert!(!file.records.keys_required().unwrap());
}

#[tokio::test]
async fn the_same_revision_records_only_that_keys_are_needed() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    assert!(reload(&app, Catalog::parse(CATALOG).unwrap(), false).await);
    assert_eq!((file.records.revisions(9).unwrap(), file.audit()), (vec![], vec![]));
    assert!(reload(&app, Catalog::parse(CATALOG).unwrap(), true).await);
    assert_eq!(file.records.revisions(9).unwrap(), []);
    assert!(file.records.keys_required().unwrap());
}

/// Such a fact is not lost: it counts again when a later catalog frees its name.
#[tokio::test]
async fn facts_whose_name_the_catalog_takes_are_counted() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let gold = FactMap::from([("plan".to_owned(), "gold".to_owned())]);
    app.set_facts(&ANA, "ip", IP, gold).await.unwrap();
    assert_eq!(app.engine().ignored_facts(), 0);
    let by_plan = CATALOG.replacen("by     = [\"ip\"]", "by     = [\"ip\", \"plan\"]", 1);
    reload(&app, Catalog::parse(&by_plan).unwrap(), false).await;
    assert_eq!(app.engine().ignored_facts(), 1);
    reload(&app, larger_catalog(), false).await;
    assert_eq!(app.engine().ignored_facts(), 0);
    assert_eq!(app.facts_about("ip", IP).unwrap()["plan"], "gold");
}

#[tokio::test]
async fn without_records_it_applies_and_is_not_on_disk() {
    let app = app_without_records();
    assert!(!reload(&app, larger_catalog(), false).await);
    assert!(check(&app, "search").await.allowed);
}

/// The blocks that another catalog would orphan are known before it is applied.
#[tokio::test]
async fn blocks_that_a_catalog_orphans_are_counted_with_the_reason() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    app.block(&ANA, "default", "login", &subject(), proposal(None)).await.unwrap();
    let orphaned = |text: &str| app.orphaned_by(&Catalog::parse(text).unwrap()).unwrap();
    assert_eq!(orphaned(CATALOG).count, 0);
    let by_user = CATALOG.replace("by     = [\"ip\"]", "by     = [\"user\"]");
    let found = orphaned(&by_user);
    assert_eq!((found.count, found.first.len()), (1, 1));
    let (row, why) = &found.first[0];
    assert_eq!(row.subject.parts, [("ip".to_owned(), IP.to_owned())]);
    assert_eq!(why.to_string(), "the policy counts by other attributes");
    assert_eq!(orphaned("[policy.pay]\nby = ['ip']\nwindow = '1 per 1h'").count, 1);
}
