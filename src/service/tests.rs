//! Requests dropped while the disk delays their commands.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use actix::{Arbiter, spawn};
use disk::sim::SimDisk;
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use tokio::task::yield_now;
use wal::SyncPolicy;

use super::accounts::SignUp;
use super::buckets::BucketInput;
use super::events::Events;
use super::page::PageRequest;
use super::sessions::Client;
use super::tokens::Session;
use super::{Caller, Credential, Resources, Service};
use crate::alerts::{self, Alerts};
use crate::catalog::{
    Bytes, Command, Field, FieldType, Plan, Role, SchemaMode, SourceSettings, SourceStatus,
};
use crate::checkpoint::start_local;
use crate::checkpoint::tests::hooked_disk::HookedDisk;
use crate::checkpoint::tests::live::{home, in_system};
use crate::clock::{Clock, ManualClock, SECOND_NS};
use crate::config::Config;
use crate::delivery::Deliveries;
use crate::error::{ErrorKind, ServiceError};
use crate::ids::ObjectId;
use crate::limits::{LOGIN_FAILURES_PER_EMAIL_MAX, LOGIN_WINDOW_SECONDS};

/// Far more polls than a task needs until it waits.
const TURNS: usize = 64;

/// Blocks the journal's thread at the disk while it is closed.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    changed: Condvar,
    reached: Notify,
}

impl Gate {
    fn wait_if_closed(&self) {
        if thread::current().name() != Some("journal") {
            return;
        }
        let mut is_closed = self.is_closed.lock();
        while *is_closed {
            self.reached.notify_one();
            self.changed.wait(&mut is_closed);
        }
    }

    fn close(&self) {
        *self.is_closed.lock() = true;
    }

    fn open(&self) {
        *self.is_closed.lock() = false;
        self.changed.notify_all();
    }
}

struct World {
    service: Rc<Service>,
    gate: Arc<Gate>,
    caller: Caller,
    clock: Arc<ManualClock>,
}

impl World {
    /// A service with an account, over a disk that can be blocked.
    async fn new() -> Self {
        let gate = Arc::new(Gate::default());
        let at_gate = Arc::clone(&gate);
        let disk = Arc::new(HookedDisk::new(SimDisk::new(1), move |_| {
            at_gate.wait_if_closed()
        }));
        let manual = Arc::new(ManualClock::new(1_700_000_000 * SECOND_NS));
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&manual);
        let rooms = start_local(home(disk, Arc::clone(&clock)), SyncPolicy::Always).await;
        let rooms = rooms.unwrap_or_else(|error| panic!("{error}"));
        let secret = Bytes([7; 32]);
        rooms
            .journal
            .commit(Command::ServerSecretSet { secret })
            .await
            .unwrap();
        let (catalog, journal) = (rooms.catalog.clone(), rooms.journal.clone());
        let deliveries = Deliveries::start(
            catalog,
            journal,
            Arc::clone(&clock),
            true,
            None,
            &Arbiter::current(),
        );
        let config = Arc::new(Config::defaults().unwrap());
        let resources = Resources::start(&config).unwrap();
        let dependencies = alerts::Dependencies {
            catalog: rooms.catalog.clone(),
            journal: rooms.journal.clone(),
            clock: Arc::clone(&clock),
            owed: Box::new(drop),
            events: Box::new(Events::new(
                rooms.catalog.clone(),
                Arc::clone(&resources.ids),
                Arc::clone(&config),
            )),
        };
        let alerts = Alerts::start(dependencies, &Arbiter::current());
        let service = Service::new(config, clock, rooms, alerts, deliveries.unwrap(), resources, None);
        let service = Rc::new(service.unwrap());
        let account = service
            .sign_up(sign_up("first@example.com"), &Client::default())
            .await
            .unwrap()
            .account;
        let caller = Caller {
            organization_id: account.organization.id,
            credential: Credential::Bearer {
                user_id: account.user.id,
                session: Session::of(&account.user.sessions[0]),
                role: Role::Owner,
            },
            address: None,
        };
        World {
            service,
            gate,
            caller,
            clock: manual,
        }
    }

    /// Starts `first`, drops it while its sync is blocked, starts `second`, and unblocks the disk.
    async fn drop_first_then_run<T: 'static>(
        &self,
        first: impl Future<Output = Result<T, ServiceError>> + 'static,
        second: impl Future<Output = Result<T, ServiceError>> + 'static,
    ) -> Result<T, ServiceError> {
        self.gate.close();
        let first = spawn(first);
        self.gate.reached.notified().await;
        first.abort();
        assert!(first.await.is_err_and(|ended| ended.is_cancelled()));
        let second = spawn(second);
        for _ in 0..TURNS {
            yield_now().await;
        }
        // Waits until a password has been hashed, so that its request can continue to the journal.
        self.service.resources.passwords.run(|_| ()).await.unwrap();
        for _ in 0..TURNS {
            yield_now().await;
        }
        self.gate.open();
        second.await.unwrap()
    }

    fn create_bucket(&self, name: &str) -> impl Future<Output = Result<ObjectId, ServiceError>> + 'static {
        let (service, caller) = (Rc::clone(&self.service), self.caller);
        let input = BucketInput {
            name: name.to_owned(),
            description: None,
            retention_days: None,
        };
        async move {
            service
                .create_bucket(&caller, input)
                .await
                .map(|bucket| bucket.id)
        }
    }

    fn create_source(&self, bucket: ObjectId) -> impl Future<Output = Result<(), ServiceError>> + 'static {
        let (service, caller) = (Rc::clone(&self.service), self.caller);
        let settings = SourceSettings {
            name: "pump".into(),
            kind: "sensor".into(),
            description: None,
            fields: vec![Field {
                name: "value".into(),
                kind: FieldType::Number,
                unit: None,
                description: None,
            }],
            schema_mode: SchemaMode::Strict,
            downsampling: false,
            status: SourceStatus::Active,
            dimensions: None,
            duplicates: Default::default(),
            expected_interval_seconds: None,
        };
        async move { service.create_source(&caller, bucket, settings).await.map(drop) }
    }

    fn delete_bucket(&self, id: ObjectId) -> impl Future<Output = Result<ObjectId, ServiceError>> + 'static {
        let (service, caller) = (Rc::clone(&self.service), self.caller);
        async move { service.delete_bucket(&caller, id).await.map(|_| id) }
    }

    fn sign_up(&self, email: &'static str) -> impl Future<Output = Result<(), ServiceError>> + 'static {
        let service = Rc::clone(&self.service);
        async move {
            service
                .sign_up(sign_up(email), &Client::default())
                .await
                .map(drop)
        }
    }

    fn bucket_names(&self) -> Vec<String> {
        let organization_id = self.caller.organization_id;
        let mut names: Vec<_> = self.service.catalog.read(|catalog| {
            let buckets = catalog.buckets_of(organization_id);
            buckets.map(|bucket| bucket.name.to_string()).collect()
        });
        names.sort_unstable();
        names
    }

    async fn end(self) {
        self.service.checkpointer.close().await.unwrap();
    }
}

fn sign_up(email: &str) -> SignUp {
    SignUp {
        email: email.to_owned(),
        password: "correct horse battery".to_owned(),
        name: "A".to_owned(),
        organization_name: None,
    }
}

fn kind<T>(outcome: Result<T, ServiceError>) -> Option<ErrorKind> {
    outcome.err().map(|error| error.kind)
}

#[test]
fn a_bucket_of_a_dropped_request_is_not_created_twice() {
    in_system(async {
        let world = World::new().await;
        let again = world.drop_first_then_run(world.create_bucket("a"), world.create_bucket("a"));
        assert_eq!(kind(again.await), Some(ErrorKind::Conflict));
        assert_eq!(world.bucket_names(), ["a"]);
        world.end().await;
    });
}

#[test]
fn the_last_bucket_of_a_plan_is_not_granted_twice() {
    in_system(async {
        let world = World::new().await;
        let max = Plan::Free.limits().buckets_max.expect("the plan has a limit");
        for number in 1..max {
            world.create_bucket(&number.to_string()).await.unwrap();
        }
        let another = world.drop_first_then_run(world.create_bucket("a"), world.create_bucket("b"));
        assert_eq!(kind(another.await), Some(ErrorKind::Forbidden));
        assert_eq!(world.bucket_names().len(), max as usize);
        world.end().await;
    });
}

#[test]
fn a_source_of_a_dropped_request_is_not_created_twice() {
    in_system(async {
        let world = World::new().await;
        let bucket = world.create_bucket("a").await.unwrap();
        let again = world.drop_first_then_run(world.create_source(bucket), world.create_source(bucket));
        assert_eq!(kind(again.await), Some(ErrorKind::Conflict));
        let page = PageRequest { limit: 10, offset: 0 };
        let sources = world.service.list_sources(&world.caller, bucket, page).await;
        assert_eq!(sources.unwrap().total, 1);
        world.end().await;
    });
}

#[test]
fn an_email_of_a_dropped_sign_up_is_not_registered_twice() {
    in_system(async {
        let world = World::new().await;
        let again = world.drop_first_then_run(world.sign_up("b@example.com"), world.sign_up("b@example.com"));
        assert_eq!(kind(again.await), Some(ErrorKind::Conflict));
        let organizations = world
            .service
            .catalog
            .read(|catalog| catalog.organizations().len());
        assert_eq!(organizations, 2);
        world.end().await;
    });
}

#[test]
fn a_name_is_free_after_a_deletion_whose_request_was_dropped() {
    in_system(async {
        let world = World::new().await;
        let bucket = world.create_bucket("a").await.unwrap();
        let again = world.drop_first_then_run(world.delete_bucket(bucket), world.create_bucket("a"));
        assert_ne!(again.await.unwrap(), bucket);
        assert_eq!(world.bucket_names(), ["a"]);
        world.end().await;
    });
}

#[test]
fn all_commands_of_a_decision_run_though_the_request_was_dropped() {
    in_system(async {
        let world = World::new().await;
        let buckets = [
            world.create_bucket("a").await.unwrap(),
            world.create_bucket("b").await.unwrap(),
        ];
        world.gate.close();
        let service = Rc::clone(&world.service);
        let first = spawn(async move {
            let decision = service.decisions.begin("subject").await;
            let deleted = |bucket_id| Command::BucketDeleted { bucket_id };
            let _settled = decision.commit_all(buckets.map(deleted).into()).await?;
            Ok::<_, ServiceError>(())
        });
        world.gate.reached.notified().await;
        first.abort();
        assert!(first.await.is_err());
        let service = Rc::clone(&world.service);
        let mut next = pin!(service.decisions.begin("subject"));
        for _ in 0..TURNS {
            let waits = tokio::time::timeout(Duration::ZERO, next.as_mut()).await;
            assert!(waits.is_err(), "decided before the last one is durable");
        }
        world.gate.open();
        let decision = next.await;
        assert!(world.bucket_names().is_empty());
        drop(decision);
        world.end().await;
    });
}

#[test]
fn the_right_password_works_again_when_the_failures_expire() {
    in_system(async {
        let world = World::new().await;
        let client = Client::default();
        let change = |current: &str| {
            let (current, new) = (current.to_owned(), "another battery".to_owned());
            world
                .service
                .change_password(&world.caller, current, new, &client)
        };
        for _ in 0..LOGIN_FAILURES_PER_EMAIL_MAX {
            assert_eq!(
                kind(change("wrong password").await),
                Some(ErrorKind::Unauthorized)
            );
        }
        assert_eq!(
            kind(change("correct horse battery").await),
            Some(ErrorKind::TooManyRequests)
        );
        world.clock.advance(LOGIN_WINDOW_SECONDS * SECOND_NS);
        change("correct horse battery").await.unwrap();
        world.end().await;
    });
}
