//! The catalog as objects, each of which is written when it has changed: how two versions are compared, and how they
//! are encoded. Layout in FORMAT.md, "Objects".

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::object_key::{Kind, NOBODY};
use super::pages::Page;
use super::registry::Owned;
use super::{
    Annotation, Attempt, Board, Body, Bucket, Bytes, Catalog, Delivery, DeliveryStatus, Event, EventBody,
    Key, MonthCalls, MonthDay, ObjectKey, Organization, Receiver, Role, Rule, Schema, Silence, SnapshotError,
    Source, User, Webhook,
};
use crate::ids::ObjectId;

/// Raised when an older program could misread the objects as a whole. A new layout of one kind is a new kind.
pub(super) const OBJECTS_VERSION: u32 = 2;

/// An object of the catalog. Shares what it holds with the catalog: copying it copies a pointer.
#[derive(PartialEq)]
pub(super) enum Object {
    Root(Box<Root>),
    Organization(OrganizationImage),
    Calls(Box<CallsImage>),
    User(Arc<User>),
    Bucket(BucketImage),
    Key(KeyImage),
    /// A page of sources and its bucket.
    Sources(ObjectId, Arc<Page<Source>>),
    Rule(Arc<Rule>),
    Webhook(WebhookImage),
    Silence(SilenceImage),
    Annotation(AnnotationImage),
    Board(BoardImage),
    DeliveryBody(DeliveryBody),
    DeliveryState(DeliveryState),
    /// A body that deliveries share.
    Event(Arc<EventBody>),
}

/// Identifies a version of an object without reading it: its address, and a number that distinguishes what is at the
/// same address.
pub(super) type Identity = (usize, u64);

fn address<T>(pointer: &Arc<T>) -> usize {
    Arc::as_ptr(pointer).addr()
}

impl Object {
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Root(_) => Kind::Root.key(NOBODY, NOBODY),
            Self::Organization(it) => Kind::Organization.key(it.organization.id, it.organization.id),
            Self::Calls(it) => Kind::Calls.key(it.organization_id, it.organization_id),
            Self::User(it) => match it.role {
                Role::Owner => Kind::User.key(it.organization_id, it.id),
                Role::Editor | Role::Viewer => Kind::LimitedUser.key(it.organization_id, it.id),
            },
            Self::Bucket(it) => Kind::Bucket.key(it.bucket.id, it.bucket.id),
            Self::Key(it) => Kind::Key.key(it.key.owner(), it.key.id),
            Self::Sources(bucket_id, page) => ObjectKey::page(*bucket_id, page.number()),
            Self::Rule(it) => Kind::Rule.key(it.owner(), it.id),
            Self::Webhook(it) => Kind::Webhook.key(it.webhook.owner(), it.webhook.id),
            Self::Silence(it) => Kind::Silence.key(it.silence.owner(), it.silence.id),
            Self::Annotation(it) => Kind::Annotation.key(it.annotation.owner(), it.annotation.id),
            Self::Board(it) => Kind::Board.key(it.board.owner(), it.board.id),
            Self::DeliveryBody(DeliveryBody(it)) => kind_of_body(&it.body).key(it.receiver.owner(), it.id),
            Self::DeliveryState(DeliveryState(it)) => Kind::DeliveryState.key(it.receiver.owner(), it.id),
            Self::Event(it) => Kind::Event.key(it.organization_id, it.id),
        }
    }

    /// Equal identities mean equal objects. `None` for objects that are compared by content.
    pub fn identity(&self) -> Option<Identity> {
        Some(match self {
            Self::Root(_) | Self::Calls(_) => return None,
            Self::Organization(it) => (address(&it.organization), 0),
            Self::User(it) => (address(it), 0),
            Self::Bucket(it) => (address(&it.bucket), it.next_source_ordinal.into()),
            Self::Key(it) => (
                address(&it.key),
                u64::from(it.last_used_minute) << 32 | u64::from(it.calls.calls as u32),
            ),
            Self::Sources(_, page) => (address(page), 0),
            Self::Rule(it) => (address(it), 0),
            Self::Webhook(it) => (address(&it.webhook), 0),
            Self::Silence(it) => (address(&it.silence), 0),
            Self::Annotation(it) => (address(&it.annotation), 0),
            Self::Board(it) => (address(&it.board), 0),
            Self::DeliveryBody(DeliveryBody(it)) => (address(it), 0),
            Self::DeliveryState(DeliveryState(it)) => (address(it), 1),
            Self::Event(it) => (address(it), 0),
        })
    }

    /// Encodes the content.
    ///
    /// # Errors
    /// Never fails for the objects of a catalog; the error type is that of the encoder.
    pub fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        match self {
            Self::Root(it) => rmp_serde::to_vec_named(it),
            Self::Organization(it) => rmp_serde::to_vec_named(it),
            Self::Calls(it) => rmp_serde::to_vec_named(it),
            Self::User(it) => rmp_serde::to_vec_named(it),
            Self::Bucket(it) => rmp_serde::to_vec_named(it),
            Self::Key(it) => rmp_serde::to_vec_named(&KeyImage {
                key: Arc::new(it.key.with_uses(it.last_used_minute, it.calls)),
                ..*it
            }),
            Self::Sources(_, page) => rmp_serde::to_vec_named(&SourcesImage::of(page.iter())),
            Self::Rule(it) => rmp_serde::to_vec_named(it),
            Self::Webhook(it) => rmp_serde::to_vec_named(it),
            Self::Silence(it) => rmp_serde::to_vec_named(it),
            Self::Annotation(it) => rmp_serde::to_vec_named(it),
            Self::Board(it) => rmp_serde::to_vec_named(it),
            Self::DeliveryBody(it) => rmp_serde::to_vec_named(&it.image()),
            // Encoded without the members' names, which would be half of the bytes that an attempt writes to disk.
            Self::DeliveryState(it) => rmp_serde::to_vec(&it.image()),
            Self::Event(it) => rmp_serde::to_vec_named(it),
        }
    }
}

/// The kind of a delivery's body: one that refers to an event has a kind of its own.
const fn kind_of_body(body: &Body) -> Kind {
    match body {
        Body::Whole(_) | Body::Named(_) => Kind::DeliveryBody,
        Body::Shared(_) => Kind::SharedDelivery,
    }
}

/// Properties of the catalog as a whole. Changes whenever a bucket, key, rule, webhook, silence, annotation or board
/// is created.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Root {
    pub version: u32,
    pub server_secret: Option<Bytes<32>>,
    pub last_bucket_ordinal: u32,
    pub last_key_ordinal: u64,
    pub last_rule_ordinal: u64,
    pub last_webhook_ordinal: u64,
    pub last_silence_ordinal: u64,
    pub last_annotation_ordinal: u64,
    pub last_board_ordinal: u64,
}

/// The version of the root or of a snapshot, which must be present. It is decoded before the rest, whose members may
/// mean something else in a newer version.
#[derive(Deserialize)]
pub(super) struct Version {
    pub version: u32,
}

impl Version {
    pub const fn check(&self, known: u32) -> Result<(), SnapshotError> {
        let found = self.version;
        if found > known {
            return Err(SnapshotError::UnknownVersion { found, known });
        }
        Ok(())
    }
}

impl Root {
    pub fn of(catalog: &Catalog) -> Self {
        Self {
            version: OBJECTS_VERSION,
            server_secret: catalog.server_secret,
            last_bucket_ordinal: catalog.last_bucket_ordinal,
            last_key_ordinal: catalog.keys.last_ordinal,
            last_rule_ordinal: catalog.rules.last_ordinal,
            last_webhook_ordinal: catalog.webhooks.last_ordinal,
            last_silence_ordinal: catalog.silences.registry.last_ordinal,
            last_annotation_ordinal: catalog.annotations.last_ordinal,
            last_board_ordinal: catalog.boards.last_ordinal,
        }
    }
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct OrganizationImage {
    /// Position in the order of creation.
    pub position: u32,
    pub organization: Arc<Organization>,
}

/// The calls of an organization that has any.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct CallsImage {
    pub organization_id: ObjectId,
    /// In order of the months.
    pub months: Vec<(MonthDay, u64)>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BucketImage {
    pub bucket: Arc<Bucket>,
    pub next_source_ordinal: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct KeyImage {
    pub ordinal: u64,
    pub key: Arc<Key>,
    /// The last use at the time of a snapshot; it changes behind the pointer.
    #[serde(skip)]
    pub last_used_minute: u32,
    /// The calls at that time.
    #[serde(skip)]
    pub calls: MonthCalls,
}

/// Besides its uses, only a rotation changes a key, and no other key has its ordinal.
impl PartialEq for KeyImage {
    fn eq(&self, other: &Self) -> bool {
        let uses = |it: &Self| (it.ordinal, it.last_used_minute, it.calls);
        let values = |it: &Self| (it.key.hash, it.key.former);
        uses(self) == uses(other) && values(self) == values(other)
    }
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct WebhookImage {
    pub ordinal: u64,
    pub webhook: Arc<Webhook>,
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct SilenceImage {
    pub ordinal: u64,
    pub silence: Arc<Silence>,
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct AnnotationImage {
    pub ordinal: u64,
    pub annotation: Arc<Annotation>,
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct BoardImage {
    pub ordinal: u64,
    pub board: Arc<Board>,
}

/// The members of a delivery that an attempt does not change. A shared body is encoded as a reference to its event.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct DeliveryBodyImage<'a> {
    pub id: ObjectId,
    pub webhook_id: ObjectId,
    pub receiver: Cow<'a, Receiver>,
    pub event: Event,
    pub body: Cow<'a, Body>,
    pub created_at_ns: i64,
    #[serde(default)]
    pub organization_id: Option<ObjectId>,
}

/// The members of a delivery that an attempt changes. Encoded in this order, without names: new members go to the end,
/// with a default.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct DeliveryStateImage<'a> {
    pub id: ObjectId,
    pub status: DeliveryStatus,
    pub attempts: Cow<'a, [Attempt]>,
    pub tries: u8,
    pub next_attempt_at_ns: Option<i64>,
    #[serde(default)]
    pub again: bool,
}

/// A pending delivery, of which only the members that an attempt does not change are compared and written.
pub(super) struct DeliveryBody(pub Arc<Delivery>);

impl DeliveryBody {
    fn image(&self) -> DeliveryBodyImage<'_> {
        DeliveryBodyImage {
            id: self.0.id,
            webhook_id: self.0.webhook_id,
            receiver: Cow::Borrowed(&self.0.receiver),
            event: self.0.event,
            body: Cow::Borrowed(&self.0.body),
            created_at_ns: self.0.created_at_ns,
            organization_id: self.0.organization_id,
        }
    }
}

impl PartialEq for DeliveryBody {
    fn eq(&self, other: &Self) -> bool {
        self.image() == other.image()
    }
}

/// A pending delivery, of which only the members that an attempt changes are compared and written.
pub(super) struct DeliveryState(pub Arc<Delivery>);

impl DeliveryState {
    fn image(&self) -> DeliveryStateImage<'_> {
        DeliveryStateImage {
            id: self.0.id,
            status: self.0.status,
            attempts: without_repeated_errors(&self.0.attempts),
            tries: self.0.tries,
            next_attempt_at_ns: self.0.next_attempt_at_ns,
            again: self.0.again,
        }
    }
}

/// Attempts as stored: the error of an attempt that failed like the one before it is empty. A receiver that is down gives
/// the same error every time, and the texts would be most of what an attempt writes to disk.
fn without_repeated_errors(attempts: &[Attempt]) -> Cow<'_, [Attempt]> {
    let repeats = |pair: &[Attempt]| pair[0].error.is_some() && pair[0].error == pair[1].error;
    if !attempts.windows(2).any(repeats) {
        return Cow::Borrowed(attempts);
    }
    let mut stored = attempts.to_vec();
    for (index, pair) in attempts.windows(2).enumerate() {
        if repeats(pair) {
            stored[index + 1].error = Some("".into());
        }
    }
    Cow::Owned(stored)
}

/// The inverse of [`without_repeated_errors`].
fn with_repeated_errors(mut attempts: Vec<Attempt>) -> Vec<Attempt> {
    for index in 1..attempts.len() {
        if attempts[index].error.as_deref() == Some("") {
            attempts[index].error = attempts[index - 1].error.clone();
        }
    }
    attempts
}

impl PartialEq for DeliveryState {
    fn eq(&self, other: &Self) -> bool {
        self.image() == other.image()
    }
}

impl DeliveryBodyImage<'_> {
    pub fn with(self, state: DeliveryStateImage<'_>) -> Delivery {
        Delivery {
            id: self.id,
            webhook_id: self.webhook_id,
            receiver: self.receiver.into_owned(),
            event: self.event,
            body: self.body.into_owned(),
            created_at_ns: self.created_at_ns,
            status: state.status,
            attempts: with_repeated_errors(state.attempts.into_owned()),
            tries: state.tries,
            next_attempt_at_ns: state.next_attempt_at_ns,
            again: state.again,
            organization_id: self.organization_id,
        }
    }
}

/// Sources and their schemas, as stored on disk.
#[derive(Serialize, Deserialize)]
pub(super) struct SourcesImage {
    /// The schemas of the sources, in order of their first use.
    pub schemas: Vec<Arc<Schema>>,
    /// Each with the index of its schema.
    pub sources: Vec<Source<u32>>,
}

impl SourcesImage {
    pub fn of<'a>(sources: impl Iterator<Item = &'a Arc<Source>>) -> Self {
        // Equal schemas have one address, because the catalog interns them.
        let mut indexes: HashMap<*const Schema, u32> = HashMap::new();
        let mut schemas = Vec::new();
        let sources = sources.map(|source| {
            let index = *indexes.entry(Arc::as_ptr(&source.schema)).or_insert_with(|| {
                schemas.push(Arc::clone(&source.schema));
                schemas.len() as u32 - 1
            });
            (**source).clone().with_schema(index)
        });
        let sources = sources.collect();
        Self { schemas, sources }
    }

    /// The sources, which share schemas and types with those of the catalog. They are not added to it.
    ///
    /// # Errors
    /// A source refers to a schema that is not in the image.
    pub fn into_sources(self, catalog: &mut Catalog) -> Result<Vec<Arc<Source>>, SnapshotError> {
        let schemas = self.schemas.into_iter();
        let schemas: Vec<_> = schemas.map(|schema| catalog.schemas.intern(schema)).collect();
        let sources = self.sources.into_iter().map(|source| {
            let schema = schemas
                .get(source.schema as usize)
                .ok_or(SnapshotError::MissingSchema { source_id: source.id })?;
            let kind = catalog.kinds.intern(Arc::clone(&source.kind));
            let source = source.with_schema(Arc::clone(schema));
            Ok(Arc::new(Source { kind, ..source }))
        });
        sources.collect()
    }
}
