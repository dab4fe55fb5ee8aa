//! The request context: what authentication and the router find out, kept for the middleware. It outlives the request,
//! which a time-out or a panic drops.

use std::cell::Cell;
use std::rc::Rc;

use actix_web::dev::{Extensions, ServiceRequest};
use actix_web::http::header::HeaderMap;
use actix_web::{HttpMessage, HttpRequest};

use super::request_id::RequestId;
use crate::http::inside;
use crate::ids::ObjectId;
use crate::service::quota::Quota;

/// Index of a route in the table.
pub(in crate::http) type RouteNumber = u16;

/// Shared by the middleware and the request's extensions.
pub(in crate::http) struct RequestContext {
    /// Of the request, on all nodes that it passes.
    pub id: RequestId,
    /// The caller's organization; `None` before authentication.
    pub organization: Cell<Option<ObjectId>>,
    /// The caller's quota; `None` on a plan without a limit.
    pub quota: Cell<Option<Quota>>,
    /// `None` when the path matches no route.
    pub route: Cell<Option<RouteNumber>>,
    /// Whether the request may take longer than the deadline.
    pub has_no_deadline: Cell<bool>,
    /// Whether it is not counted.
    pub is_uncounted: Cell<bool>,
    /// Headers that give the caller a new token of its session.
    pub renewal: Cell<Option<HeaderMap>>,
}

impl RequestContext {
    /// Stores a new context with the request.
    pub fn of(request: &ServiceRequest) -> Rc<Self> {
        let passed_on = inside::request_id_of(request);
        let context = Rc::new(RequestContext {
            id: passed_on.unwrap_or_else(RequestId::next),
            organization: Cell::default(),
            quota: Cell::default(),
            route: Cell::default(),
            has_no_deadline: Cell::default(),
            is_uncounted: Cell::default(),
            renewal: Cell::default(),
        });
        request.extensions_mut().insert(Rc::clone(&context));
        context
    }
}

/// Records the caller's organization and quota. The quota is `None` on a plan without a limit.
pub(in crate::http) fn set_caller(request: &HttpRequest, organization: ObjectId, quota: Option<Quota>) {
    if let Some(context) = request.extensions().get::<Rc<RequestContext>>() {
        context.organization.set(Some(organization));
        context.quota.set(quota);
    }
}

/// Lets a request take as long as it needs, from now on.
pub(in crate::http) fn lift_deadline(request: &HttpRequest) {
    if let Some(context) = request.extensions().get::<Rc<RequestContext>>() {
        context.has_no_deadline.set(true);
    }
}

/// Leaves a request out of metrics and the log: what it carries is counted.
pub(in crate::http) fn leave_uncounted(request: &HttpRequest) {
    if let Some(context) = request.extensions().get::<Rc<RequestContext>>() {
        context.is_uncounted.set(true);
    }
}

/// Sets the headers with which the answer gives the caller a new token of its session; `None` for none, as when the
/// request ends the session.
pub(in crate::http) fn set_renewal(request: &HttpRequest, headers: Option<HeaderMap>) {
    if let Some(context) = request.extensions().get::<Rc<RequestContext>>() {
        context.renewal.set(headers);
    }
}

/// The id of a request.
pub(in crate::http) fn id_of(request: &HttpRequest) -> Option<RequestId> {
    let extensions = request.extensions();
    extensions.get::<Rc<RequestContext>>().map(|context| context.id)
}

/// Records the route of a request.
pub(in crate::http) fn set_route(extensions: &Extensions, route: RouteNumber) {
    if let Some(context) = extensions.get::<Rc<RequestContext>>() {
        context.route.set(Some(route));
    }
}
