//! Lease ids: random, or derived from the request id.

use catraca_core::lock::LeaseId;

use super::lock_error::LockError;

/// A new lease id, which proves ownership of the lease. With a request id it is derived from the
/// secret, so that a repeated request gets the same one and others cannot guess it.
pub(super) fn lease_id(
    secret: &[u8; 32],
    namespace: &str,
    tenant: Option<&str>,
    request: Option<&str>,
) -> Result<LeaseId, LockError> {
    let mut bytes = [0; 16];
    match request {
        None => getrandom::fill(&mut bytes).map_err(|error| LockError::write_failed(&error))?,
        Some(request) => {
            let mut mac = blake3::Hasher::new_keyed(secret);
            // The length before each part distinguishes ("ab", "c") from ("a", "bc"); -1 marks an
            // absent tenant, which differs from an empty one.
            for part in [Some(namespace), tenant, Some(request)] {
                let length = part.map_or(-1, |part| part.len() as i64);
                mac.update(&length.to_le_bytes()).update(part.unwrap_or_default().as_bytes());
            }
            bytes.copy_from_slice(&mac.finalize().as_bytes()[..16]);
        }
    }
    Ok(LeaseId::from_bytes(bytes))
}
