//! Request metrics by route, method and status. All counters are allocated at start, so that counting a request takes
//! no lock and no allocation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_web::http::{Method, StatusCode};

use super::request_context::RouteNumber;
use crate::metrics::{Distribution, Exposition, Histogram, Sharded};

/// The methods of the route table; the last entry stands for all others.
const METHODS: [&str; 5] = ["GET", "POST", "PATCH", "DELETE", "other"];

/// The statuses that the server sends; the last entry stands for all others.
const STATUSES: [&str; 17] = [
    "200", "201", "202", "204", "207", "400", "401", "403", "404", "405", "409", "413", "415", "429", "500",
    "503", "other",
];

/// The label of requests whose path matches no route.
pub(in crate::http) const NO_ROUTE: &str = "none";

/// Counters and latency histograms of requests.
pub(in crate::http) struct RequestMetrics {
    /// Path patterns by route number, and the label of paths that match none.
    routes: Vec<&'static str>,
    /// One slot for each of them and method.
    slots: Sharded<Box<[Slot]>>,
}

#[derive(Default)]
struct Slot {
    statuses: [AtomicU64; STATUSES.len()],
    durations: Histogram,
}

impl RequestMetrics {
    pub fn new(mut routes: Vec<&'static str>) -> Self {
        routes.push(NO_ROUTE);
        let slots = routes.len() * METHODS.len();
        Self {
            routes,
            slots: Sharded::new(|| (0..slots).map(|_| Slot::default()).collect()),
        }
    }

    /// The pattern of a route.
    pub fn pattern(&self, route: Option<RouteNumber>) -> &'static str {
        let pattern = route.and_then(|route| self.routes.get(usize::from(route)));
        pattern.copied().unwrap_or(NO_ROUTE)
    }

    /// Counts an answered request.
    pub fn served(&self, route: Option<RouteNumber>, method: &Method, status: StatusCode, took: Duration) {
        let route = route.map_or(self.routes.len() - 1, usize::from);
        let method = METHODS.iter().position(|word| *word == method.as_str());
        let status = STATUSES.iter().position(|code| *code == status.as_str());
        let slot = &self.slots.mine()[route * METHODS.len() + method.unwrap_or(METHODS.len() - 1)];
        slot.statuses[status.unwrap_or(STATUSES.len() - 1)].fetch_add(1, Ordering::Relaxed);
        slot.durations.observe(took);
    }

    /// Writes the samples. Routes without requests have none.
    pub fn write(&self, text: &mut Exposition) {
        let mut requests = text.counters(
            "tidewatch_http_requests_total",
            "Requests answered, by the route's pattern.",
        );
        for (slot, (route, method)) in self.slots() {
            for (index, status) in STATUSES.iter().enumerate() {
                let shards = self.slots.all();
                let count: u64 = shards
                    .map(|slots| slots[slot].statuses[index].load(Ordering::Relaxed))
                    .sum();
                if count > 0 {
                    requests.sample(&[("route", route), ("method", method), ("status", status)], count);
                }
            }
        }
        let mut durations = text.histograms(
            "tidewatch_http_request_duration_seconds",
            "Time from a request's head to its answer, the body's arrival included.",
        );
        for (slot, (route, method)) in self.slots() {
            let mut all = Distribution::default();
            for slots in self.slots.all() {
                slots[slot].durations.add_to(&mut all);
            }
            if all.count() > 0 {
                durations.distribution(&[("route", route), ("method", method)], &all);
            }
        }
    }

    /// All slots by number, each with its route and method.
    fn slots(&self) -> impl Iterator<Item = (usize, (&'static str, &'static str))> {
        let routes = self.routes.iter();
        let slots = routes.flat_map(|route| METHODS.map(|method| (*route, method)));
        slots.enumerate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_once_under_its_route_or_under_none() {
        let metrics = RequestMetrics::new(vec!["/a/{id}", "/b"]);
        let took = Duration::from_millis(3);
        metrics.served(Some(1), &Method::POST, StatusCode::CREATED, took);
        metrics.served(Some(1), &Method::POST, StatusCode::CREATED, took);
        metrics.served(
            None,
            &Method::from_bytes(b"BREW").unwrap(),
            StatusCode::IM_A_TEAPOT,
            took,
        );
        let mut text = Exposition::default();
        metrics.write(&mut text);
        let text = text.finish();
        let samples: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("tidewatch_http_requests_total"))
            .collect();
        assert_eq!(
            samples,
            [
                "tidewatch_http_requests_total{route=\"/b\",method=\"POST\",status=\"201\"} 2",
                "tidewatch_http_requests_total{route=\"none\",method=\"other\",status=\"other\"} 1",
            ]
        );
        assert_eq!(metrics.pattern(Some(0)), "/a/{id}");
        assert_eq!(metrics.pattern(Some(7)), NO_ROUTE);
    }
}
