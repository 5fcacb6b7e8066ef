//! Every test that starts Redis or PgBouncer is selected by a filter of a part that has them.
//!
//! `unit` disables Redis, and a machine may have no PgBouncer: a test that no filter selects
//! returns at once, and passes everywhere. PostgreSQL needs no filter, because `unit` has it and
//! runs all tests.

use catraca_conformance::Repo;

use super::{lua, postgres, redis};

/// The tests of one executable that start a program, and how the parts select them.
struct StoreTests {
    /// The folder of the executable's modules.
    folder: &'static str,
    /// The calls that start the program.
    starts: &'static [&'static str],
    filters: Vec<&'static str>,
    /// The parts leave out tests whose names contain this.
    skipped: Option<&'static str>,
}

const REDIS: &[&str] = &["RedisServer::start", "RedisSentinels::start", "RedisCluster::start"];
const POOLER: &[&str] = &["PgBouncer::start"];
const SERVER: &str = "crates/catraca-server/tests/server/";
const STORES: &str = "conformance/tests/stores/";

fn all_store_tests() -> [StoreTests; 4] {
    let services = [&redis::SERVICE[..], &redis::LOCKS[..], &[redis::KILLS]].concat();
    let stores = [&redis::STORES[..], &[lua::MODULE]].concat();
    let skipped = Some(redis::POSTGRES_ONLY);
    [
        StoreTests { folder: SERVER, starts: REDIS, filters: services, skipped },
        StoreTests {
            folder: SERVER,
            starts: POOLER,
            filters: postgres::SERVICE.to_vec(),
            skipped: None,
        },
        StoreTests { folder: STORES, starts: REDIS, filters: stores, skipped: None },
        StoreTests {
            folder: STORES,
            starts: POOLER,
            filters: vec![postgres::STORES],
            skipped: None,
        },
    ]
}

/// A source file of tests: the path of its module, such as `http::locks::`, and its text.
struct TestModule {
    path: String,
    text: String,
}

impl TestModule {
    fn read(repo: &Repo, folder: &str, file: &str) -> Option<Self> {
        let path = file.strip_prefix(folder)?.strip_suffix(".rs")?;
        let path = path.replace('/', "::") + "::";
        Some(Self { path, text: repo.read(file).unwrap() })
    }

    /// The name of each test, and the text from it to the next one.
    fn tests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.split("test]\n").skip(1).filter_map(|text| {
            let (_, rest) = text.split_once("fn ")?;
            Some((rest.split_once('(')?.0, text))
        })
    }
}

impl StoreTests {
    fn starts_in(&self, text: &str) -> bool {
        self.starts.iter().any(|start| text.contains(start))
    }

    fn selects(&self, test: &str) -> bool {
        self.filters.iter().any(|filter| test.contains(filter))
    }

    /// The tests that no filter selects, and helpers whose tests no filter selects. A helper may
    /// start the program only when a part asks for it, so one selected test is enough.
    fn left_out(&self, modules: &[TestModule]) -> Vec<String> {
        let mut left_out = Vec::new();
        for module in modules.iter().filter(|module| self.starts_in(&module.text)) {
            let path = &module.path;
            if module.tests().next().is_none() {
                let below = |other: &&TestModule| other.path.starts_with(path.as_str());
                let mut users = modules.iter().filter(below);
                if !users.any(|user| self.selects(&user.path)) {
                    left_out.push(path.clone());
                }
            }
            for (name, text) in module.tests() {
                let is_skipped = self.skipped.is_some_and(|skipped| name.contains(skipped));
                let test = format!("{path}{name}");
                if !self.selects(&test) || (is_skipped && self.starts_in(text)) {
                    left_out.push(test);
                }
            }
        }
        left_out
    }
}

fn modules(repo: &Repo, folder: &str) -> Vec<TestModule> {
    let files = repo.files().unwrap();
    files.iter().filter_map(|file| TestModule::read(repo, folder, file)).collect()
}

#[test]
fn every_test_that_starts_redis_or_a_pooler_runs_in_a_part_that_has_it() {
    let repo = Repo::open().unwrap();
    for tests in all_store_tests() {
        let modules = modules(&repo, tests.folder);
        let left_out = tests.left_out(&modules);
        assert!(left_out.is_empty(), "no part runs these tests of {}: {left_out:?}", tests.folder);
        let starting = modules.iter().filter(|module| tests.starts_in(&module.text)).count();
        assert!(starting > 0, "no test of {} has {:?}", tests.folder, tests.starts);
        for filter in &tests.filters {
            let mut names = modules.iter().flat_map(|module| {
                module.tests().map(|(name, _)| format!("{}{name}", module.path))
            });
            assert!(names.any(|name| name.contains(filter)), "`{filter}` selects no test");
        }
    }
}

#[test]
fn a_test_without_a_filter_is_left_out() {
    let module = |path: &str, text: &str| TestModule { path: path.into(), text: text.into() };
    let starting = "#[test]\nfn starts() {\n    RedisServer::start();\n}\n";
    let helper = "fn helper() {\n    RedisServer::start();\n}\n";
    let modules = [
        module("http::selected::", starting),
        module("http::forgotten::", starting),
        module("http::selected::postgres::", &starting.replace("starts", "starts_postgresql")),
        module("http::other::", "#[test]\nfn starts_nothing() {}\n"),
        module("http::selected::users::", helper),
        module("http::helper::", helper),
        module("http::helper::users::", "#[test]\nfn uses() {}\n"),
    ];
    let tests = StoreTests {
        folder: "",
        starts: REDIS,
        filters: vec!["http::selected::"],
        skipped: Some("postgresql"),
    };
    let expected = [
        "http::forgotten::starts",
        "http::selected::postgres::starts_postgresql",
        "http::helper::",
    ];
    assert_eq!(tests.left_out(&modules), expected);
}
