//! Retention and eviction of best-effort deliveries.

use super::world::id;
use crate::catalog::{
    AfterAttempt, Attempt, Body, Delivery, DeliveryStatus, DeliveryTotals, Event, Receiver,
};
use crate::delivery::recent::{BYTES_MAX, PER_WEBHOOK_MAX, Recent};

fn delivery(number: u64, webhook: u64, bytes: usize) -> Delivery {
    Delivery {
        id: id(number),
        webhook_id: id(number),
        receiver: Receiver::Webhook(id(webhook)),
        event: Event::DataReceived,
        body: Body::whole(vec![b'x'; bytes]),
        created_at_ns: 0,
        status: DeliveryStatus::Pending,
        attempts: Vec::new(),
        tries: 0,
        next_attempt_at_ns: Some(0),
        again: false,
        organization_id: None,
    }
}

fn attempt(at_ns: i64) -> Attempt {
    Attempt {
        at_ns,
        status_code: Some(200),
        error: None,
        duration_ms: 0,
    }
}

#[test]
fn eviction_takes_the_oldest_not_in_flight_and_loses_unfinished_ones() {
    let recent = Recent::default();
    for number in 0..PER_WEBHOOK_MAX as u64 {
        assert_eq!(recent.keep(delivery(number, 1, 10)), []);
    }
    recent.start(id(0)).unwrap();
    recent.start(id(1)).unwrap();
    recent.end(id(1), attempt(5), AfterAttempt::Delivered);
    let number = PER_WEBHOOK_MAX as u64;
    assert_eq!(
        recent.keep(delivery(number, 1, 10)),
        [],
        "1 goes, which had ended"
    );
    assert_eq!(recent.keep(delivery(number + 1, 1, 10)), [id(2)]);
    assert!(recent.get(id(1)).is_none() && recent.get(id(2)).is_none());
    recent.end(id(0), attempt(5), AfterAttempt::Retry(9));
    assert_eq!(recent.get(id(0)).unwrap().next_attempt_at_ns, Some(9));
    assert_eq!(recent.keep(delivery(number + 2, 1, 10)), [id(0)]);
    assert_eq!(recent.list(id(1)).len(), PER_WEBHOOK_MAX);
}

#[test]
fn the_webhook_holding_the_most_bytes_is_evicted_first() {
    let recent = Recent::default();
    let large = BYTES_MAX / 100;
    let small: Vec<_> = (0..50)
        .map(|number| recent.keep(delivery(number, 1, 100)))
        .collect();
    assert!(small.iter().all(Vec::is_empty));
    let dropped: Vec<_> = (100..400)
        .flat_map(|number| recent.keep(delivery(number, 2, large)))
        .collect();
    assert!(dropped.len() > 200, "{}", dropped.len());
    assert!(dropped.iter().all(|id| recent.get(*id).is_none()));
    assert_eq!(recent.list(id(1)).len(), 50, "the other loses nothing");
    let kept: usize = recent.list(id(2)).iter().map(|kept| kept.body.own_bytes()).sum();
    assert!(kept <= BYTES_MAX && kept > BYTES_MAX * 8 / 10, "{kept}");
    // After its removal, its room is free.
    assert_eq!(recent.take_uncounted(|webhook| webhook == id(1)), []);
    assert!(recent.get(id(399)).is_none());
    let after: Vec<_> = (1_000..1_090)
        .flat_map(|number| recent.keep(delivery(number, 3, large)))
        .collect();
    assert_eq!(after, []);
}

#[test]
fn totals_are_taken_once_and_can_be_returned() {
    let recent = Recent::default();
    for (number, then) in [
        (1, AfterAttempt::Failed),
        (2, AfterAttempt::Delivered),
        (3, AfterAttempt::Retry(1)),
    ] {
        recent.keep(delivery(number, 1, 10));
        recent.start(id(number)).unwrap();
        recent.end(id(number), attempt(100 - number as i64), then);
    }
    let counted = DeliveryTotals {
        total: 2,
        successful: 1,
        failed: 1,
        last_at_ns: Some(99),
        last_delivered: Some(false),
    };
    let shown = DeliveryTotals { total: 3, ..counted };
    assert_eq!(
        recent.uncounted(id(1)),
        shown,
        "the pending one is shown, and counted when it ends"
    );
    assert_eq!(recent.take_uncounted(|_| true), [(id(1), counted)]);
    assert_eq!(recent.take_uncounted(|_| true), []);
    recent.give_back(vec![(id(1), counted)]);
    assert_eq!(recent.uncounted(id(1)), shown);
    recent.forget(id(3));
    assert_eq!(recent.uncounted(id(1)).total, 2);
}
