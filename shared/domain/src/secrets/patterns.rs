//! What secrets begin with, and the names they stand behind.

/// Hexadecimal digits in a row from which a text is taken for a key.
pub(super) const MIN_HEX: usize = 32;
/// Longest scheme of an address, name of a parameter and head of a key, bytes:
/// every word is looked at, so none of them may be read to the end of the text.
pub(super) const MAX_NAME: usize = 64;
/// Beginnings of keys of widespread services, and the fewest characters behind.
pub(super) const BEGINNINGS: [(&[u8], usize); 37] = [
    (b"AIza", 30),
    (b"AKIA", 16),
    (b"ASIA", 16),
    (b"SG.", 20),
    (b"dop_v1_", 20),
    (b"gho_", 20),
    (b"ghp_", 20),
    (b"ghr_", 20),
    (b"ghs_", 20),
    (b"ghu_", 20),
    (b"github_pat_", 20),
    (b"glcbt-", 16),
    (b"gldt-", 16),
    (b"glft-", 16),
    (b"glpat-", 16),
    (b"glptt-", 16),
    (b"glrt-", 16),
    (b"glsoat-", 16),
    (b"hf_", 30),
    (b"npm_", 30),
    (b"pypi-", 30),
    (b"rk_live_", 10),
    (b"rk_test_", 10),
    (b"shpat_", 20),
    (b"sk-ant-", 16),
    (b"sk-proj-", 16),
    (b"sk_live_", 10),
    (b"sk_test_", 10),
    (b"whsec_", 16),
    (b"xapp-", 10),
    (b"xoxa-", 10),
    (b"xoxb-", 10),
    (b"xoxc-", 10),
    (b"xoxe-", 10),
    (b"xoxp-", 10),
    (b"xoxr-", 10),
    (b"xoxs-", 10),
];

/// Names of headers whose values are secrets, however they are written.
pub(super) const HEADERS: [&[u8]; 3] = [b"x-api-key", b"x-auth-token", b"x-csrf-token"];
/// Names of fields whose values are secrets when they stand in quotes or behind `=`.
pub(super) const FIELDS: [&[u8]; 17] = [
    b"aws_secret_access_key",
    b"secret_access_key",
    b"private_key",
    b"auth_token",
    b"session_token",
    b"password",
    b"passwd",
    b"client_secret",
    b"clientsecret",
    b"access_token",
    b"accesstoken",
    b"refresh_token",
    b"refreshtoken",
    b"id_token",
    b"api_key",
    b"apikey",
    b"secret",
];

/// Whether a byte may stand in the scheme of an address.
pub(super) const fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-')
}
