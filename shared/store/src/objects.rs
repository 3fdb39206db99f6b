//! Objects: bytes addressed by keys that the server makes. The backend is a
//! local folder or a bucket; bucket clients connect at their first use.

mod links;
mod local;

use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use http::Method;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::signer::{SignedUrlOptions, Signer as _};
use object_store::{ClientConfigKey, MultipartUpload, ObjectStore, ObjectStoreExt as _, RetryConfig};
use url::Url;

use crate::{Result, StoreError, boxed};
use links::WithoutLinks;
use local::Local;

/// The object store of an installation.
#[derive(Debug)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    /// The same for objects that are read as they come: where an answer breaks off it is
    /// gone on with, also after minutes.
    streams: Arc<dyn ObjectStore>,
    signer: Option<Signer>,
    local: Option<Local>,
}

impl Objects {
    /// Describes the store behind `file://<folder>`, `s3://bucket/prefix`,
    /// `gs://…` or `az://…`. Credentials come from the provider's usual
    /// environment variables.
    ///
    /// # Errors
    /// [`StoreError::Configuration`] for another address,
    /// [`StoreError::Storage`] when the folder cannot be made.
    pub fn open(storage_url: &str, s3_endpoint: Option<&str>, s3_public: Option<&str>) -> Result<Self> {
        // reqwest is built without a TLS provider of its own; whoever comes
        // first installs ring, a second call changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        if let Some(folder) = storage_url.strip_prefix("file://") {
            std::fs::create_dir_all(folder).map_err(|error| {
                StoreError::Configuration(format!(
                    "SERVICE_STORAGE_URL: cannot make the folder {folder}: {error}"
                ))
            })?;
            let store = Arc::new(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true));
            let folder = PathBuf::from(folder).canonicalize().map_err(|_| unusable(storage_url))?;
            let store = WithoutLinks { store, folder };
            let local = Some(Local { store: store.clone() });
            let store: Arc<dyn ObjectStore> = Arc::new(store);
            return Ok(Self { streams: Arc::clone(&store), store, signer: None, local });
        }
        let url = Url::parse(storage_url).map_err(|_| unusable(storage_url))?;
        let bucket = url.host_str().ok_or_else(|| unusable(storage_url))?;
        let prefix = url.path().trim_matches('/').to_owned();
        let s3_at = |endpoint: Option<&str>, retry: RetryConfig| {
            let [silence, whole] = BOUNDS.map(|(key, time)| (AmazonS3ConfigKey::Client(key), time));
            let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
            let builder = builder.with_config(silence.0, silence.1).with_config(whole.0, whole.1);
            let builder = builder.with_retry(retry);
            let Some(endpoint) = endpoint else { return builder };
            builder
                .with_endpoint(endpoint)
                .with_allow_http(endpoint.starts_with("http://"))
                .with_virtual_hosted_style_request(false)
        };
        // What streams objects also signs addresses, unless clients reach the bucket elsewhere.
        let mut signer = None;
        let [store, streams]: [Arc<dyn ObjectStore>; 2] = match url.scheme() {
            "s3" => {
                let streams = s3_at(s3_endpoint, RetryConfig::default()).build()?;
                let public = s3_at(s3_public.or(s3_endpoint), RetryConfig::default());
                let origin = origin_of(&public, bucket);
                let signing = if s3_public.is_some() { public.build()? } else { streams.clone() };
                signer = Some(Signer { bucket: signing, prefix: prefix.clone(), origin });
                [Arc::new(s3_at(s3_endpoint, tries()).build()?), Arc::new(streams)]
            }
            "gs" => {
                let [silence, whole] = BOUNDS.map(|(key, time)| (GoogleConfigKey::Client(key), time));
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                let builder = builder.with_config(silence.0, silence.1).with_config(whole.0, whole.1);
                [Arc::new(builder.clone().with_retry(tries()).build()?), Arc::new(builder.build()?)]
            }
            "az" => {
                let [silence, whole] = BOUNDS.map(|(key, time)| (AzureConfigKey::Client(key), time));
                let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
                let builder = builder.with_config(silence.0, silence.1).with_config(whole.0, whole.1);
                [Arc::new(builder.clone().with_retry(tries()).build()?), Arc::new(builder.build()?)]
            }
            _ => return Err(unusable(storage_url)),
        };
        let below = |store: Arc<dyn ObjectStore>| -> Arc<dyn ObjectStore> {
            if prefix.is_empty() { store } else { Arc::new(PrefixStore::new(store, prefix.as_str())) }
        };
        Ok(Self { store: below(store), streams: below(streams), signer, local: None })
    }

    /// Bytes this process can still write to the file system that holds the
    /// objects; `None` for a bucket.
    ///
    /// # Errors
    /// [`StoreError::Configuration`] when the system does not say.
    pub fn free_bytes(&self) -> Result<Option<i64>> {
        self.local.as_ref().map(Local::free_bytes).transpose()
    }

    /// Asks for one key under a prefix nothing uses.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store does not answer.
    pub async fn check(&self) -> Result<()> {
        match self.store.list(Some(&Path::from("health"))).next().await {
            Some(Err(error)) => Err(error.into()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Writes a whole object.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses.
    #[boxed]
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.store.put(&path(key)?, bytes.into()).await?;
        Ok(())
    }

    /// Begins an object whose bytes arrive one by one.
    ///
    /// # Errors
    /// [`StoreError::Storage`] for a key no store accepts.
    pub fn writer(&self, key: &str) -> Result<ObjectWriter> {
        Ok(ObjectWriter {
            store: Arc::clone(&self.store),
            path: path(key)?,
            buffer: BytesMut::new(),
            upload: None,
        })
    }

    /// Moves an object; an existing object under the new key is replaced.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses.
    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        Ok(self.store.rename(&path(from)?, &path(to)?).await?)
    }

    /// Copies an object; an existing object under the new key is replaced.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses or the object is not there.
    #[boxed]
    pub async fn copy(&self, from: &str, to: &str) -> Result<()> {
        Ok(self.store.copy(&path(from)?, &path(to)?).await?)
    }

    /// Deletes an object; one that is not there counts as deleted.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses.
    #[boxed]
    pub async fn delete(&self, key: &str) -> Result<()> {
        let key = path(key)?;
        match self.store.delete(&key).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        match &self.local {
            Some(local) => local.remove_unfinished(&key).await,
            None => Ok(()),
        }
    }

    /// Deletes every object below a prefix that ends in `/`.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses; some may be left then.
    pub async fn delete_below(&self, prefix: &str) -> Result<()> {
        let prefix = path(prefix.trim_end_matches('/'))?;
        let found = self.store.list(Some(&prefix)).map_ok(|object| object.location).boxed();
        let mut deleted = self.store.delete_stream(found);
        while let Some(deleted) = deleted.next().await {
            match deleted {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match &self.local {
            Some(local) => local.remove_unfinished_below(&prefix).await,
            None => Ok(()),
        }
    }

    /// Deletes every object below a prefix that ends in `/`, and answers how
    /// many there were and their bytes.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses; some may be left then.
    pub async fn clear_below(&self, prefix: &str) -> Result<Cleared> {
        let prefix = path(prefix.trim_end_matches('/'))?;
        let mut cleared = Cleared::default();
        let found: Vec<_> = self.store.list(Some(&prefix)).try_collect().await?;
        for object in &found {
            cleared.objects += 1;
            cleared.bytes += i64::try_from(object.size).unwrap_or(i64::MAX);
        }
        let found = found.into_iter().map(|object| Ok(object.location));
        let mut deleted = self.store.delete_stream(futures::stream::iter(found).boxed());
        while let Some(deleted) = deleted.next().await {
            match deleted {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(local) = &self.local {
            local.remove_unfinished_below(&prefix).await?;
        }
        Ok(cleared)
    }

    /// Whether nothing lies below a prefix that ends in `/`.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store does not answer.
    pub async fn is_empty_below(&self, prefix: &str) -> Result<bool> {
        let prefix = path(prefix.trim_end_matches('/'))?;
        match self.store.list(Some(&prefix)).next().await {
            Some(Err(error)) => Err(error.into()),
            Some(Ok(_)) => Ok(false),
            None => Ok(true),
        }
    }

    /// The bytes of a range, whole in memory: for evidence, which is small.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses or the range is not there.
    #[boxed]
    pub async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        Ok(self.store.get_range(&path(key)?, range).await?)
    }

    /// The size of an object in bytes; `None` when it is not there. Behind a
    /// symbolic link in the folder of a local store nothing is.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses.
    #[boxed]
    pub async fn size(&self, key: &str) -> Result<Option<u64>> {
        match self.store.head(&path(key)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Streams an object, or a range of it.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses or the object is not there.
    #[boxed]
    pub async fn stream(
        &self,
        key: &str,
        range: Option<Range<u64>>,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let options = object_store::GetOptions { range: range.map(Into::into), ..Default::default() };
        let found = self.streams.get_opts(&path(key)?, options).await?;
        Ok(found.into_stream().map(|chunk| chunk.map_err(StoreError::from)).boxed())
    }
}

/// What gives out addresses of single objects. It speaks of the bucket as
/// browsers reach it, and asks it for nothing.
#[derive(Debug)]
struct Signer {
    bucket: AmazonS3,
    prefix: String,
    origin: Option<String>,
}

/// How the bytes behind an address are answered, whatever the object store
/// knows of them.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredAs<'a> {
    /// The `Content-Type`.
    pub content_type: &'a str,
    /// The `Content-Disposition`.
    pub disposition: &'a str,
}

impl Objects {
    /// The origin of the addresses that [`Self::signed_get`] gives out, such
    /// as `https://s3.eu-central-1.amazonaws.com`; `None` when there are none.
    #[must_use]
    pub fn signed_origin(&self) -> Option<&str> {
        self.signer.as_ref()?.origin.as_deref()
    }

    /// An address at which anybody reads one object for some time; `None` when
    /// the store gives out none.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when there are no credentials to sign with.
    pub async fn signed_get(
        &self,
        key: &str,
        answered_as: AnsweredAs<'_>,
        lifetime: Duration,
    ) -> Result<Option<Url>> {
        let Some(Signer { bucket, prefix, .. }) = &self.signer else { return Ok(None) };
        let key = if prefix.is_empty() { path(key)? } else { path(&format!("{prefix}/{key}"))? };
        let options = SignedUrlOptions::default().with_query([
            ("response-content-type", answered_as.content_type),
            ("response-content-disposition", answered_as.disposition),
        ]);
        Ok(Some(bucket.signed_url_opts(Method::GET, &key, lifetime, &options).await?))
    }
}

impl Objects {
    /// An address to which anybody writes one object for some time; `None` when
    /// the store gives out none.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when there are no credentials to sign with.
    pub async fn signed_put(&self, key: &str, lifetime: Duration) -> Result<Option<Url>> {
        let Some(Signer { bucket, prefix, .. }) = &self.signer else { return Ok(None) };
        let key = if prefix.is_empty() { path(key)? } else { path(&format!("{prefix}/{key}"))? };
        Ok(Some(bucket.signed_url(Method::PUT, &key, lifetime).await?))
    }
}

/// How long a bucket may be silent: letting go of what failed may take as long again, and
/// clients wait half a minute for an answer. How long one answer of it may take altogether:
/// as long as it goes on, because whoever reads a large object may be slow.
const BOUNDS: [(ClientConfigKey, &str); 2] =
    [(ClientConfigKey::ReadTimeout, "12 seconds"), (ClientConfigKey::Timeout, "1 day")];

/// How a request that failed is tried again: not for the minutes that others may wait.
fn tries() -> RetryConfig {
    RetryConfig { retry_timeout: Duration::from_secs(10), ..RetryConfig::default() }
}

/// Objects that were deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleared {
    /// How many.
    pub objects: i64,
    /// Their bytes.
    pub bytes: i64,
}

/// Size of the parts of a large object; the least that buckets accept.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// The memory that an [`ObjectWriter`] takes, bytes.
pub const WRITER_BYTES: u64 = 2 * PART_BYTES as u64;

/// An object being written. Small ones are put immediately, large ones go in parts,
/// so memory stays at two parts whatever the size. The object is visible only
/// after [`ObjectWriter::finish`]. Buckets keep, and charge for, the parts of an
/// upload that nobody ends: one that is not finished is let go of, at the latest
/// when its writer is dropped.
#[derive(Debug)]
pub struct ObjectWriter {
    store: Arc<dyn ObjectStore>,
    path: Path,
    buffer: BytesMut,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl ObjectWriter {
    /// Adds bytes.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses; call
    /// [`ObjectWriter::abort`] then.
    #[boxed]
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        while self.buffer.len() >= PART_BYTES {
            if self.upload.is_none() {
                self.upload = Some(self.store.put_multipart(&self.path).await?);
            }
            let part = self.buffer.split_to(PART_BYTES).freeze();
            if let Some(upload) = &mut self.upload {
                upload.put_part(part.into()).await?;
            }
        }
        Ok(())
    }

    /// Makes the object visible.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the store refuses; nothing is visible and
    /// nothing is kept then.
    #[boxed]
    pub async fn finish(&mut self) -> Result<()> {
        let rest = self.buffer.split().freeze();
        let Some(upload) = &mut self.upload else {
            self.store.put(&self.path, rest.into()).await?;
            return Ok(());
        };
        let finished = async {
            if !rest.is_empty() {
                upload.put_part(rest.into()).await?;
            }
            upload.complete().await
        }
        .await;
        match finished {
            Ok(_) => self.upload = None,
            Err(error) => {
                self.let_go().await;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Lets go of what was written so far.
    #[boxed]
    pub async fn abort(mut self) {
        self.let_go().await;
    }

    async fn let_go(&mut self) {
        if let Some(upload) = &mut self.upload {
            abort(&mut **upload).await;
        }
        // Only now: whoever is cancelled before leaves it to the drop.
        self.upload = None;
    }
}

impl Drop for ObjectWriter {
    /// Work may be cancelled between any two steps, as when its client hangs up.
    fn drop(&mut self) {
        let Some(mut upload) = self.upload.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { abort(&mut *upload).await });
        }
    }
}

#[boxed]
async fn abort(upload: &mut dyn MultipartUpload) {
    if let Err(error) = upload.abort().await {
        tracing::warn!(%error, "an unfinished object could not be let go of");
    }
}

/// Whether an error says that nothing lies under a key: also for a key below
/// a file, or longer than a name on this disk can be.
fn is_absent(error: &object_store::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let io = std::iter::from_fn(|| {
        let error = cause?;
        cause = error.source();
        Some(error.downcast_ref::<std::io::Error>())
    });
    let kind = io.flatten().next().map(std::io::Error::kind);
    matches!(error, object_store::Error::NotFound { .. })
        || matches!(kind, Some(ErrorKind::NotADirectory | ErrorKind::InvalidFilename))
}

/// Where the object of a key lies. The local backend refuses names that end in
/// `#` and digits, and mistakes one that ends in `:` for a drive; entries of
/// reports may be called so.
fn path(key: &str) -> Result<Path> {
    let escaped = key.replace('%', "%25").replace('#', "%23").replace(':', "%3A");
    Ok(Path::parse(escaped).map_err(object_store::Error::from)?)
}

/// Where a bucket that is described so is addressed.
fn origin_of(described: &AmazonS3Builder, bucket: &str) -> Option<String> {
    let value = |key: AmazonS3ConfigKey| described.get_config_value(&key).filter(|value| !value.is_empty());
    let endpoint = value(AmazonS3ConfigKey::S3Endpoint).or_else(|| value(AmazonS3ConfigKey::Endpoint));
    let endpoint = endpoint.unwrap_or_else(|| {
        let region = value(AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".to_owned());
        let is_in_name = value(AmazonS3ConfigKey::VirtualHostedStyleRequest).is_some_and(|text| {
            ["1", "true", "on", "yes", "y"].contains(&text.to_ascii_lowercase().as_str())
        });
        let bucket = if is_in_name { format!("{bucket}.") } else { String::new() };
        format!("https://{bucket}s3.{region}.amazonaws.com")
    });
    let origin = Url::parse(&endpoint).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

fn unusable(url: &str) -> StoreError {
    StoreError::Configuration(format!(
        "SERVICE_STORAGE_URL must begin with file://, s3://, gs:// or az:// and name a folder or bucket, got \"{url}\""
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use object_store::memory::InMemory;
    use object_store::{PutPayload, PutResult, UploadPart};
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    /// An upload whose last step fails, or hangs; it tells when it is aborted.
    #[derive(Debug)]
    struct Unfinishable {
        hangs: bool,
        aborted: Mutex<UnboundedSender<()>>,
    }

    impl MultipartUpload for Unfinishable {
        fn put_part(&mut self, _: PutPayload) -> UploadPart {
            async { Ok(()) }.boxed()
        }

        fn complete<'s, 'f>(&'s mut self) -> BoxFuture<'f, object_store::Result<PutResult>>
        where
            's: 'f,
            Self: 'f,
        {
            let hangs = self.hangs;
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Err(object_store::Error::NotImplemented { operation: "it".into(), implementer: "it".into() })
            }
            .boxed()
        }

        fn abort<'s, 'f>(&'s mut self) -> BoxFuture<'f, object_store::Result<()>>
        where
            's: 'f,
            Self: 'f,
        {
            self.aborted.lock().unwrap().send(()).unwrap();
            async { Ok(()) }.boxed()
        }
    }

    fn unfinishable(hangs: bool) -> (ObjectWriter, UnboundedReceiver<()>) {
        let (aborted, told) = unbounded_channel();
        let upload = Unfinishable { hangs, aborted: Mutex::new(aborted) };
        let writer = ObjectWriter {
            store: Arc::new(InMemory::new()),
            path: Path::from("object"),
            buffer: BytesMut::from(&b"rest"[..]),
            upload: Some(Box::new(upload)),
        };
        (writer, told)
    }

    #[tokio::test]
    async fn an_upload_that_is_not_finished_is_aborted_once_whatever_ends_it() {
        let (writer, mut told) = unfinishable(false);
        writer.abort().await;
        assert_eq!((told.recv().await, told.recv().await), (Some(()), None), "given up");

        let (mut writer, mut told) = unfinishable(false);
        assert!(writer.finish().await.is_err());
        drop(writer);
        assert_eq!((told.recv().await, told.recv().await), (Some(()), None), "refused");

        let (mut writer, mut told) = unfinishable(true);
        let finishing = tokio::spawn(async move { writer.finish().await });
        tokio::task::yield_now().await;
        finishing.abort();
        assert_eq!((told.recv().await, told.recv().await), (Some(()), None), "cancelled");
    }
}
