//! One connection to the database, with the settings that the store relies on.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::{AsyncMessage, Client, Error, Statement};

use super::address::Address;
use super::append;
use super::tables::SCHEMA;
use crate::error::{StoreError, explained};

/// Settings without which the store would not be safe: a commit waits for a second disk, and no limit on a statement's
/// time ends that wait early, which would let the commit succeed on one disk.
const REQUIRED: &str = "SET synchronous_commit = on; SET statement_timeout = 0; SET lock_timeout = 0; \
                        SET client_min_messages = warning; \
                        SET default_transaction_isolation = 'read committed'";

/// Settings that free what a vanished client holds. Databases that do not know one of them do without.
const OPTIONAL: [&str; 3] = [
    "SET idle_in_transaction_session_timeout = '10s'",
    "SET client_connection_check_interval = '2s'",
    "SET tcp_user_timeout = '10s'",
];

/// A connection. Dropping it closes it.
pub(super) struct Connection {
    pub(super) client: Client,
    /// The statement of an append, once it is prepared.
    append: Option<Statement>,
    /// The statement of a round of membership, once it is prepared.
    round: Option<Statement>,
    /// The last warning of the database.
    warning: Arc<Mutex<Option<String>>>,
    /// Reads and writes the socket.
    task: JoinHandle<()>,
}

impl Drop for Connection {
    /// With an answer outstanding, the task would go on, and keep the session and its locks.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// The connection in this place, opened if there is none.
    pub(super) async fn ready<'a>(
        place: &'a mut Option<Connection>,
        address: &mut Address,
    ) -> Result<&'a mut Connection, StoreError> {
        // Lets the connection's task read what has arrived since the last call, such as its end: the runtime looks for
        // what has arrived during the first pause, and runs the task during the second.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        if place.as_ref().is_none_or(|open| open.client.is_closed()) {
            *place = None;
        }
        match place {
            Some(open) => Ok(open),
            place => Ok(place.insert(Connection::open(address).await?)),
        }
    }

    async fn open(address: &mut Address) -> Result<Connection, StoreError> {
        let (client, mut connection) = address.connect().await?;
        let warning: Arc<Mutex<Option<String>>> = Arc::default();
        let warnings = Arc::clone(&warning);
        // The task ends when the client is dropped, or the connection fails; the client reports the failure.
        let task = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notice(notice) = message {
                    *warnings.lock().unwrap_or_else(PoisonError::into_inner) = Some(notice.to_string());
                }
            }
        });
        let open = Connection {
            client,
            append: None,
            round: None,
            warning,
            task,
        };
        open.client.batch_execute(REQUIRED).await?;
        let schema = format!("SET search_path = {SCHEMA}");
        open.client.batch_execute(&schema).await?;
        for setting in OPTIONAL {
            match open.client.batch_execute(setting).await {
                Err(error) if error.as_db_error().is_none() => return Err(error.into()),
                Err(error) => tracing::debug!(%error, setting, "the database does not know a setting"),
                Ok(()) => {}
            }
        }
        // What the database said about the settings is no warning about a commit.
        drop(open.take_warning());
        Ok(open)
    }

    /// The statement of an append.
    pub(super) async fn append(&mut self) -> Result<Statement, Error> {
        match &self.append {
            Some(prepared) => Ok(prepared.clone()),
            None => Ok(self
                .append
                .insert(self.client.prepare(append::INSERT).await?)
                .clone()),
        }
    }

    /// The statement of a round of membership.
    pub(super) async fn round(&mut self, text: &str) -> Result<Statement, Error> {
        match &self.round {
            Some(prepared) => Ok(prepared.clone()),
            None => Ok(self.round.insert(self.client.prepare(text).await?).clone()),
        }
    }

    /// The database's last warning, if it has sent one since the last call. PostgreSQL warns, and reports success, when it
    /// stops waiting for the standby during a commit.
    pub(super) fn take_warning(&self) -> Option<String> {
        self.warning.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The meaning of a database error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The connection failed, or is about to: a commit that was under way may have succeeded.
    Broken,
    /// The database refused the statement for now; it had no effect.
    Busy,
    /// A commit would reach one disk only; the statement had no effect.
    Weak,
    /// The database has no space; the statement had no effect.
    Full,
    /// The tables do not exist; the statement had no effect.
    NoTables,
    /// Any other refusal; the statement had no effect.
    Refused,
}

impl Kind {
    pub(super) fn of(error: &Error) -> Kind {
        let Some(error) = error.as_db_error() else {
            return Kind::Broken;
        };
        if matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) {
            // The session ends, at whatever point it was.
            return Kind::Broken;
        }
        let code = error.code();
        match *code {
            SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => Kind::Broken,
            SqlState::DISK_FULL => Kind::Full,
            SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME | SqlState::UNDEFINED_COLUMN => {
                Kind::NoTables
            }
            SqlState::READ_ONLY_SQL_TRANSACTION => Kind::Busy,
            _ => match &code.code()[..2] {
                // Connection exceptions, operator intervention and internal errors may end a session at any point.
                "08" | "57" | "58" | "XX" => Kind::Broken,
                // Insufficient resources, and transactions to be repeated.
                "53" | "40" | "55" => Kind::Busy,
                _ => Kind::Refused,
            },
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match Kind::of(&error) {
            Kind::Broken | Kind::Busy | Kind::Weak | Kind::Full => StoreError::Unavailable(explained(&error)),
            Kind::NoTables => StoreError::Tables(
                "the database has no tables of a cluster; make them with `tidewatch cluster init`".to_owned(),
            ),
            Kind::Refused => StoreError::Failed(explained(&error)),
        }
    }
}
