//! A local folder of objects in which symbolic links lead nowhere. The store of
//! `object_store` follows them: whoever can make one in the folder could have
//! it read, replace or delete any file of this machine.
//!
//! Every component of a path is looked at before the store uses it. That is no
//! protection against somebody who replaces folders in that very moment; the
//! folder belongs to the service alone.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// The store of a folder, without links.
#[derive(Debug, Clone)]
pub(super) struct WithoutLinks {
    pub(super) store: Arc<LocalFileSystem>,
    /// The folder; its own path may hold links, which whoever runs the service chose.
    pub(super) folder: PathBuf,
}

impl WithoutLinks {
    /// Where the file of an object lies.
    pub(super) fn place(&self, object: &Path) -> Result<PathBuf> {
        self.store.path_to_filesystem(object)
    }

    /// Fails when the object, or a folder on the way to it, is a symbolic link.
    pub(super) async fn refuse_link(&self, object: &Path) -> Result<()> {
        let file = self.place(object)?;
        for part in file.ancestors().take_while(|part| *part != self.folder) {
            if tokio::fs::symlink_metadata(part).await.is_ok_and(|found| found.is_symlink()) {
                let source = format!("{} is a symbolic link, which is not followed", part.display());
                return Err(Error::NotFound { path: object.to_string(), source: source.into() });
            }
        }
        Ok(())
    }
}

impl Display for WithoutLinks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for WithoutLinks {
    async fn put_opts(&self, object: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.refuse_link(object).await?;
        self.store.put_opts(object, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        object: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.refuse_link(object).await?;
        self.store.put_multipart_opts(object, options).await
    }

    async fn get_opts(&self, object: &Path, options: GetOptions) -> Result<GetResult> {
        self.refuse_link(object).await?;
        self.store.get_opts(object, options).await
    }

    fn delete_stream(&self, objects: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let guard = self.clone();
        let checked = objects.and_then(move |object| {
            let guard = guard.clone();
            async move { guard.refuse_link(&object).await.map(|()| object) }
        });
        self.store.delete_stream(checked.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let guard = self.clone();
        let inside = self.store.list(prefix).try_filter_map(move |found| {
            let guard = guard.clone();
            async move { Ok(guard.refuse_link(&found.location).await.ok().map(|()| found)) }
        });
        inside.boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.refuse_link(from).await?;
        self.refuse_link(to).await?;
        self.store.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.refuse_link(from).await?;
        self.refuse_link(to).await?;
        self.store.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use object_store::ObjectStoreExt as _;

    use super::*;

    /// A folder of objects beside one with a secret; in it lie a link to the secret, and one to its folder.
    struct Fixture {
        base: PathBuf,
        store: WithoutLinks,
    }

    impl Fixture {
        fn new(name: &str) -> Self {
            let base = std::env::temp_dir().join(format!("callboard-links-{name}-{}", std::process::id()));
            std::fs::create_dir_all(base.join("objects/a")).unwrap();
            std::fs::create_dir_all(base.join("outside")).unwrap();
            let base = base.canonicalize().unwrap();
            std::fs::write(base.join("outside/secret"), "secret").unwrap();
            symlink(base.join("outside/secret"), base.join("objects/a/file")).unwrap();
            symlink(base.join("outside"), base.join("objects/a/folder")).unwrap();
            let folder = base.join("objects");
            let store = Arc::new(LocalFileSystem::new_with_prefix(&folder).unwrap());
            Self { base, store: WithoutLinks { store, folder } }
        }

        fn assert_outside_is_untouched(&self) {
            assert_eq!(std::fs::read_to_string(self.base.join("outside/secret")).unwrap(), "secret");
            assert_eq!(std::fs::read_dir(self.base.join("outside")).unwrap().count(), 1);
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.base);
        }
    }

    #[tokio::test]
    async fn nothing_is_read_or_listed_through_a_symbolic_link() {
        let fixture = Fixture::new("read");
        let store = &fixture.store;
        store.put(&"a/plain".into(), "plain".into()).await.unwrap();
        assert_eq!(store.get(&"a/plain".into()).await.unwrap().bytes().await.unwrap(), "plain");
        for link in ["a/file", "a/folder/secret", "a/folder"] {
            let error = store.get(&link.into()).await.unwrap_err();
            assert!(matches!(error, Error::NotFound { .. }), "{link}: {error}");
        }
        let listed: Vec<_> = store.list(None).map_ok(|found| found.location).try_collect().await.unwrap();
        assert_eq!(listed, ["a/plain".into()]);
    }

    #[tokio::test]
    async fn nothing_is_written_or_deleted_through_a_symbolic_link() {
        let fixture = Fixture::new("write");
        let store = &fixture.store;
        store.put(&"a/plain".into(), "mine".into()).await.unwrap();
        for link in ["a/file", "a/folder/secret", "a/folder/new"] {
            store.put(&link.into(), "mine".into()).await.unwrap_err();
            assert!(store.put_multipart(&link.into()).await.is_err());
            store.rename(&"a/plain".into(), &link.into()).await.unwrap_err();
            store.delete(&link.into()).await.unwrap_err();
        }
        fixture.assert_outside_is_untouched();
    }
}
