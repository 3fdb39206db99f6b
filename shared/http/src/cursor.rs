//! Cursors of lists: base64url of `{v, r, h, k}`, the version, the route, a
//! hash over filters, sort and key, and the key of the last row with its id, as
//! JSON. The hash has no secret, because every page applies the caller's scope
//! again; a cursor of another list, of other filters or altered is 400
//! `invalid_cursor`.

use base64ct::{Base64UrlUnpadded, Encoding};
use callboard_auth::RouteId;
use callboard_query::page::Slice;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::page::Page;

const VERSION: u8 = 1;
const MAX_CHARS: usize = 4096;
const HASH_BYTES: usize = 8;

/// The list a cursor belongs to: a route with its filters and sort.
#[derive(Debug, Clone)]
pub struct CursorScope {
    route: RouteId,
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct Wire<R> {
    v: u8,
    r: R,
    h: String,
    k: String,
}

/// What shows that a key belongs to a list and is as it was given out.
#[must_use]
pub fn check_of(list: &str, key: &str) -> String {
    let digest = Sha256::new().chain_update(list).chain_update("\n").chain_update(key).finalize();
    Base64UrlUnpadded::encode_string(&digest[..HASH_BYTES])
}

impl CursorScope {
    /// The list of `route` with these filters. Whatever changes which rows
    /// come, or their order, belongs into `filters`; the page size does not.
    ///
    /// # Errors
    /// 500 for filters that cannot be written as JSON.
    pub fn new(route: RouteId, filters: &impl Serialize) -> Result<Self, ApiError> {
        let filters = serde_json::to_vec(filters).map_err(ApiError::internal)?;
        let digest = Sha256::digest(&filters);
        Ok(Self { route, hash: Base64UrlUnpadded::encode_string(&digest[..HASH_BYTES]) })
    }

    /// The cursor that continues behind the row with this key.
    ///
    /// # Errors
    /// 500 for a key that cannot be written as JSON.
    pub fn encode<K: Serialize>(&self, key: &K) -> Result<String, ApiError> {
        let k = serde_json::to_string(key).map_err(ApiError::internal)?;
        let wire = Wire { v: VERSION, r: self.route.name(), h: check_of(&self.hash, &k), k };
        let json = serde_json::to_vec(&wire).map_err(ApiError::internal)?;
        Ok(Base64UrlUnpadded::encode_string(&json))
    }

    /// The key to continue behind; `None` for the first page.
    ///
    /// # Errors
    /// 400 `invalid_cursor`.
    pub fn decode<K: DeserializeOwned>(&self, cursor: Option<&str>) -> Result<Option<K>, ApiError> {
        cursor.map(|text| self.read(text).ok_or_else(ApiError::invalid_cursor)).transpose()
    }

    /// The page a list answers with: its rows, and the cursor of the next one.
    ///
    /// # Errors
    /// 500 for a key that cannot be written as JSON.
    pub fn page<T, K: Serialize>(&self, slice: Slice<T, K>) -> Result<Page<T>, ApiError> {
        let next = slice.next.map(|key| self.encode(&key)).transpose()?;
        Ok(Page::new(slice.items, next))
    }

    fn read<K: DeserializeOwned>(&self, text: &str) -> Option<K> {
        if text.len() > MAX_CHARS {
            return None;
        }
        let json = Base64UrlUnpadded::decode_vec(text).ok()?;
        let wire: Wire<String> = serde_json::from_slice(&json).ok()?;
        let is_ours =
            wire.v == VERSION && wire.r == self.route.name() && wire.h == check_of(&self.hash, &wire.k);
        is_ours.then(|| serde_json::from_str(&wire.k).ok())?
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope(route: RouteId, filter: &str) -> CursorScope {
        CursorScope::new(route, &filter).unwrap()
    }

    proptest! {
        #[test]
        fn a_cursor_leads_back_to_its_key_in_its_own_list_only(
            time in any::<i64>(), id in any::<i64>(), name in ".{0,40}", filter in ".{0,20}", other in ".{0,20}",
        ) {
            let list = scope(RouteId::ListRuns, &filter);
            let key = (time, name, id);
            let cursor = list.encode(&key).unwrap();
            prop_assert_eq!(list.decode(Some(&cursor)).unwrap(), Some(key));
            prop_assert!(scope(RouteId::ListProjects, &filter).read::<(i64, String, i64)>(&cursor).is_none());
            if filter != other {
                prop_assert!(scope(RouteId::ListRuns, &other).read::<(i64, String, i64)>(&cursor).is_none());
            }
            prop_assert!(list.read::<(i64, i64)>(&cursor).is_none());
            let mut altered = Base64UrlUnpadded::decode_vec(&cursor).unwrap();
            let digit = altered.iter().rposition(u8::is_ascii_digit).unwrap();
            altered[digit] = if altered[digit] == b'9' { b'8' } else { altered[digit] + 1 };
            let altered = Base64UrlUnpadded::encode_string(&altered);
            prop_assert!(list.read::<(i64, String, i64)>(&altered).is_none());
        }

        #[test]
        fn nonsense_is_refused_and_never_panics(text in ".{0,200}") {
            prop_assert!(scope(RouteId::ListRuns, "").read::<(i64, i64)>(&text).is_none());
        }
    }

    #[test]
    fn no_cursor_is_the_first_page() {
        assert_eq!(scope(RouteId::ListRuns, "").decode::<i64>(None).unwrap(), None);
    }
}
