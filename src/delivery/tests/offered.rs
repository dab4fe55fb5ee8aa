//! Best-effort deliveries offered to the actor.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use engine::rows::RowsWriter;

use super::script::{Reply, header};
use super::world::{BUCKET, ORGANIZATION, START_NS, World, id};
use crate::catalog::{Command, Delivery, DeliveryStatus, Receiver};
use crate::delivery::NewPoints;
use crate::delivery::recent::PER_WEBHOOK_MAX;

const A: &str = "https://a.example";

/// An ingest of one point, which is the bucket's row `number`.
pub(super) fn points(number: u64) -> NewPoints {
    points_of(number, 0..1)
}

/// An ingest of a point for each of these sources.
fn points_of(first_sequence: u64, sources: Range<u32>) -> NewPoints {
    let mut rows = RowsWriter::new();
    for source in sources {
        rows.begin(source);
        rows.number(0, 1.0, 0);
        rows.commit(START_NS);
    }
    NewPoints {
        organization_id: id(ORGANIZATION),
        bucket_id: id(BUCKET),
        bucket_ordinal: 0,
        first_sequence,
        batch: false,
        received_at_ns: START_NS,
        rows: rows.newest(|table| table),
    }
}

fn bytes(delivery: &Delivery) -> Vec<u8> {
    delivery.body.sent_as(delivery.webhook_id).unwrap().to_vec()
}

#[actix::test]
async fn points_are_notified_and_their_deliveries_listed_and_counted() {
    let world = World::new().await;
    world.source(20, "s").await;
    let bucket = world
        .catalog
        .read(|catalog| Arc::clone(catalog.bucket(id(BUCKET)).unwrap()));
    assert!(!world.deliveries.has_subscriber(&bucket));
    let webhook = world.webhook(10, A, 0).await;
    assert!(world.deliveries.has_subscriber(&bucket));
    world
        .script
        .answer(A, [Reply::Status(200), Reply::Status(500), Reply::Hold]);
    (0..3).for_each(|number| world.deliveries.offer_received(points(number)));
    let statuses = || {
        world
            .deliveries
            .recent(webhook)
            .iter()
            .map(|recent| recent.status)
            .collect::<Vec<_>>()
    };
    let expected = [
        DeliveryStatus::Pending,
        DeliveryStatus::Failed,
        DeliveryStatus::Delivered,
    ];
    world.until("newest first", || statuses() == expected).await;
    assert!(
        world.script.sent(A)[0]
            .body
            .starts_with(b"{\"event\":\"data.received\",")
    );
    let uncounted = world.deliveries.uncounted(webhook);
    assert_eq!(
        (uncounted.total, uncounted.successful, uncounted.failed),
        (3, 1, 1)
    );
    assert_eq!(world.totals(webhook).total, 0);
    world
        .until("the third is in flight", || world.script.held() == 1)
        .await;
    world.script.release(A, 200);
    world.deliveries.stop(Duration::from_secs(10)).await;
    let totals = world.totals(webhook);
    assert_eq!((totals.total, totals.successful, totals.failed), (3, 2, 1));
    assert_eq!(totals.last_delivered, Some(true));
    assert_eq!(world.deliveries.uncounted(webhook), Default::default());
}

#[actix::test]
async fn a_flood_drops_only_its_own_and_pending_deliveries_go_first() {
    let world = World::new().await;
    world.source(20, "s").await;
    let flooded = world.webhook(10, A, 3).await;
    world.script.answer(A, [Reply::Hold]);
    let many = PER_WEBHOOK_MAX as u64 + 500;
    (0..many).for_each(|number| world.deliveries.offer_received(points(number)));
    world
        .until("500 are dropped", || world.deliveries.stats().dropped == 500)
        .await;
    let recent = world.deliveries.recent(flooded);
    assert_eq!(recent.len(), PER_WEBHOOK_MAX);
    let newest = String::from_utf8_lossy(&bytes(&recent[0])).into_owned();
    assert!(
        newest.contains(&format!("{:024x}", many - 1)),
        "the newest stay: {newest}"
    );
    let in_flight = String::from_utf8_lossy(&world.script.sent(A)[0].body).into_owned();
    assert!(in_flight.contains(&format!("{:024x}", 0)));
    let owed = world.add_pending(Receiver::Webhook(flooded)).await;
    world.script.answer(A, [Reply::Status(200)]);
    world.script.release(A, 500);
    world.until("sent", || world.pending(owed).is_none()).await;
    let second = &world.script.sent(A)[1];
    assert_eq!(
        header(second, "webhook-id").unwrap().as_bytes(),
        &*second.body,
        "before the flood"
    );
    world
        .until("and the flood after it", || {
            world.script.sent(A).len() > PER_WEBHOOK_MAX
        })
        .await;
}

/// Deliveries beyond the allowance of a full webhook are counted and dropped before any work is done for
/// them, and no source is always the dropped one.
#[actix::test]
async fn a_full_webhook_is_notified_of_part_of_wide_ingests() {
    let world = World::new().await;
    for number in 0..600 {
        world.source(1_000 + number, &format!("s{number}")).await;
    }
    let webhook = world.webhook(10, A, 3).await;
    world.script.answer(A, [Reply::Hold]);
    let offers = 50;
    for offer in 0..offers {
        world.deliveries.offer_received(points_of(offer * 600, 0..600));
    }
    // The queue, its allowance, and the allowance that accrues during the test.
    let made_least = 2 * PER_WEBHOOK_MAX as u64;
    world
        .until("most are dropped", || {
            let dropped = world.deliveries.stats().dropped;
            dropped >= offers * 600 - PER_WEBHOOK_MAX as u64
        })
        .await;
    assert!(offers * 600 > 10 * made_least, "a flood");
    let recent = world.deliveries.recent(webhook);
    assert_eq!(recent.len(), PER_WEBHOOK_MAX);
    let is_notified = |name: &str| {
        let name = format!("\"dataSourceName\":\"{name}\"");
        recent
            .iter()
            .any(|delivery| String::from_utf8_lossy(&bytes(delivery)).contains(&name))
    };
    assert!(is_notified("s0") && is_notified("s599"));
}

#[actix::test]
async fn a_deleted_source_is_not_notified() {
    let world = World::new().await;
    world.source(20, "s").await;
    world.source(21, "kept").await;
    let webhook = world.webhook(10, A, 3).await;
    world.script.answer(A, [Reply::Hold]);
    world.commit(Command::SourceDeleted { source_id: id(20) }).await;
    world.deliveries.offer_received(points_of(7, 0..2));
    world
        .until("the other source is notified", || {
            !world.deliveries.recent(webhook).is_empty()
        })
        .await;
    let recent = world.deliveries.recent(webhook);
    assert_eq!(recent.len(), 1);
    assert!(String::from_utf8_lossy(&bytes(&recent[0])).contains("kept"));
}
