//! Tests that a report is well formed and self-contained, escapes text, and has the run's figures.

use std::io::Cursor;
use std::sync::Arc;

use catraca::{MemoryOptions, Secret};
use catraca_replay::simulate::{
    ChangedSubject, DecisionChanges, HistoryFormat, Outputs, ReplayEngine, Source, default_threads,
    replay,
};

use super::*;

const CATALOG: &str = r#"
    [policy.demo]
    by     = ["user"]
    window = "2 per 1m"
    block  = "5m"
"#;

fn labels(other: &str) -> ReportLabels {
    let history = "<script>alert(1)</script>.jsonl".to_owned();
    ReportLabels { history, catalog: "a\"b.toml".to_owned(), other: other.to_owned() }
}

fn lines(who: &str) -> String {
    let line = |at: i64| {
        let user = serde_json::Value::from(who);
        format!(r#"{{"at":{at},"gate":"demo","subject":{{"user":{user}}}}}"#)
    };
    (0..5).map(|second| line(second * 1_000) + "\n").collect()
}

fn engine(catalog: &str) -> ReplayEngine {
    let catalog = catraca::Catalog::parse(catalog).unwrap();
    ReplayEngine::new(catalog, MemoryOptions::default(), Secret::from_bytes([7; 32]), false)
}

fn data(catalog: &str, who: &str) -> SummaryData {
    let engine = engine(catalog);
    let source = Source::from_reader(Cursor::new(lines(who)), Arc::new(())).unwrap();
    let mut outputs = Outputs::<Vec<u8>> { summary: Some(engine.summary()), json: None };
    replay(source, &HistoryFormat::Events, &engine, &mut outputs, default_threads()).unwrap();
    outputs.summary.unwrap().data()
}

/// Asserts that elements are closed in order; self-closing ones are skipped.
fn assert_well_formed(page: &str) {
    let body = page.split_once("</style>").unwrap().1;
    let mut open = vec!["html", "head"];
    for tag in body.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect(tag);
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn hostile_texts_stay_texts() {
    let who = "<img src=x onerror=alert(1)>\"'&\u{202e}\u{1b}";
    let page = page(&labels(""), &data(CATALOG, who));
    assert_well_formed(&page);
    let safe = "user=&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;\u{fffd}\u{fffd}";
    assert!(page.contains(safe), "{page}");
    for bad in ["<script", "<img", "a\"b.toml", "\u{202e}"] {
        assert!(!page.contains(bad), "{bad}");
    }
}

#[test]
fn a_page_loads_nothing() {
    let page = page(&labels(""), &data(CATALOG, "u"));
    let policy = "content=\"default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;";
    assert!(page.contains(policy), "{page}");
    for loader in ["src=", "href=", "url(", "@import", "http://", "https://", "<link", "<script"] {
        assert!(!page.contains(loader), "{loader}");
    }
}

#[test]
fn figures_are_those_of_the_run() {
    let page = page(&labels(""), &data(CATALOG, "u"));
    assert!(page.contains("<b>3</b> of 5 decisions are denials."), "{page}");
    assert!(page.contains("1 denied over the limit, 1 block started</title>"), "{page}");
    assert_eq!(page.matches("1 denied while blocked</title>").count(), 4, "{page}");
}

#[test]
fn private_values_are_pseudonyms() {
    let private = format!("{CATALOG}\n[attribute.user]\nprivate = true\n");
    let page = page(&labels(""), &data(&private, "anna-maria"));
    assert!(page.contains("user=~") && !page.contains("anna-maria"), "{page}");
}

#[test]
fn a_comparison_shows_both_sides_and_whom_it_moves() {
    let before = data(CATALOG, "u<b>");
    let after = data(&CATALOG.replace("2 per", "4 per"), "u<b>");
    let subject =
        ChangedSubject { policy: "demo".to_owned(), who: "user=u<b>".to_owned(), times: 2 };
    let newly_allowed = DecisionChanges { requests: 2, subjects: vec![subject] };
    let newly_denied = DecisionChanges::default();
    let all = Comparison { before, after, newly_denied, newly_allowed };
    let page = comparison(&labels("new.toml"), &all);
    assert_well_formed(&page);
    let terms = "<del>window 2 per 1m, block 5m</del> → <ins>window 4 per 1m, block 5m</ins>";
    assert!(page.contains(terms), "{page}");
    assert!(page.contains("2 requests</b> that were denied pass, and <b class=\"n-b\">0 requests"));
    assert!(page.contains("demo  user=u&lt;b&gt;"));
    assert!(page.contains("<span class=\"was\">3</span> → <b>1</b>"), "{page}");
}

#[test]
fn a_history_without_events_has_a_page_too() {
    let page = page(&labels(""), &engine(CATALOG).summary().data());
    assert_well_formed(&page);
    assert!(page.contains("No request is denied."));
}
