//! Cursors of tool results: base64url of `{v, t, h, k}`, the version, the
//! tool, a hash over filters, scope and key, and the key of the last row as
//! JSON. The hash has no secret: every page applies the caller's scope again. One of another
//! tool, of other filters or another scope, or altered, is an error.

use base64ct::{Base64UrlUnpadded, Encoding};
use callboard_auth::Scope;
use callboard_http::cursor::check_of;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::arguments::ArgumentError;
use crate::error::ToolError;

const VERSION: u8 = 1;
const HASH_BYTES: usize = 8;
/// Arguments that choose a page of a list and not its rows.
const PAGE_ARGUMENTS: [&str; 3] = ["cursor", "pageSize", "offset"];

/// The list that cursors of one call belong to.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    tool: &'static str,
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct Wire<T> {
    v: u8,
    t: T,
    h: String,
    k: String,
}

impl Pages {
    /// The list a tool answers for these arguments and this scope.
    pub(crate) fn new(tool: &'static str, arguments: &Map<String, Value>, scope: &Scope) -> Self {
        let mut digest = Sha256::new();
        for (name, value) in arguments.iter().filter(|(name, _)| !PAGE_ARGUMENTS.contains(&name.as_str())) {
            digest.update(format!("{name}={value}\n"));
        }
        match scope.projects() {
            None => digest.update("all"),
            Some(projects) => projects.iter().for_each(|project| digest.update(project.get().to_be_bytes())),
        }
        Self { tool, hash: Base64UrlUnpadded::encode_string(&digest.finalize()[..HASH_BYTES]) }
    }

    /// The key to continue behind; `None` for the first page.
    ///
    /// # Errors
    /// For a cursor of another list, or none of ours.
    pub(crate) fn after<K: DeserializeOwned>(&self, cursor: Option<&str>) -> Result<Option<K>, ToolError> {
        cursor.map(|text| self.read(text).ok_or_else(|| ArgumentError::Cursor.into())).transpose()
    }

    /// The cursor that continues behind the row with this key.
    ///
    /// # Errors
    /// For a key that has no JSON.
    pub(crate) fn cursor<K: Serialize>(&self, key: &K) -> Result<String, ToolError> {
        let k = serde_json::to_string(key).map_err(ToolError::fault)?;
        let wire = Wire { v: VERSION, t: self.tool, h: check_of(&self.hash, &k), k };
        let json = serde_json::to_vec(&wire).map_err(ToolError::fault)?;
        Ok(Base64UrlUnpadded::encode_string(&json))
    }

    fn read<K: DeserializeOwned>(&self, text: &str) -> Option<K> {
        let json = Base64UrlUnpadded::decode_vec(text.trim()).ok()?;
        let wire: Wire<String> = serde_json::from_slice(&json).ok()?;
        let is_ours = wire.v == VERSION && wire.t == self.tool && wire.h == check_of(&self.hash, &wire.k);
        is_ours.then(|| serde_json::from_str(&wire.k).ok())?
    }
}

#[cfg(test)]
mod tests {
    use callboard_auth::Identity;
    use callboard_domain::ids::ProjectId;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn all() -> Scope {
        let identity = Identity::auth_off();
        identity.scope().clone()
    }

    fn pages(tool: &'static str, arguments: Value, scope: &Scope) -> Pages {
        Pages::new(tool, arguments.as_object().unwrap(), scope)
    }

    proptest! {
        #[test]
        fn a_cursor_leads_back_to_its_key_in_its_own_list_only(key in any::<(i64, i64)>(), at in 0_usize..80, to in any::<char>()) {
            let scope = all();
            let ours = pages("list_runs", json!({"projectId": 7, "pageSize": 1}), &scope);
            let cursor = ours.cursor(&key).unwrap();
            prop_assert_eq!(ours.after::<(i64, i64)>(Some(&cursor)).unwrap(), Some(key));
            let larger = pages("list_runs", json!({"projectId": 7, "pageSize": 50, "cursor": "x"}), &scope);
            prop_assert_eq!(larger.after::<(i64, i64)>(Some(&cursor)).unwrap(), Some(key));
            for other in [
                pages("get_project", json!({"projectId": 7}), &scope),
                pages("list_runs", json!({"projectId": 8}), &scope),
                pages("list_runs", json!({"projectId": 7, "branch": "main"}), &scope),
                pages("list_runs", json!({"projectId": 7}), &scope.narrowed_to([ProjectId(7)])),
            ] {
                prop_assert!(other.after::<(i64, i64)>(Some(&cursor)).is_err());
            }
            let mut altered: Vec<char> = cursor.chars().collect();
            let at = at % altered.len();
            if altered[at] != to {
                altered[at] = to;
                let altered: String = altered.into_iter().collect();
                prop_assert!(ours.after::<(i64, i64)>(Some(&altered)).is_err());
            }
        }

        #[test]
        fn nonsense_is_refused_and_never_panics(text in ".{0,200}") {
            let read = pages("list_runs", json!({}), &all()).after::<i64>(Some(&text));
            prop_assert!(read.is_err());
        }
    }
}
