//! Making the proof of a lease. Must not keep one.

use catraca_core::lock::LeaseId;

use super::error::LockError;

/// The proof of a new lease. A request with a name of its own gets the same one when it is
/// repeated, and nobody without the secret can work it out.
pub(super) fn lease_id(
    secret: &[u8; 32],
    namespace: &str,
    tenant: Option<&str>,
    request: Option<&str>,
) -> Result<LeaseId, LockError> {
    let mut bytes = [0; 16];
    match request {
        None => getrandom::fill(&mut bytes).map_err(|error| LockError::unkept(&error))?,
        Some(request) => {
            let mut mac = blake3::Hasher::new_keyed(secret);
            for part in [Some(namespace), tenant, Some(request)] {
                let length = part.map_or(-1, |part| part.len() as i64);
                mac.update(&length.to_le_bytes()).update(part.unwrap_or_default().as_bytes());
            }
            bytes.copy_from_slice(&mac.finalize().as_bytes()[..16]);
        }
    }
    Ok(LeaseId::from_bytes(bytes))
}
