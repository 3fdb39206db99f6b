//! File grants: sealed values in the path of `/f/<grant>/…` that open one
//! file or everything below one storage prefix, for at most an hour. They take
//! no cookie, so relative links inside a report work on an origin that knows
//! nobody. Each is made for an account and opens nothing when that account
//! could not open it itself any more.

use callboard_domain::ids::{ApiKeyId, FileId, ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::keys::{KeyRing, Purpose, SealingFailed, Secrets};
use crate::principal::AccountFacts;
use crate::scope::Authorized;

/// Longest life of a grant, milliseconds.
pub const MAX_LIFETIME_MS: i64 = 60 * 60 * 1000;

/// A prefix is a storage key of ours; nothing longer is a grant.
const MAX_TOKEN_CHARS: usize = 2048;
/// The form of the sealed bytes; others open nothing.
const FORM: u8 = 3;
const KIND_FILE: u8 = 1;
const KIND_PREFIX: u8 = 2;

/// What a grant opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantTarget {
    /// One file.
    File(FileId),
    /// Every object whose key starts with this; it ends in `/`.
    Prefix(String),
}

/// Whom a grant is made for. While authentication is off there is nobody to
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkHolder {
    /// The account.
    pub user: UserId,
    /// Its epoch.
    pub epoch: i64,
    /// The key it was asked for with: the grant dies with it.
    pub key: Option<ApiKeyId>,
}

/// An opened grant: unaltered, in time, and of this installation. Whether its
/// holder still reaches the project has to be asked: [`Grant::redeem`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    project: ProjectId,
    holder: Option<LinkHolder>,
    target: GrantTarget,
    expires: Timestamp,
}

impl Grant {
    /// The project the grant was sealed for.
    #[must_use]
    pub const fn project(&self) -> ProjectId {
        self.project
    }

    /// Whom it was sealed for.
    #[must_use]
    pub const fn holder(&self) -> Option<LinkHolder> {
        self.holder
    }

    /// Proof of access to the project, given what is known of the holder's
    /// account now; nothing is known of one that is gone or disabled, or whose
    /// key is.
    ///
    /// # Errors
    /// [`GrantRefusal::Invalid`] when that account could not be given this
    /// grant any more, and for a grant that was made for nobody.
    pub fn redeem(&self, holder: Option<&AccountFacts>) -> Result<Authorized<ProjectId>, GrantRefusal> {
        let (Some(made_for), Some(facts)) = (self.holder, holder) else { return Err(GrantRefusal::Invalid) };
        if (made_for.user, made_for.epoch) != (facts.account.user, facts.account.epoch) {
            return Err(GrantRefusal::Invalid);
        }
        facts.scope().authorize(self.project).map_err(|_| GrantRefusal::Invalid)
    }

    /// Proof of access to the project while authentication is off.
    #[must_use]
    pub const fn redeem_with_authentication_off(&self) -> Authorized<ProjectId> {
        Authorized::grant(self.project)
    }

    /// What it opens.
    #[must_use]
    pub const fn target(&self) -> &GrantTarget {
        &self.target
    }

    /// The moment it stops opening anything.
    #[must_use]
    pub const fn expires(&self) -> Timestamp {
        self.expires
    }
}

/// Why a grant opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// Not a grant of this installation, or altered.
    #[error("This file link is not valid.")]
    Invalid,
    /// Its time is over.
    #[error("This file link has expired; open the file from its page again.")]
    Expired,
}

/// Seals and opens grants.
#[derive(Debug, Clone)]
pub struct FileGrants(KeyRing);

impl FileGrants {
    /// Derives the grant keys of these secrets: the first seals, all open.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self(KeyRing::derive(secrets, Purpose::FILE_GRANT))
    }

    /// Seals a grant for a project the caller has proven access to. The life
    /// is cut to [`MAX_LIFETIME_MS`]. `audience` is the host it opens anything
    /// on, empty where that does not matter.
    ///
    /// # Errors
    /// [`SealingFailed`] without a key or randomness.
    pub fn seal(
        &self,
        project: Authorized<ProjectId>,
        target: &GrantTarget,
        holder: Option<LinkHolder>,
        audience: &str,
        now: Timestamp,
        lifetime_ms: i64,
    ) -> Result<String, SealingFailed> {
        let expires = Timestamp(now.millis() + lifetime_ms.clamp(0, MAX_LIFETIME_MS));
        let grant = Grant { project: project.get(), holder, target: target.clone(), expires };
        self.0.seal_text(&encode(&grant), audience.as_bytes())
    }

    /// Opens a grant that was sealed for one of these audiences.
    ///
    /// # Errors
    /// [`GrantRefusal`].
    pub fn open(&self, token: &str, audiences: &[&str], now: Timestamp) -> Result<Grant, GrantRefusal> {
        let found = audiences.iter().find_map(|audience| self.unseal(token, audience));
        let grant = found.ok_or(GrantRefusal::Invalid)?;
        if grant.expires <= now { Err(GrantRefusal::Expired) } else { Ok(grant) }
    }

    fn unseal(&self, token: &str, audience: &str) -> Option<Grant> {
        decode(&self.0.open_text(token, audience.as_bytes(), MAX_TOKEN_CHARS)?.value)
    }
}

fn encode(grant: &Grant) -> Vec<u8> {
    let (user, epoch) = grant.holder.map_or((0, 0), |holder| (holder.user.get(), holder.epoch));
    let key = grant.holder.and_then(|holder| holder.key).map_or(0, ApiKeyId::get);
    let mut plain = Vec::with_capacity(128);
    plain.push(FORM);
    for number in [grant.project.get(), grant.expires.millis(), user, epoch, key] {
        plain.extend(number.to_be_bytes());
    }
    match &grant.target {
        GrantTarget::File(file) => {
            plain.push(KIND_FILE);
            plain.extend(file.get().to_be_bytes());
        }
        GrantTarget::Prefix(prefix) => {
            plain.push(KIND_PREFIX);
            plain.extend(prefix.as_bytes());
        }
    }
    plain
}

fn decode(plain: &[u8]) -> Option<Grant> {
    let mut rest = plain.strip_prefix(&[FORM])?;
    let mut numbers = [0_i64; 5];
    for number in &mut numbers {
        let (bytes, after) = rest.split_first_chunk()?;
        (*number, rest) = (i64::from_be_bytes(*bytes), after);
    }
    let [project, expires, user, epoch, key] = numbers;
    let (kind, rest) = rest.split_first()?;
    let target = match *kind {
        KIND_FILE => GrantTarget::File(FileId(i64::from_be_bytes(rest.try_into().ok()?))),
        KIND_PREFIX => GrantTarget::Prefix(String::from_utf8(rest.to_vec()).ok()?),
        _ => return None,
    };
    // Ids begin with 1.
    let key = (key != 0).then_some(ApiKeyId(key));
    let holder = (user != 0).then_some(LinkHolder { user: UserId(user), epoch, key });
    Some(Grant { project: ProjectId(project), holder, target, expires: Timestamp(expires) })
}

#[cfg(test)]
mod tests {
    use callboard_domain::account::Role;

    use super::*;
    use crate::principal::Account;
    use crate::scope::Scope;

    const NOW: Timestamp = Timestamp(1_767_261_600_000);
    const HERE: &[&str] = &["localhost"];
    const SECRET: &[u8] = b"a secret of thirty-two bytes!!!!";
    const HOLDER: LinkHolder = LinkHolder { user: UserId(7), epoch: 2, key: Some(ApiKeyId(4)) };

    fn grants(secrets: &[&[u8]]) -> FileGrants {
        FileGrants::new(&Secrets::new(secrets))
    }

    fn seal(grants: &FileGrants, target: &GrantTarget) -> String {
        let project = Scope::all().authorize(ProjectId(3)).unwrap();
        grants.seal(project, target, Some(HOLDER), "localhost", NOW, MAX_LIFETIME_MS * 9).unwrap()
    }

    fn report() -> GrantTarget {
        GrantTarget::Prefix("project-3/reports/42/7/".to_owned())
    }

    #[test]
    fn a_grant_opens_what_it_was_sealed_for_within_the_hour() {
        let grants = grants(&[SECRET]);
        for target in [report(), GrantTarget::File(FileId(9))] {
            let grant = grants.open(&seal(&grants, &target), HERE, NOW).unwrap();
            assert_eq!(grant.target(), &target);
            assert_eq!((grant.project(), grant.holder()), (ProjectId(3), Some(HOLDER)));
            assert_eq!(grant.expires(), Timestamp(NOW.millis() + MAX_LIFETIME_MS));
        }
        let token = seal(&grants, &report());
        let end = Timestamp(NOW.millis() + MAX_LIFETIME_MS);
        assert!(grants.open(&token, HERE, Timestamp(end.millis() - 1)).is_ok());
        assert_eq!(grants.open(&token, HERE, end), Err(GrantRefusal::Expired));
    }

    #[test]
    fn a_grant_opens_nothing_that_its_holder_could_not_open() {
        let holder = |user, epoch, role, projects: &[i64]| AccountFacts {
            account: Account { user: UserId(user), username: "ada".into(), role, epoch },
            all_projects: false,
            projects: projects.iter().map(|id| ProjectId(*id)).collect(),
        };
        let grants = grants(&[SECRET]);
        let grant = grants.open(&seal(&grants, &report()), HERE, NOW).unwrap();
        assert!(grant.redeem(Some(&holder(7, 2, Role::User, &[3]))).is_ok());
        assert!(grant.redeem(Some(&holder(7, 2, Role::Administrator, &[]))).is_ok());
        for changed in [
            holder(7, 2, Role::Reporter, &[4]),
            holder(7, 3, Role::User, &[3]),
            holder(8, 2, Role::Administrator, &[]),
        ] {
            assert_eq!(grant.redeem(Some(&changed)), Err(GrantRefusal::Invalid));
        }
        assert_eq!(grant.redeem(None), Err(GrantRefusal::Invalid));

        let project = Scope::all().authorize(ProjectId(3)).unwrap();
        let nobodys = grants.seal(project, &report(), None, "", NOW, MAX_LIFETIME_MS).unwrap();
        let nobodys = grants.open(&nobodys, &[""], NOW).unwrap();
        assert_eq!(nobodys.holder(), None);
        assert!(nobodys.redeem(Some(&holder(7, 2, Role::Administrator, &[]))).is_err());
        assert_eq!(nobodys.redeem_with_authentication_off().get(), ProjectId(3));
    }

    #[test]
    fn a_grant_opens_nothing_on_another_host() {
        let grants = grants(&[SECRET]);
        let token = seal(&grants, &report());
        for elsewhere in [&["127.0.0.1"][..], &["files.localhost"], &[""], &[]] {
            assert_eq!(grants.open(&token, elsewhere, NOW), Err(GrantRefusal::Invalid), "{elsewhere:?}");
        }
        assert!(grants.open(&token, &["127.0.0.1", "localhost"], NOW).is_ok());
    }

    #[test]
    fn nonsense_and_altered_grants_do_not_open() {
        let grants = grants(&[SECRET]);
        let token = seal(&grants, &report());
        for at in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            // Another letter of the alphabet whose lowest bits differ in no padding position.
            altered[at] = if altered[at] == b'A' { b'Q' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(grants.open(&altered, HERE, NOW), Err(GrantRefusal::Invalid), "character {at}");
        }
        for nonsense in ["", "AA", "not base64!", &"A".repeat(5000)] {
            assert_eq!(grants.open(nonsense, HERE, NOW), Err(GrantRefusal::Invalid));
        }
    }

    #[test]
    fn grants_survive_a_rotation_while_the_old_secret_is_listed() {
        let old = grants(&[SECRET]);
        let token = seal(&old, &report());
        let rotated = grants(&[b"the new secret, thirty-two bytes", SECRET]);
        assert!(rotated.open(&token, HERE, NOW).is_ok());
        assert_eq!(old.open(&seal(&rotated, &report()), HERE, NOW), Err(GrantRefusal::Invalid));
    }
}
