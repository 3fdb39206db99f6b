//! Signatures of webhook deliveries.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// `t=<unix seconds>,v1=<hex of HMAC-SHA-256 over "t.body">`. A recipient
/// computes the same with the shared secret, compares in constant time, and
/// refuses old times, so that a recorded request cannot be replayed later.
pub(crate) fn signature(secret: &str, unix_seconds: i64, body: &[u8]) -> String {
    // HMAC takes keys of any length.
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        mac.update(unix_seconds.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        hex::encode(mac.finalize().into_bytes())
    });
    format!("t={unix_seconds},v1={}", mac.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value is `printf '%s' '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn a_signature_is_what_openssl_computes() {
        let signed = signature("secret", 1_700_000_000, br#"{"a":1}"#);
        let expected = "49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686";
        assert_eq!(signed, format!("t=1700000000,v1={expected}"));
    }
}
