//! Authentication and authorization: who calls, and what the caller may access. The only place that returns 401, and
//! 403 or 404 for a bucket or source that a request names.

use std::net::IpAddr;
use std::sync::Arc;

use super::quota::Call;
use super::tokens::{Claims, IssuedToken, Session};
use super::{Service, keys};
use crate::catalog::{Annotation, Bucket, Catalog, KeyType, Role, Rule, Source, User, UserSession};
use crate::clock::MINUTE_NS;
use crate::error::{ErrorKind, ServiceError};
use crate::ids::ObjectId;

/// An authenticated caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The organization whose resources the caller may see.
    pub organization_id: ObjectId,
    pub credential: Credential,
    /// The client's address, if it is known; for the audit.
    pub address: Option<IpAddr>,
}

/// A caller and the outcome of counting its call.
pub struct Admission {
    pub caller: Caller,
    /// A new token of the caller's session, if the one that was sent is in the second half of its life.
    pub renewed: Option<IssuedToken>,
    /// Whether the monthly quota has room for the call.
    pub call: Call,
}

/// The credential that a caller presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// An API key.
    Key {
        id: ObjectId,
        kind: KeyType,
        /// The only bucket that a write or read key gives access to.
        bucket_id: Option<ObjectId>,
    },
    /// A bearer token.
    Bearer {
        /// The user who signed in.
        user_id: ObjectId,
        /// The session that the token belongs to.
        session: Session,
        /// What the user may do at present.
        role: Role,
    },
    /// A link that shows a board.
    Share { id: ObjectId },
}

impl Caller {
    /// The id of the key, user or link, for `updatedBy` and `keyId`.
    pub fn actor_id(&self) -> ObjectId {
        match self.credential {
            Credential::Key { id, .. } => id,
            Credential::Bearer { user_id, .. } => user_id,
            Credential::Share { id } => id,
        }
    }

    /// The key's type; `None` for a bearer and a link.
    pub fn key_type(&self) -> Option<KeyType> {
        match self.credential {
            Credential::Key { kind, .. } => Some(kind),
            Credential::Bearer { .. } | Credential::Share { .. } => None,
        }
    }

    /// The only bucket that the caller may reach; `None` for all of the organization.
    pub fn bucket_id(&self) -> Option<ObjectId> {
        match self.credential {
            Credential::Key { bucket_id, .. } => bucket_id,
            Credential::Bearer { .. } | Credential::Share { .. } => None,
        }
    }

    /// Checks that a person has this role or one that may do more. Keys have no role: their type says what they allow.
    ///
    /// # Errors
    /// 403 that names the role.
    pub fn check_role(&self, least: Role) -> Result<(), ServiceError> {
        match self.credential {
            Credential::Bearer { role, .. } if role < least => Err(ServiceError::forbidden(format!(
                "this needs the role {}, and your role is {}; ask an owner of the organization",
                least.name(),
                role.name()
            ))),
            Credential::Bearer { .. } | Credential::Key { .. } | Credential::Share { .. } => Ok(()),
        }
    }

    fn may_reach(&self, bucket_id: ObjectId) -> bool {
        self.bucket_id().is_none_or(|scope| scope == bucket_id)
    }
}

/// The credentials that a route takes, and whether a bearer's calls count against the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u8);

impl Access {
    /// Only the bearer token.
    pub const BEARER: Self = Self(1);
    /// Admin keys, and the bearer, who may do everything that an admin key may.
    pub const ADMIN: Self = Self::of_key(KeyType::Admin).or(Self::BEARER);
    pub const WRITE: Self = Self::of_key(KeyType::Write);
    pub const READ: Self = Self::of_key(KeyType::Read);
    pub const INTEGRATION: Self = Self::of_key(KeyType::Integration);
    const COUNTS_BEARER: u8 = 1 << 7;

    /// The union of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Also counts the calls of a bearer. By default only calls with a key count.
    #[must_use]
    pub const fn counting_bearer(self) -> Self {
        Self(self.0 | Self::COUNTS_BEARER)
    }

    /// Whether a bearer's call counts, and is refused when the monthly quota is used up.
    pub fn counts_bearer(self) -> bool {
        self.0 & Self::COUNTS_BEARER != 0
    }

    /// Checks that the route takes the caller's credential.
    ///
    /// # Errors
    /// 403 that says which credentials the route takes.
    pub fn check(self, caller: &Caller) -> Result<(), ServiceError> {
        let needed = match caller.credential {
            Credential::Key { kind, .. } => Self::of_key(kind),
            Credential::Bearer { .. } => Self::BEARER,
            // The token of a link is no credential anywhere else.
            Credential::Share { .. } => Self(0),
        };
        if self.0 & needed.0 != 0 {
            return Ok(());
        }
        let shown = match caller.credential {
            Credential::Key { kind, .. } => format!("the {} API key", kind.name()),
            Credential::Bearer { .. } => "the bearer token".to_owned(),
            Credential::Share { .. } => "the link to a board".to_owned(),
        };
        Err(ServiceError::forbidden(format!(
            "{shown} does not allow this; use {}",
            self.described()
        )))
    }

    /// Returns the names of the API key types that the route takes.
    pub fn key_types(self) -> Vec<&'static str> {
        KeyType::ALL
            .into_iter()
            .filter(|kind| self.0 & Self::of_key(*kind).0 != 0)
            .map(KeyType::name)
            .collect()
    }

    /// The bit after [`Access::BEARER`] for the first key type, and so on.
    const fn of_key(kind: KeyType) -> Self {
        Self(2 << kind as u8)
    }

    fn described(self) -> String {
        let article = |kind: &str| match kind.starts_with(['a', 'i']) {
            true => "an",
            false => "a",
        };
        let keys = self.key_types().into_iter();
        let mut names: Vec<_> = keys.map(|kind| format!("{} {kind} key", article(kind))).collect();
        if self.0 & Self::BEARER.0 != 0 {
            names.push("the bearer token of a sign-in".to_owned());
        }
        names.join(" or ")
    }
}

impl Service {
    /// Finds a source and its bucket, as [`source_for`] does.
    pub(super) fn find_source(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
    ) -> Result<(Arc<Bucket>, Arc<Source>), ServiceError> {
        self.catalog
            .read(|catalog| source_for(catalog, caller, bucket_id, source_id))
    }

    /// Admits the caller of an API key: records the key's use and counts the call.
    ///
    /// # Errors
    /// 401 when the key is unknown, deleted or expired.
    pub fn admit_key(&self, presented: &[u8], address: Option<IpAddr>) -> Result<Admission, ServiceError> {
        let hash = keys::hash_of(presented);
        let now_ns = self.now_ns();
        self.catalog.read(|catalog| {
            let key = catalog.key_by_hash(&hash.0);
            let key = key
                .filter(|key| key.accepts(&hash, now_ns))
                .ok_or_else(unknown_key)?;
            let minute = minute_of(now_ns);
            if key.touch(minute) {
                self.unsaved_key_uses.lock().push((key.id, minute));
            }
            let caller = Caller {
                organization_id: key.organization_id,
                credential: Credential::Key {
                    id: key.id,
                    kind: key.kind,
                    bucket_id: key.bucket_id,
                },
                address,
            };
            // An evaluator that polls each minute must not use up the quota.
            let is_counted = key.kind != KeyType::Integration;
            let admission = self.admit(catalog, caller, is_counted, now_ns);
            if !admission.call.is_refused() {
                self.count_key_call(key, now_ns);
            }
            Ok(admission)
        })
    }

    /// Checks that a key is known. The call does not count.
    ///
    /// # Errors
    /// 401 when it is unknown, deleted or expired.
    pub fn check_key(&self, presented: &[u8]) -> Result<(), ServiceError> {
        let hash = keys::hash_of(presented);
        let now_ns = self.now_ns();
        let is_known = self.catalog.read(|catalog| {
            let key = catalog.key_by_hash(&hash.0);
            key.is_some_and(|key| key.accepts(&hash, now_ns))
        });
        if is_known { Ok(()) } else { Err(unknown_key()) }
    }

    /// Checks that a bearer token is valid. The call does not count.
    ///
    /// # Errors
    /// As [`Service::admit_token`].
    pub fn check_token(&self, token: &str) -> Result<(), ServiceError> {
        let claims = self.tokens.verify(token, self.now_ns())?;
        self.catalog.read(|catalog| user_of(catalog, &claims).map(drop))
    }

    /// Admits the caller of a bearer token. Using the dashboard does not use up the quota: a bearer's calls only count
    /// on routes that sensors use, such as ingestion.
    ///
    /// # Errors
    /// 401 when the token is malformed, expired, older than the password, or of a session that has ended.
    pub fn admit_token(
        &self,
        token: &str,
        is_counted: bool,
        address: Option<IpAddr>,
    ) -> Result<Admission, ServiceError> {
        let now_ns = self.now_ns();
        let claims = self.tokens.verify(token, now_ns)?;
        let session = claims.session();
        let renewed = match claims.is_to_be_renewed(now_ns) {
            true => Some(
                self.tokens
                    .issue(claims.user_id, claims.password_version, session, now_ns)?,
            ),
            false => None,
        };
        self.catalog.read(|catalog| {
            let (user, record) = user_of(catalog, &claims)?;
            self.note_session_use(user.id, record, now_ns);
            let caller = Caller {
                organization_id: user.organization_id,
                credential: Credential::Bearer {
                    user_id: user.id,
                    session,
                    role: user.role,
                },
                address,
            };
            Ok(Admission {
                renewed,
                ..self.admit(catalog, caller, is_counted, now_ns)
            })
        })
    }

    fn admit(&self, catalog: &Catalog, caller: Caller, is_counted: bool, now_ns: i64) -> Admission {
        let call = self.count_call(catalog, caller.organization_id, is_counted, now_ns);
        Admission {
            caller,
            renewed: None,
            call,
        }
    }
}

/// The user and the session of a token, while the session lasts: until its record is gone. Tokens that were issued before
/// sessions had records are refused, so that everybody signs in once after the upgrade: a session without a record could
/// be neither listed nor told from one that was ended.
fn user_of<'a>(catalog: &'a Catalog, claims: &Claims) -> Result<(&'a User, &'a UserSession), ServiceError> {
    catalog
        .user(claims.user_id)
        .filter(|user| user.password_version == claims.password_version)
        .and_then(|user| Some((&**user, user.session(claims.session().id)?)))
        .ok_or_else(|| ServiceError::unauthorized("the bearer token is no longer valid; sign in again"))
}

pub(super) fn unknown_key() -> ServiceError {
    ServiceError::unauthorized("the API key is invalid, expired or deleted; check X-API-Key")
}

/// Minutes since the epoch.
fn minute_of(now_ns: i64) -> u32 {
    u32::try_from(now_ns / MINUTE_NS).unwrap_or(0)
}

/// Finds the bucket that a request names: 404 when it is unknown or another organization's, without a difference; 403
/// when a bucket-scoped key names another bucket of its organization.
pub fn bucket_for(
    catalog: &Catalog,
    caller: &Caller,
    bucket_id: ObjectId,
) -> Result<Arc<Bucket>, ServiceError> {
    let bucket = catalog
        .bucket(bucket_id)
        .filter(|bucket| bucket.organization_id == caller.organization_id)
        .ok_or_else(|| ServiceError::not_found("bucket"))?;
    if caller.may_reach(bucket_id) {
        Ok(Arc::clone(bucket))
    } else {
        Err(ServiceError::forbidden(
            "API key does not have access to this bucket",
        ))
    }
}

/// Finds the bucket of an object that a request names. If the bucket is another organization's, the object is not
/// found.
fn bucket_of(
    catalog: &Catalog,
    caller: &Caller,
    bucket_id: ObjectId,
    not_found: impl FnOnce() -> ServiceError,
) -> Result<Arc<Bucket>, ServiceError> {
    bucket_for(catalog, caller, bucket_id).map_err(|error| match error.kind {
        ErrorKind::Forbidden => error,
        _ => not_found(),
    })
}

/// Finds the source that a request names, after checking its bucket. A bucket-scoped key that names a source of another
/// bucket of its organization gets the same 403 as for the bucket.
///
/// # Errors
/// As [`bucket_for`]; 404 when the bucket has no such source.
pub fn source_for(
    catalog: &Catalog,
    caller: &Caller,
    bucket_id: ObjectId,
    source_id: ObjectId,
) -> Result<(Arc<Bucket>, Arc<Source>), ServiceError> {
    let bucket = bucket_for(catalog, caller, bucket_id)?;
    let not_found = || ServiceError::not_found("data source");
    let source = catalog.source(source_id).ok_or_else(not_found)?;
    bucket_of(catalog, caller, source.bucket_id, not_found)?;
    if source.bucket_id == bucket_id {
        Ok((bucket, Arc::clone(source)))
    } else {
        Err(not_found())
    }
}

/// Finds the source that a request names without its bucket, and its bucket: 404 when it is unknown or another
/// organization's, 403 when a bucket-scoped key names a source of another bucket.
pub fn lone_source_for(
    catalog: &Catalog,
    caller: &Caller,
    source_id: ObjectId,
) -> Result<(Arc<Bucket>, Arc<Source>), ServiceError> {
    let not_found = || ServiceError::not_found("data source");
    let source = catalog.source(source_id).ok_or_else(not_found)?;
    let bucket = bucket_of(catalog, caller, source.bucket_id, not_found)?;
    Ok((bucket, Arc::clone(source)))
}

/// Finds the annotation that a request names: 404 when it is unknown or another organization's, 403 when a bucket-scoped
/// key names one of another bucket.
pub fn annotation_for(
    catalog: &Catalog,
    caller: &Caller,
    id: ObjectId,
) -> Result<Arc<Annotation>, ServiceError> {
    let not_found = || ServiceError::not_found("annotation");
    let annotation = catalog.annotation(id).ok_or_else(not_found)?;
    bucket_of(catalog, caller, annotation.bucket_id, not_found)?;
    Ok(Arc::clone(annotation))
}

/// Finds the rule that a request names, and its bucket: 404 when it is unknown or another organization's, 403 when a
/// bucket-scoped key names a rule of another bucket.
pub fn rule_for(
    catalog: &Catalog,
    caller: &Caller,
    rule_id: ObjectId,
) -> Result<(Arc<Bucket>, Arc<Rule>), ServiceError> {
    let not_found = || ServiceError::not_found("alert rule");
    let rule = catalog.rule(rule_id).ok_or_else(not_found)?;
    let bucket = bucket_of(catalog, caller, rule.bucket_id, not_found)?;
    Ok((bucket, Arc::clone(rule)))
}
