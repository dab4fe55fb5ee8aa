//! What is found out about a request on its way in, for those who finish its answer: `edge` puts a [`Noted`] by each
//! request and still has it when the request itself is gone, out of time or by a panic.

use std::cell::Cell;
use std::rc::Rc;

use actix_web::dev::{Extensions, ServiceRequest};
use actix_web::{HttpMessage, HttpRequest};

use crate::ids::ObjectId;
use crate::service::quota::Quota;

/// A route's place in the table.
pub(super) type RouteNumber = u16;

/// Shared between those who find out and those who say.
#[derive(Clone, Default)]
pub(super) struct Noted(Rc<Facts>);

#[derive(Default)]
struct Facts {
    organization: Cell<Option<ObjectId>>,
    quota: Cell<Option<Quota>>,
    route: Cell<Option<RouteNumber>>,
}

impl Noted {
    /// Puts one by the request.
    pub fn of(request: &ServiceRequest) -> Self {
        let noted = Self::default();
        request.extensions_mut().insert(noted.clone());
        noted
    }

    /// Of the caller, when there is one.
    pub fn organization(&self) -> Option<ObjectId> {
        self.0.organization.get()
    }

    /// Of the caller, when there is one on a limited plan.
    pub fn quota(&self) -> Option<Quota> {
        self.0.quota.get()
    }

    /// `None` when no route has this path.
    pub fn route(&self) -> Option<RouteNumber> {
        self.0.route.get()
    }
}

/// Notes the organization of a request's caller, and its quota; `None` on a plan without a limit.
pub(super) fn note_caller(request: &HttpRequest, organization: ObjectId, quota: Option<Quota>) {
    if let Some(noted) = request.extensions().get::<Noted>() {
        noted.0.organization.set(Some(organization));
        noted.0.quota.set(quota);
    }
}

/// Notes which route a request takes.
pub(super) fn note_route(extensions: &Extensions, route: RouteNumber) {
    if let Some(noted) = extensions.get::<Noted>() {
        noted.0.route.set(Some(route));
    }
}
