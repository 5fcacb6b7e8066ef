//! Pix lookups: outcomes with a cost, debt, and credits for payments.

use super::{DICT, numbers, reasons, results};

const PF: &str = "11144477735";

fn lookup(at: i64, payer: &str, rest: &str) -> String {
    let subject = format!(r#"{{"participant":"12345678","payer":"{payer}"}}"#);
    format!(r#"{{"at":{at},"gate":"lookup","subject":{subject}{rest}}}"#)
}

fn payment(at: i64, reference: &str, payer: &str) -> String {
    let subject = format!(r#"{{"participant":"12345678","payer":"{payer}"}}"#);
    let credit = format!(r#"{{"ref":"{reference}","event":"payment","subject":{subject}}}"#);
    format!(r#"{{"at":{at},"credit":{credit}}}"#)
}

const FOUND: &str = r#","outcome":{"status":200}"#;
const NOT_FOUND: &str = r#","outcome":{"status":404}"#;

/// covers: B-19, 001-17, 001-14
#[test]
fn five_tokens_and_a_404_leave_a_debt_of_fifteen_and_eight_minutes() {
    let mut lines: Vec<_> = (0..95).map(|_| lookup(0, PF, FOUND)).collect();
    lines.push(lookup(0, PF, NOT_FOUND));
    lines.extend([lookup(0, PF, FOUND), lookup(479_999, PF, FOUND), lookup(480_000, PF, FOUND)]);
    let all = results(DICT, &lines);
    let settled = &all[95]["settled"]["policies"][0];
    assert_eq!((&settled["charged"], &settled["balance"]), (&20.into(), &(-15).into()));
    let tail = &all[96..];
    assert_eq!(reasons(tail), ["over_limit", "over_limit", "ok"]);
    assert_eq!(numbers(tail, "/retry_after_ms"), [Some(480_000), Some(1), None]);
    assert_eq!(tail[0]["policies"][0]["balance"], -15);
    assert_eq!(tail[0]["policy"], "user_antiscan");
}

/// covers: 001-01
#[test]
fn a_scan_stops_after_five_misses() {
    let lines: Vec<_> = (0..7).map(|_| lookup(0, PF, NOT_FOUND)).collect();
    let all = results(DICT, &lines);
    let stopped = ["ok", "ok", "ok", "ok", "ok", "over_limit", "over_limit"];
    assert_eq!(reasons(&all), stopped);
    assert_eq!(all[5]["settled"], serde_json::Value::Null);
}

/// covers: 001-25, X-02
#[test]
fn a_lookup_denied_by_one_bucket_is_charged_in_neither() {
    let mut lines: Vec<_> = (0..5).map(|_| lookup(0, PF, NOT_FOUND)).collect();
    lines.push(lookup(0, PF, FOUND));
    let all = results(DICT, &lines);
    let denied = &all[5];
    assert_eq!(denied["reason"], "over_limit");
    let both = [&denied["policies"][0], &denied["policies"][1]];
    assert_eq!(both.map(|row| &row["charged"]), [&0, &0]);
    assert_eq!(both.map(|row| &row["allowed"]), [&false, &true]);
    assert_eq!(both[1]["balance"], 50_000 - 5 * 3);
}

/// covers: X-05, 001-18, 001-19, 001-24, B-22
#[test]
fn a_payment_gives_back_once_to_whom_it_belongs() {
    let with_ref = |at, payer, reference: &str, rest: &str| {
        lookup(at, payer, &format!(r#","ref":"{reference}"{rest}"#))
    };
    let company = "12ABC34501DE35";
    let lines = [
        with_ref(0, PF, "E1", FOUND),
        with_ref(0, PF, "E2", NOT_FOUND),
        with_ref(0, PF, "E3", ""),
        with_ref(0, company, "E4", FOUND),
        with_ref(0, company, "E5", FOUND),
        payment(1, "E1", PF),
        payment(1, "E1", PF),
        payment(1, "E2", PF),
        payment(1, "E3", PF),
        payment(1, "E4", PF),
        payment(1, "E9", PF),
        payment(1, "E4", company),
    ];
    let credits = &results(DICT, &lines)[5..];
    let reasons: Vec<_> = credits.iter().map(|line| line["credit"]["reason"].as_str()).collect();
    let refused = ["duplicate", "not_creditable", "not_settled", "other_subject", "unknown"];
    assert_eq!(reasons[0], None);
    assert_eq!(reasons[1..6], refused.map(Some));
    let applied: Vec<_> = credits.iter().map(|line| line["credit"]["applied"] == true).collect();
    assert_eq!(applied, [true, false, false, false, false, false, true]);
    let given = &credits[6]["credit"]["policies"];
    assert_eq!((&given[0]["policy"], &given[0]["amount"]), (&"user_antiscan".into(), &2.into()));
    assert_eq!(given[1]["amount"], 1);
}

#[test]
fn a_category_chooses_the_bucket() {
    let small = lookup(0, PF, "").replace("12345678", "87654321");
    let all = results(DICT, &[lookup(0, PF, ""), small]);
    assert_eq!(numbers(&all, "/policies/1/limit"), [Some(50_000), Some(50)]);
}
