//! Tests of log lines as servers write them, and of invalid ones.

use catraca::Time;

use super::*;

fn combined_line(line: &str) -> Result<LogRequest<'_>, String> {
    combined::read(line.as_bytes(), true, &mut LastTime::default())
}

fn json_line<'a>(line: &'a str, fields: &[&str]) -> Result<LogRequest<'a>, String> {
    let fields: Vec<_> = fields.iter().map(|field| Field::parse(field).unwrap()).collect();
    let headers = ["user-agent", "x-forwarded-for", "x-tenant-id"].map(str::to_owned);
    json_log::read(line.as_bytes(), &fields::tree(&fields, &headers))
}

fn at(text: &str) -> Time {
    Time::parse_rfc3339(text).unwrap()
}

fn request<'a>(logged: &'a LogRequest<'_>) -> Option<(&'a str, &'a str)> {
    logged.request.as_ref().map(|(method, target)| (&**method, &**target))
}

fn header<'a>(logged: &'a LogRequest<'_>, name: &str) -> Vec<&'a str> {
    let mine = logged.headers.iter().filter(|(own, _)| own == name);
    mine.map(|(_, value)| &**value).collect()
}

#[test]
fn the_combined_format_is_read_and_the_common_one_too() {
    let line = format!(
        "{} {}",
        r#"198.51.100.7 - anna [06/Jan/2026:09:00:01 +0100] "GET /a?b=c HTTP/1.1" 404 12"#,
        r#""https://x.org/" "Firefox" 0.003"#
    );
    let logged = combined_line(&line).unwrap();
    assert_eq!(logged.time, at("2026-01-06T08:00:01Z"));
    assert_eq!((&*logged.ip, logged.status), ("198.51.100.7", Some(404)));
    assert_eq!(request(&logged), Some(("GET", "/a?b=c")));
    assert_eq!(header(&logged, "user-agent"), ["Firefox"]);
    let common = r#"2001:db8::7 - - [31/Dec/2025:23:59:59 -0330] "POST /x HTTP/2.0" 200 -"#;
    let logged = combined_line(common).unwrap();
    assert_eq!(logged.time, at("2026-01-01T03:29:59Z"));
    assert_eq!((request(&logged), logged.headers.len()), (Some(("POST", "/x")), 0));
}

#[test]
fn names_with_spaces_and_brackets_and_escaped_quotes_do_not_confuse() {
    let line = format!(
        "{} {}",
        r#"::1 - anna [x] b [06/Jan/2026:09:00:01 +0000] "GET /\"q\x22\\ HTTP/1.1""#,
        r#"200 5 "-" "a \"b\" [c]""#
    );
    let logged = combined_line(&line).unwrap();
    assert_eq!(request(&logged), Some(("GET", "/\"q\"\\")));
    assert_eq!(header(&logged, "user-agent"), ["a \"b\" [c]"]);
    assert!(header(&logged, "referer").is_empty());
}

#[test]
fn a_line_without_a_valid_request_is_still_a_check() {
    for request_line in ["-", "", r"\x16\x03\x01", "GET", "hello world this is no method/1"] {
        let line =
            format!(r#"::1 - - [06/Jan/2026:09:00:01 +0000] "{request_line}" 400 0 "-" "-""#);
        let logged = combined_line(&line).unwrap();
        let expected =
            (request_line.starts_with("hello")).then_some(("hello", "world this is no method/1"));
        assert_eq!(request(&logged), expected, "{request_line}");
    }
    let absolute =
        r#"::1 - - [06/Jan/2026:09:00:01 +0000] "GET http://a.org/b/c?d HTTP/1.1" 200 0"#;
    assert_eq!(request(&combined_line(absolute).unwrap()), Some(("GET", "/b/c?d")));
}

#[test]
fn a_line_that_is_no_log_says_what_is_missing_and_shows_nothing_of_it() {
    for (line, missing) in [
        ("secret", "a time such as"),
        ("::1 - - [06/Jan/2026:09:00:01 +0000] secret", "the request in quotes"),
        (r#"::1 - - [06/Jan/2026:09:00:01 +0000] "GET / HTTP/1.1"#, "the request in quotes"),
        (r#"::1 - - [06/Jan/2026:09:00:01 +0000] "GET / HTTP/1.1" secret"#, "a status"),
        (r#"::1 - - [06/Foo/2026:09:00:01 +0000] "GET / HTTP/1.1" 200 1"#, "the time is invalid"),
        (r#"::1 - - [31/Feb/2026:09:00:01 +0000] "GET / HTTP/1.1" 200 1"#, "the time is invalid"),
    ] {
        let error = combined_line(line).unwrap_err();
        assert!(error.contains(missing) && !error.contains("secret"), "{line}: {error}");
    }
    assert!(combined::read(b"\xff", true, &mut LastTime::default()).unwrap_err().contains("UTF-8"));
}

#[test]
fn caddys_lines_need_no_field() {
    let line = r#"{"level":"info","ts":1767690001.53125,"logger":"http.log.access",
        "msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"41342",
        "client_ip":"198.51.100.7","proto":"HTTP/2.0","method":"GET","host":"localhost",
        "uri":"/a?b","headers":{"User-Agent":["curl/8"],"X-Forwarded-For":["a","b"]},
        "tls":{"resumed":false}},"duration":0.001,"size":3,"status":200,
        "resp_headers":{"Server":["Caddy"]}}"#;
    let logged = json_line(line, &[]).unwrap();
    assert_eq!(logged.time, Time::from_micros(1_767_690_001_531_250));
    assert_eq!((&*logged.ip, logged.status), ("198.51.100.7", Some(200)));
    assert_eq!(request(&logged), Some(("GET", "/a?b")));
    assert_eq!(header(&logged, "user-agent"), ["curl/8"]);
    assert_eq!(header(&logged, "x-forwarded-for"), ["a", "b"]);
}

#[test]
fn nginxs_and_traefiks_lines_need_no_field() {
    let nginx = r#"{"time_local":"06/Jan/2026:09:00:01 +0000","msec":"1767690001.250",
        "remote_addr":"198.51.100.7","request":"GET /a HTTP/1.1","status":"404",
        "http_user_agent":"x","http_x_tenant_id":"t1"}"#;
    let logged = json_line(nginx, &[]).unwrap();
    assert_eq!(logged.time, at("2026-01-06T09:00:01.250Z"));
    assert_eq!((request(&logged), logged.status), (Some(("GET", "/a")), Some(404)));
    assert_eq!(header(&logged, "x-tenant-id"), ["t1"]);
    let split = r#"{"time_iso8601":"2026-01-06T10:00:01+01:00","remote_addr":"::1",
        "request_method":"PUT","request_uri":"/b","status":"-"}"#;
    let logged = json_line(split, &[]).unwrap();
    assert_eq!((logged.time, logged.status), (at("2026-01-06T09:00:01Z"), None));
    let traefik = r#"{"ClientHost":"198.51.100.7","RequestMethod":"GET","RequestPath":"/c",
        "DownstreamStatus":429,"StartUTC":"2026-01-06T09:00:01.5Z",
        "time":"2026-01-06T09:00:09Z","request_X-Tenant-Id":"t2"}"#;
    let logged = json_line(traefik, &[]).unwrap();
    assert_eq!((logged.time, logged.status), (at("2026-01-06T09:00:01.5Z"), Some(429)));
    assert_eq!(header(&logged, "x-tenant-id"), ["t2"]);
}

#[test]
fn fields_replace_the_default_paths() {
    let line = r#"{"ts":0,"t":{"at":1767690001000},"c":[{"a/b":"198.51.100.7"}],"m":"GET",
        "u.x":"/a","code":200,"status":500,"remote_addr":"::1"}"#;
    let fields = ["time=t.at", "ip=/c/a~1b", "method=m", "uri=/u.x", "status=code"];
    let logged = json_line(line, &fields).unwrap();
    assert_eq!(logged.time, at("2026-01-06T09:00:01Z"));
    assert_eq!((&*logged.ip, logged.status), ("198.51.100.7", Some(200)));
    assert_eq!(request(&logged), Some(("GET", "/a")));
    let error = json_line(line, &["ip=missing"]).unwrap_err();
    assert!(error.contains("`ip`") && error.contains("--field"), "{error}");
    for (bad, hint) in [("ip", "NAME=PATH"), ("ipp=x", "header:NAME"), ("ip=a..b", "empty")] {
        assert!(Field::parse(bad).unwrap_err().contains(hint), "{bad}");
    }
}

#[test]
fn a_json_line_that_is_none_is_refused_without_being_shown() {
    for line in ["secret", r#"{"ts":"secret"}"#, r#"{"ts":1,"remote_addr":7}"#, "[]", "{}"] {
        let error = json_line(line, &[]).unwrap_err();
        assert!(!error.contains("secret"), "{line}: {error}");
    }
    let bad_status = r#"{"ts":1,"remote_addr":"::1","request":"GET / HTTP/1.1","status":"2x0"}"#;
    assert!(json_line(bad_status, &[]).unwrap_err().contains("status"));
}

#[test]
fn the_last_time_is_used_again_only_for_the_same_text() {
    let mut last = LastTime::default();
    let times =
        ["06/Jan/2026:09:00:00 +0000", "06/Jan/2026:09:00:01 +0000", "06/Jan/2026:09:00:01"];
    for index in [0, 0, 1, 2, 1, 1, 0, 2, 0] {
        let text = times[index];
        assert_eq!(last.common(text), LastTime::default().common(text), "{text}");
    }
}

#[test]
fn headers_are_parsed_only_if_the_catalog_reads_them() {
    let log = r#"192.0.2.1 - - [06/Jan/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl""#;
    let with = combined_line(log).unwrap();
    let without = combined::read(log.as_bytes(), false, &mut LastTime::default()).unwrap();
    assert_eq!(with.headers.len(), 1);
    assert_eq!(without, LogRequest { headers: LogHeaders::new(), ..with });
    let route =
        "[policy.p]\nby = ['ip']\nwindow = '1 per 1s'\n[[route]]\nmatch = '/**'\ngate = 'p'";
    for (set, reads) in [("", false), ("header:x-a", false), ("header:User-Agent", true)] {
        let set = if set.is_empty() { String::new() } else { format!("\nset = {{ a = '{set}' }}") };
        let catalog = Catalog::parse(&format!("{route}{set}")).unwrap();
        let format = HistoryFormat::Combined { gate: None };
        let parser = LineParser::new(&catalog, &format);
        let Syntax::Combined { reads_headers } = parser.syntax else { panic!("not combined") };
        assert_eq!(reads_headers, reads, "{set}");
    }
}

#[test]
fn a_route_that_skips_the_lists_skips_them_here_too() {
    let line = |path: &str| {
        format!(r#"192.0.2.1 - - [06/Jan/2026:09:00:00 +0000] "GET {path} HTTP/1.1" 200 5 "-" "c""#)
    };
    let policy = "[policy.p]\nby = ['ip']\nwindow = '1 per 1s'\n";
    let routes = "[[route]]\nmatch = '/a'\ngate = 'p'\nlists = false\n\
                  [[route]]\nmatch = '/**'\ngate = 'p'\n";
    let catalog = Catalog::parse(&format!("{policy}{routes}")).unwrap();
    let format = HistoryFormat::Combined { gate: None };
    let parser = LineParser::new(&catalog, &format);
    for (path, lists) in [("/a", false), ("/b", true)] {
        let line = line(path);
        let request = combined::read(line.as_bytes(), false, &mut LastTime::default()).unwrap();
        let EventKind::Check(check) = parser.check(request).unwrap().kind else { panic!("{path}") };
        assert_eq!(check.check().lists, lists, "{path}");
    }
}
