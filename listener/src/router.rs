//! The router of a worker, and a handle with which its handlers pass it requests of their own.

use std::cell::OnceCell;
use std::rc::{Rc, Weak};

use actix_http::Request;
use actix_service::boxed::BoxService;
use actix_web::Error;
use actix_web::body::BoxBody;
use actix_web::dev::{Response, Service};
use actix_web::http::StatusCode;
use futures_util::TryFutureExt;

/// The router of a worker.
pub(crate) type Router = BoxService<Request, Response<BoxBody>, Error>;

/// The router's answer to a request.
pub(crate) fn answer(router: &Router, request: Request) -> impl Future<Output = Response<BoxBody>> + use<> {
    // It needs no `poll_ready`: it is always ready.
    router.call(request).unwrap_or_else(Response::from)
}

/// Passes requests to the router of a worker as if they had arrived at its listener. Belongs to the worker's thread.
#[derive(Clone, Default)]
pub struct WorkerRouter(Rc<OnceCell<Weak<Router>>>);

impl WorkerRouter {
    /// The router has been made. Its handlers may hold this handle, which does not keep it alive.
    pub(crate) fn set(&self, router: &Rc<Router>) {
        // It is made once.
        let _ = self.0.set(Rc::downgrade(router));
    }

    /// Answers a request; with 503 if the worker has ended.
    pub fn call(&self, request: Request) -> impl Future<Output = Response<BoxBody>> + use<> {
        let router = self.0.get().and_then(Weak::upgrade);
        let answering = router.map(|router| answer(&router, request));
        async move {
            match answering {
                Some(answering) => answering.await,
                None => Response::new(StatusCode::SERVICE_UNAVAILABLE),
            }
        }
    }
}
