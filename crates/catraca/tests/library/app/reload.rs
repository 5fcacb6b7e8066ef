//! A reload records the revision, the changes, and who made them.

use catraca::app::{CatalogChange, FactMap, ReloadedCatalog};
use catraca::{App, Catalog, ManualClock, Span};

use super::helpers::{
    ANA, CATALOG, IP, RecordsFile, START, app_with, app_with_clock, app_without_records, check,
    proposal, subject,
};

/// A catalog with one policy more.
fn larger_catalog() -> Catalog {
    let search = "[policy.search]\nby = ['ip']\nwindow = '1 per 1m'";
    Catalog::parse(&format!("{CATALOG}\n{search}")).unwrap()
}

/// Reloads as an operator, on a thread for blocking work: a reload waits for the disk.
async fn reload(app: &App, catalog: Catalog, requires_keys: bool) -> ReloadedCatalog {
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
    assert!(reload(&app, larger_catalog(), false).await.durable);
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

/// Regression: if the server saw the changed files first, the reason of a reload was lost.
#[tokio::test]
async fn a_reload_of_what_is_in_force_is_audited_with_its_reason() {
    let file = RecordsFile::new();
    let clock = ManualClock::at(START);
    let app = app_with_clock(&file, &clock);
    clock.advance(Span::from_secs(60));
    let by_watcher = app.clone();
    let reloaded = tokio::task::spawn_blocking(move || {
        let catalog = larger_catalog();
        let why = "the files changed";
        by_watcher.reload(CatalogChange {
            catalog,
            changes: &[],
            requires_keys: false,
            by: None,
            why,
        })
    });
    assert_eq!(reloaded.await.unwrap().in_force_since, None);
    let reloads = || file.audit().into_iter().filter(|row| row.act == "reload").collect::<Vec<_>>();
    assert_eq!(reloads(), [], "files have no operator");
    clock.advance(Span::from_secs(60));
    let reloaded = reload(&app, larger_catalog(), false).await;
    let since = START.after(Span::from_secs(60));
    assert_eq!(reloaded, ReloadedCatalog { in_force_since: Some(since), durable: true });
    let [act] = &reloads()[..] else { panic!("{:?}", file.audit()) };
    assert_eq!((&*act.by, &*act.act, act.why.as_deref()), ("ana", "reload", Some("case 7")));
    let target = format!("revision {}, in force since {since}", larger_catalog().revision);
    assert_eq!(act.target, target);
}

#[tokio::test]
async fn the_same_revision_records_only_the_reload_and_that_keys_are_needed() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    assert!(reload(&app, Catalog::parse(CATALOG).unwrap(), true).await.durable);
    assert_eq!(file.records.revisions(9).unwrap(), []);
    assert!(file.records.keys_required().unwrap());
    let acts: Vec<_> = file.audit().into_iter().map(|row| row.act).collect();
    assert_eq!(acts, ["reload", "auth"]);
}

/// Such a fact is not lost: it counts again when a later catalog frees its name.
#[tokio::test]
async fn facts_whose_name_the_catalog_takes_are_counted() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let gold = FactMap::from([("plan".to_owned(), "gold".to_owned())]);
    app.set_facts(&ANA, None, "ip", IP, gold).await.unwrap();
    assert_eq!(app.engine().ignored_facts(), 0);
    let by_plan = CATALOG.replacen("by     = [\"ip\"]", "by     = [\"ip\", \"plan\"]", 1);
    reload(&app, Catalog::parse(&by_plan).unwrap(), false).await;
    assert_eq!(app.engine().ignored_facts(), 1);
    reload(&app, larger_catalog(), false).await;
    assert_eq!(app.engine().ignored_facts(), 0);
    assert_eq!(app.facts_about(None, "ip", IP).unwrap()["plan"], "gold");
}

#[tokio::test]
async fn without_records_it_applies_and_is_not_on_disk() {
    let app = app_without_records();
    assert!(!reload(&app, larger_catalog(), false).await.durable);
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
