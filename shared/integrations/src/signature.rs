//! Signatures of webhook deliveries.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// `t=<unix seconds>,v1=<hex of HMAC-SHA-256 over "t.body">`, with a `v1` for
/// each secret: while a secret is replaced, recipients know the old or the new
/// one. A recipient computes the same with its secret, compares in constant
/// time, and refuses old times, so that a recorded request cannot be replayed
/// later.
pub(crate) fn signature(secrets: &[&str], unix_seconds: i64, body: &[u8]) -> String {
    let mut signed = format!("t={unix_seconds}");
    for secret in secrets {
        // HMAC takes keys of any length.
        let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
            mac.update(unix_seconds.to_string().as_bytes());
            mac.update(b".");
            mac.update(body);
            hex::encode(mac.finalize().into_bytes())
        });
        signed.push_str(",v1=");
        signed.push_str(&mac.unwrap_or_default());
    }
    signed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value is `printf '%s' '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn a_signature_is_what_openssl_computes() {
        let sign = |secrets: &[&str]| signature(secrets, 1_700_000_000, br#"{"a":1}"#);
        let expected = "49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686";
        assert_eq!(sign(&["secret"]), format!("t=1700000000,v1={expected}"));
        let both = sign(&["newer", "secret"]);
        assert!(both.ends_with(&format!(",v1={expected}")) && both.matches(",v1=").count() == 2, "{both}");
    }
}
