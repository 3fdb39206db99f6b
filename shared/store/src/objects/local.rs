//! Objects in a folder of this machine: what the store itself does not do there.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::time::Duration;

use object_store::path::Path;

use super::links::WithoutLinks;
use crate::{Result, StoreError};

/// Nobody writes to a file any more that did not change for so long: no body may be silent
/// for longer than half a minute.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

/// A folder of this machine.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) store: WithoutLinks,
}

/// Objects that a process was writing when it was killed. The store writes each beside
/// its place, under its name with `#` and a number, which it neither lists nor deletes.
impl Local {
    /// Bytes this process can still write.
    pub(super) fn free_bytes(&self) -> Result<i64> {
        let found = rustix::fs::statvfs(&self.store.folder).map_err(|error| {
            StoreError::Configuration(format!(
                "SERVICE_STORAGE_URL: cannot read the free space of {}: {error}",
                self.store.folder.display()
            ))
        })?;
        Ok(i64::try_from(found.f_bavail.saturating_mul(found.f_frsize)).unwrap_or(i64::MAX))
    }

    /// Removes what was begun of one object, and is not being written any more: another
    /// process may bring the object again while it is deleted.
    pub(super) async fn remove_unfinished(&self, object: &Path) -> Result<()> {
        if self.store.refuse_link(object).await.is_err() {
            return Ok(());
        }
        let place = self.store.place(object)?;
        let failed = |error| unremovable(object, error);
        for number in 1_u32.. {
            let mut begun = place.clone().into_os_string();
            begun.push(format!("#{number}"));
            let found = match tokio::fs::symlink_metadata(&begun).await {
                Ok(found) => found,
                Err(error) if is_absence(&error) => break,
                Err(error) => return Err(failed(error)),
            };
            if found.modified().map_err(failed)?.elapsed().is_ok_and(|age| age >= ABANDONED_AFTER) {
                remove_file(begun.as_ref()).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Removes what was begun of all objects below a prefix, whose holder is gone.
    pub(super) async fn remove_unfinished_below(&self, prefix: &Path) -> Result<()> {
        if self.store.refuse_link(prefix).await.is_err() {
            return Ok(());
        }
        let mut folders = vec![self.store.place(prefix)?];
        let failed = |error| unremovable(prefix, error);
        while let Some(folder) = folders.pop() {
            let mut entries = match tokio::fs::read_dir(folder).await {
                Ok(entries) => entries,
                Err(error) if is_absence(&error) => continue,
                Err(error) => return Err(failed(error)),
            };
            while let Some(entry) = entries.next_entry().await.map_err(failed)? {
                if entry.file_type().await.map_err(failed)?.is_dir() {
                    folders.push(entry.path());
                } else if is_unfinished(&entry.file_name()) {
                    remove_file(&entry.path()).await.map_err(failed)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether the store gives this name to what it has only begun to write.
fn is_unfinished(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.rsplit_once('#')).map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

async fn remove_file(file: &std::path::Path) -> std::io::Result<()> {
    match tokio::fs::remove_file(file).await {
        Err(error) if !is_absence(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename)
}

fn unremovable(object: &Path, error: std::io::Error) -> StoreError {
    StoreError::from(object_store::Error::Generic {
        store: "the folder",
        source: format!("{object}: {error}").into(),
    })
}
