//! Runs `examples/booking` unchanged: of two equal bookings one gets 201 and the other 409,
//! overlaps are refused, adjacent bookings are accepted.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use crate::raw_connection::{JSON, RawConnection};
use crate::test_server::TestServer;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/booking");

/// The example service, killed with the test.
struct Service {
    child: Child,
    address: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn service(server: &TestServer) -> Service {
    let mut child = Command::new("python3")
        .arg(format!("{FOLDER}/booking.py"))
        .args(["0", &format!("http://{}", server.address)])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit('/').next().unwrap().to_owned();
    Service { child, address }
}

fn book(service: &Service, start: &str, more: &Value) -> (u16, Value) {
    let mut body =
        json!({ "employee": "ana", "start_at": format!("2030-01-07T{start}:00Z"), "duration": 30 });
    if more.is_object() {
        body["fail"] = more["fail"].clone();
    }
    let mut connection = RawConnection::open(&service.address);
    connection.send("POST /api/appointments", &[JSON], body.to_string().as_bytes());
    let answer = connection.read_response();
    (answer.status, answer.json())
}

/// covers: 004-37, 004-40, 004-41, 004-69
#[test]
fn two_bookings_at_once_are_one_201_and_one_409() {
    let catalog = std::fs::read_to_string(format!("{FOLDER}/catalog.toml")).unwrap();
    let server = TestServer::with_catalog(&catalog);
    let service = service(&server);
    let barrier = Barrier::new(2);
    let mut both = thread::scope(|scope| {
        let one = || {
            barrier.wait();
            book(&service, "10:00", &Value::Null)
        };
        let first = scope.spawn(one);
        let second = scope.spawn(one);
        [first.join().unwrap(), second.join().unwrap()]
    });
    both.sort_by_key(|(status, _)| *status);
    assert_eq!([both[0].0, both[1].0], [201, 409], "{both:?}");
    assert_eq!(both[1].1["conflict"], true);
    assert_eq!(book(&service, "10:15", &Value::Null).0, 409, "an overlap");
    assert_eq!(book(&service, "10:30", &Value::Null).0, 201, "adjacent");
    // The service fails while it holds the slot: the slot is free right after.
    assert_eq!(book(&service, "12:00", &json!({ "fail": true })).0, 500);
    assert_eq!(book(&service, "12:00", &Value::Null).0, 201);
}
