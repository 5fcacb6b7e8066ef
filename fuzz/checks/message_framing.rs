//! Which requests of a connection state their length twice does not depend on the parts in which
//! the bytes arrive, nor on the requests before them.

/// A request without a body.
const PLAIN: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/// A request whose body looks like another request.
const SIZED: &[u8] =
    b"POST / HTTP/1.1\r\nContent-Length: 27\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// The input is what a client sends. `read` follows it in parts of a size, and returns the index of
/// the first request whose length is ambiguous.
pub fn check(data: &[u8], read: impl Fn(&[u8], usize) -> Option<u64>) {
    let whole = read(data, data.len().max(1));
    for part_bytes in [1, 2, 7, 64] {
        assert_eq!(read(data, part_bytes), whole);
    }
    for before in [PLAIN, SIZED] {
        let shifted = read(&[before, data].concat(), usize::MAX);
        assert_eq!(shifted, whole.map(|index| index + 1));
    }
}
