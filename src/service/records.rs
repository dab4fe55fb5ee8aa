//! Reads the ledger for its owners: the history of rules, the deliveries of receivers, and the audit.

use std::sync::Arc;

use super::page::{Page, PageRequest};
use super::{Caller, Service, rule_for};
use crate::catalog::{AuditEntry, Body, Delivery, EntryKey, EventBody, EventName, HistoryEntry, Stream};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ledger::{Content, View};

impl Service {
    /// The verdicts and triggers of a rule, newest first, within their retention.
    ///
    /// # Errors
    /// 404, 403; 500 if the ledger cannot be read.
    pub fn rule_history(
        &self,
        caller: &Caller,
        rule_id: ObjectId,
        request: PageRequest,
    ) -> Result<Page<(EntryKey, HistoryEntry)>, ServiceError> {
        let view = self.catalog.read(|catalog| {
            rule_for(catalog, caller, rule_id)?;
            Ok::<_, ServiceError>(self.ledger.view(catalog, Stream::History, rule_id))
        })?;
        self.page_of(&view, Stream::History, request, history_entry_of)
    }

    /// The deliveries of a webhook, or of a rule's `webhookUrl`: those in the ledger, pending ones, and best-effort
    /// ones in memory.
    pub(super) fn deliveries_of(
        &self,
        owner: ObjectId,
        request: PageRequest,
    ) -> Result<Page<Delivery>, ServiceError> {
        let view = self.delivery_view(owner);
        self.page_of(&view, Stream::Deliveries, request, delivery_of)
    }

    /// A delivery, wherever it is stored.
    pub(super) fn delivery_of(
        &self,
        owner: ObjectId,
        id: ObjectId,
    ) -> Result<Option<Delivery>, ServiceError> {
        let not_before_ns = Stream::Deliveries.cutoff_ns(self.now_ns());
        let found = self.delivery_view(owner).get(id, not_before_ns);
        let found = found.map_err(ServiceError::internal)?;
        found
            .map(|(key, content)| self.with_body(delivery_of(key, content)?))
            .transpose()
    }

    /// Loads a delivery's body, if the delivery only refers to its event.
    fn with_body(&self, delivery: Delivery) -> Result<Delivery, ServiceError> {
        let Body::Named(EventName {
            organization_id,
            event_id,
        }) = delivery.body
        else {
            return Ok(delivery);
        };
        // The catalog has the event while any of its deliveries is pending; afterwards the ledger has it.
        let (held, view) = self.catalog.read(|catalog| {
            let view = self.ledger.view(catalog, Stream::Events, organization_id);
            (catalog.event_body(event_id).cloned(), view)
        });
        let event = match held {
            Some(event) => event,
            None => {
                let not_before_ns = Stream::Events.cutoff_ns(self.now_ns());
                let found = view
                    .get(event_id, not_before_ns)
                    .map_err(ServiceError::internal)?;
                let (_, Content::Stored(payload)) =
                    found.ok_or_else(|| ServiceError::not_found("delivery"))?;
                Arc::new(EventBody::decode(&payload).map_err(ServiceError::internal)?)
            }
        };
        Ok(Delivery {
            body: Body::Shared(event),
            ..delivery
        })
    }

    fn delivery_view(&self, owner: ObjectId) -> View<Arc<Delivery>> {
        let recent = self.deliveries.recent(owner);
        self.catalog.read(|catalog| {
            let owed = catalog.pending_deliveries_of(owner).cloned();
            // If a best-effort delivery was redelivered, its pending copy takes precedence.
            let given = recent.into_iter().chain(owed);
            let given = given.map(|delivery| (delivery.created_at_ns, delivery.id, delivery.again, delivery));
            self.ledger.view_with(catalog, Stream::Deliveries, owner, given)
        })
    }

    pub(super) fn page_of<P: Clone, T>(
        &self,
        view: &View<P>,
        stream: Stream,
        request: PageRequest,
        decode: impl Fn(EntryKey, Content<P>) -> Result<T, ServiceError>,
    ) -> Result<Page<T>, ServiceError> {
        let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
        let page = view.page(stream.cutoff_ns(self.now_ns()), request.offset, limit);
        let page = page.map_err(ServiceError::internal)?;
        for error in &page.damaged {
            tracing::error!(%error, "a damaged ledger entry is skipped");
        }
        let entries = page.entries.into_iter();
        Ok(Page {
            entries: entries
                .map(|(key, content)| decode(key, content))
                .collect::<Result<_, _>>()?,
            total: page.total,
        })
    }
}

fn history_entry_of(
    key: EntryKey,
    Content::Stored(payload): Content,
) -> Result<(EntryKey, HistoryEntry), ServiceError> {
    let entry = HistoryEntry::decode(&payload).map_err(ServiceError::internal)?;
    Ok((key, entry))
}

pub(super) fn audit_entry_of(
    key: EntryKey,
    Content::Stored(payload): Content,
) -> Result<(EntryKey, AuditEntry), ServiceError> {
    let entry = AuditEntry::decode(&payload).map_err(ServiceError::internal)?;
    Ok((key, entry))
}

fn delivery_of(_: EntryKey, content: Content<Arc<Delivery>>) -> Result<Delivery, ServiceError> {
    match content {
        Content::Stored(payload) => Delivery::decode(&payload).map_err(ServiceError::internal),
        Content::Given(delivery) => Ok(Arc::unwrap_or_clone(delivery)),
    }
}
