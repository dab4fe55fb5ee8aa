//! The request context: what authentication and the router find out, kept for the middleware. It outlives the request,
//! which a time-out or a panic drops.

use std::cell::Cell;
use std::rc::Rc;

use actix_web::dev::{Extensions, ServiceRequest};
use actix_web::{HttpMessage, HttpRequest};

use crate::ids::ObjectId;
use crate::service::quota::Quota;

/// Index of a route in the table.
pub(in crate::http) type RouteNumber = u16;

/// Stored in the request's extensions; a clone refers to the same context.
#[derive(Clone, Default)]
pub(in crate::http) struct RequestContext(Rc<Fields>);

#[derive(Default)]
struct Fields {
    organization: Cell<Option<ObjectId>>,
    quota: Cell<Option<Quota>>,
    route: Cell<Option<RouteNumber>>,
}

impl RequestContext {
    /// Stores a new context with the request.
    pub fn of(request: &ServiceRequest) -> Self {
        let context = Self::default();
        request.extensions_mut().insert(context.clone());
        context
    }

    /// The caller's organization; `None` before authentication.
    pub fn organization(&self) -> Option<ObjectId> {
        self.0.organization.get()
    }

    /// The caller's quota; `None` on a plan without a limit.
    pub fn quota(&self) -> Option<Quota> {
        self.0.quota.get()
    }

    /// `None` when the path matches no route.
    pub fn route(&self) -> Option<RouteNumber> {
        self.0.route.get()
    }
}

/// Records the caller's organization and quota. The quota is `None` on a plan without a limit.
pub(in crate::http) fn set_caller(request: &HttpRequest, organization: ObjectId, quota: Option<Quota>) {
    if let Some(context) = request.extensions().get::<RequestContext>() {
        context.0.organization.set(Some(organization));
        context.0.quota.set(quota);
    }
}

/// Records the route of a request.
pub(in crate::http) fn set_route(extensions: &Extensions, route: RouteNumber) {
    if let Some(context) = extensions.get::<RequestContext>() {
        context.0.route.set(Some(route));
    }
}
