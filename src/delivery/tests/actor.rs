//! Deliveries from the catalog to the receiver, and their results back to the catalog.

use std::time::{Duration, Instant};

use super::offered::points;
use super::script::{Reply, header};
use super::world::{START_NS, World, id};
use crate::catalog::{
    Command, Delivery, DeliveryStatus, NewRule, Receiver, RuleForm, RuleSettings, RuleStatus,
};
use crate::clock::{DAY_NS, SECOND_NS};
use crate::ids::ObjectId;

const A: &str = "https://a.example";
const B: &str = "https://b.example";

#[actix::test]
async fn a_pending_delivery_is_sent_signed_and_recorded() {
    let world = World::new().await;
    let webhook = world.webhook(10, A, 3).await;
    let owed = world.add_pending(Receiver::Webhook(webhook)).await;
    world.until("recorded", || world.pending(owed).is_none()).await;
    let sent = world.script.sent(A);
    assert_eq!(sent.len(), 1);
    let webhook_id = String::from_utf8(sent[0].body.to_vec()).unwrap();
    assert_eq!(header(&sent[0], "webhook-id"), Some(&*webhook_id));
    assert_eq!(header(&sent[0], "webhook-timestamp"), Some("1700000000"));
    assert!(
        header(&sent[0], "x-webhook-signature")
            .unwrap()
            .starts_with("sha256=")
    );
    let totals = world.totals(webhook);
    assert_eq!((totals.total, totals.successful, totals.failed), (1, 1, 0));
    assert_eq!(totals.last_at_ns, Some(START_NS + 7_000_000));
    // The gauge follows after the result went to the log, which may have recorded it before.
    world
        .until("none is in flight", || world.deliveries.stats().in_flight == 0)
        .await;
    assert_eq!(world.deliveries.stats().attempts_delivered, 1);
}

#[actix::test]
async fn a_failed_delivery_is_retried_on_schedule_under_the_same_id() {
    let world = World::new().await;
    world
        .script
        .answer(A, [Reply::Status(500), Reply::Refuse, Reply::Status(204)]);
    let webhook = world.webhook(10, A, 3).await;
    let began = Instant::now();
    let owed = world.add_pending(Receiver::Webhook(webhook)).await;
    let tries = |count| world.pending(owed).is_some_and(|owed| owed.tries == count);
    world.until("the first failure is recorded", || tries(1)).await;
    let pending = world.pending(owed).unwrap();
    assert_eq!(pending.next_attempt_at_ns, Some(START_NS + SECOND_NS));
    assert_eq!(pending.attempts[0].status_code, Some(500));
    assert_eq!(
        pending.attempts[0].error.as_deref(),
        Some("the receiver answered 500")
    );
    world.until("the second, too", || tries(2)).await;
    assert!(began.elapsed() >= Duration::from_secs(1));
    let second = world.pending(owed).unwrap().attempts[1].clone();
    assert_eq!(
        (second.status_code, second.error.as_deref()),
        (None, Some("connection refused"))
    );
    world.until("delivered", || world.pending(owed).is_none()).await;
    assert!(began.elapsed() >= Duration::from_secs(2));
    let sent = world.script.sent(A);
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|one| one.body == sent[0].body));
    assert_eq!(world.totals(webhook).successful, 1);
    let stats = world.deliveries.stats();
    let attempts = (
        stats.attempts_delivered,
        stats.attempts_refused,
        stats.attempts_unanswered,
    );
    assert_eq!(attempts, (1, 1, 1));
}

#[actix::test]
async fn a_delivery_fails_after_its_last_retry_and_can_be_redelivered() {
    let world = World::new().await;
    world.script.answer(A, [Reply::Hold, Reply::Status(200)]);
    let webhook = world.webhook(10, A, 0).await;
    let owed = world.add_pending(Receiver::Webhook(webhook)).await;
    let first = world.pending(owed);
    world.until("in flight", || world.script.held() == 1).await;
    world.script.release(A, 500);
    world
        .until("given up", || world.totals(webhook).failed == 1)
        .await;
    let ended = Delivery {
        status: DeliveryStatus::Failed,
        ..(*first.unwrap()).clone()
    };
    let again = world.deliveries.redeliver(ended).await.unwrap();
    assert_eq!(again.map(|again| again.status), Some(DeliveryStatus::Pending));
    world.until("delivered", || world.pending(owed).is_none()).await;
    let totals = world.totals(webhook);
    assert_eq!((totals.total, totals.successful, totals.failed), (1, 1, 0));
    let sent = world.script.sent(A);
    assert_eq!(sent[0].body, sent[1].body, "the webhookId stays");
}

/// A full disk must not cause a second request to the receiver.
#[actix::test]
async fn a_result_refused_by_the_log_is_kept_and_nothing_is_sent_twice() {
    let world = World::new().await;
    let webhook = world.webhook(10, A, 3).await;
    world.script.answer(A, [Reply::Hold]);
    let owed = world.add_pending(Receiver::Webhook(webhook)).await;
    world.until("in flight", || world.script.held() == 1).await;
    world.disk.set_budget_bytes(Some(world.disk.used_bytes()));
    let command = Command::DeliveriesCounted { counts: Vec::new() };
    assert!(world.journal.commit(command).await.is_err(), "the disk is full");
    world.script.release(A, 200);
    world
        .until("the attempt is over", || {
            world.deliveries.stats().attempts_delivered == 1
        })
        .await;
    assert!(world.pending(owed).is_some());
    world.disk.set_budget_bytes(None);
    world
        .until("recorded after all", || world.pending(owed).is_none())
        .await;
    assert_eq!(world.script.sent(A).len(), 1);
    assert_eq!(world.totals(webhook).successful, 1);
}

#[actix::test]
async fn a_restart_continues_deliveries_whatever_its_clock_says() {
    let world = World::new().await;
    let webhook = world.webhook(10, A, 3).await;
    let first = world.webhook(11, B, 3).await;
    world.script.answer(A, [Reply::Refuse]);
    world.script.answer(B, [Reply::Hold]);
    let retried = world.add_pending(Receiver::Webhook(webhook)).await;
    let cut_short = world.add_pending(Receiver::Webhook(first)).await;
    let failed_once = || world.pending(retried).is_some_and(|owed| owed.tries == 1);
    world.until("one failed", failed_once).await;
    world.until("one is in flight", || world.script.held() == 1).await;
    let id_before = world.script.sent(A)[0].body.clone();
    let world = world.restart(START_NS - DAY_NS);
    let began = Instant::now();
    let over = |id: ObjectId| world.pending(id).is_none();
    world
        .until("both are delivered", || over(retried) && over(cut_short))
        .await;
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "a delay is at most its step"
    );
    assert_eq!(world.script.sent(A)[0].body, id_before);
}

#[actix::test]
async fn deleting_a_webhook_cancels_its_pending_deliveries() {
    let world = World::new().await;
    let webhook = world.webhook(10, A, 3).await;
    world.script.answer(A, [Reply::Hold]);
    world.add_pending(Receiver::Webhook(webhook)).await;
    world.add_pending(Receiver::Webhook(webhook)).await;
    world.until("one is in flight", || world.script.held() == 1).await;
    world
        .commit(Command::WebhookDeleted { webhook_id: webhook })
        .await;
    world.script.release(A, 500);
    world
        .until("nothing is left", || world.deliveries.stats().pending == 0)
        .await;
    assert_eq!(world.script.sent(A).len(), 1);
}

#[actix::test]
async fn an_attempt_uses_the_current_url_of_the_webhook() {
    let world = World::new().await;
    let webhook = world.webhook(10, A, 3).await;
    world.script.answer(A, [Reply::Status(503)]);
    let owed = world.add_pending(Receiver::Webhook(webhook)).await;
    world
        .until("failed", || {
            world.pending(owed).is_some_and(|owed| owed.tries == 1)
        })
        .await;
    let settings = world
        .catalog
        .read(|catalog| catalog.webhook(webhook).unwrap().settings.clone());
    let moved = crate::catalog::WebhookSettings {
        url: B.into(),
        status: crate::catalog::WebhookStatus::Paused,
        ..settings
    };
    let command = Command::WebhookUpdated {
        webhook_id: webhook,
        settings: moved,
        at_ns: START_NS,
    };
    world.commit(command).await;
    world
        .until("delivered, though paused", || world.pending(owed).is_none())
        .await;
    assert_eq!((world.script.sent(A).len(), world.script.sent(B).len()), (1, 1));
}

async fn rule(world: &World, url: &str) -> ObjectId {
    world.source(20, "s").await;
    let rule = NewRule {
        id: id(21),
        source_id: id(20),
        settings: RuleSettings {
            name: "r".into(),
            text: "t above 3".into(),
            form: RuleForm::Condition,
            parsed: None,
            webhook_url: Some(url.into()),
            cooldown_minutes: 5.0,
            status: RuleStatus::Active,
            evaluation: None,
        },
        created_at_ns: START_NS,
    };
    world.commit(Command::RuleCreated { rule }).await;
    id(21)
}

#[actix::test]
async fn a_rule_url_gets_unsigned_triggers_even_after_rule_deletion() {
    let world = World::new().await;
    let rule_id = rule(&world, B).await;
    let receiver = Receiver::Rule {
        rule_id,
        url: A.into(),
    };
    let owed = world.add_pending(receiver.clone()).await;
    world.until("sent", || world.pending(owed).is_none()).await;
    let sent = world.script.sent(B);
    let webhook_id = String::from_utf8(sent[0].body.to_vec()).unwrap();
    assert_eq!(
        sent[0].headers,
        [("x-webhook-id", webhook_id)],
        "to the rule's present URL"
    );
    world.commit(Command::RuleDeleted { rule_id }).await;
    let owed = world.add_pending(receiver).await;
    world.until("sent", || world.pending(owed).is_none()).await;
    assert_eq!((world.script.sent(A).len(), world.script.sent(B).len()), (1, 1));
}

#[actix::test]
async fn a_silent_receiver_delays_no_other() {
    let world = World::new().await;
    let silent = world.webhook(10, A, 3).await;
    let other = world.webhook(11, B, 3).await;
    world.script.answer(A, [Reply::Hold]);
    for _ in 0..20 {
        world.add_pending(Receiver::Webhook(silent)).await;
    }
    let mut owed = Vec::new();
    for _ in 0..20 {
        owed.push(world.add_pending(Receiver::Webhook(other)).await);
    }
    let all_sent = || owed.iter().all(|id| world.pending(*id).is_none());
    world.until("the other has all", all_sent).await;
    assert_eq!(world.script.held(), 1, "the silent one has one place");
    assert_eq!(world.totals(other).successful, 20);
}

#[actix::test]
async fn redelivering_a_best_effort_delivery_makes_it_pending() {
    let world = World::new().await;
    world.source(20, "s").await;
    let webhook = world.webhook(10, A, 0).await;
    world.script.answer(A, [Reply::Refuse, Reply::Status(200)]);
    world.deliveries.offer_received(points(1));
    let failed = || {
        world
            .deliveries
            .recent(webhook)
            .iter()
            .any(|recent| recent.status == DeliveryStatus::Failed)
    };
    world.until("it failed", failed).await;
    let recent = world.deliveries.recent(webhook).remove(0);
    let owed = recent.id;
    let again = world.deliveries.redeliver((*recent).clone()).await.unwrap();
    assert!(again.is_some());
    world.until("delivered", || world.pending(owed).is_none()).await;
    assert!(world.deliveries.recent(webhook).is_empty());
    assert_eq!(world.script.sent(A).len(), 2);
    let totals = world.totals(webhook);
    assert_eq!((totals.total, totals.successful, totals.failed), (1, 1, 0));
    assert_eq!(world.deliveries.uncounted(webhook).total, 0);
}

/// Regression: it stayed pending with nothing scheduled.
#[actix::test]
async fn a_best_effort_delivery_that_comes_due_while_its_redelivery_is_refused_is_sent() {
    let world = World::new().await;
    world.source(20, "s").await;
    let webhook = world.webhook(10, A, 3).await;
    world.script.answer(A, [Reply::Refuse, Reply::Status(200)]);
    world.deliveries.offer_received(points(1));
    let recent = || world.deliveries.recent(webhook).into_iter().next();
    world
        .until("it failed once", || {
            recent().is_some_and(|recent| recent.tries == 1)
        })
        .await;
    let known = (*recent().unwrap()).clone();
    // Completions run on the journal's thread, so this one holds the log.
    let (entered, is_held) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let command = Command::DeliveriesCounted { counts: Vec::new() };
    world.journal.submit_command(command, move |_| {
        entered.send(()).unwrap();
        released.recv().unwrap();
    });
    is_held.await.unwrap();
    world.disk.set_budget_bytes(Some(world.disk.used_bytes()));
    let deliveries = world.deliveries.clone();
    let redelivery = actix::spawn(async move { deliveries.redeliver(known).await });
    world
        .until("it came due", || world.deliveries.stats().pending == 0)
        .await;
    release.send(()).unwrap();
    assert!(redelivery.await.unwrap().is_err(), "the disk is full");
    world
        .until("delivered", || {
            recent().is_some_and(|recent| recent.status == DeliveryStatus::Delivered)
        })
        .await;
    assert_eq!(world.script.sent(A).len(), 2);
}

/// Regression: its record was replaced by the older version the request had read, and it was counted twice.
#[actix::test]
async fn redelivery_during_an_attempt_keeps_attempts_and_counts_once() {
    let world = World::new().await;
    world
        .script
        .answer(A, [Reply::Hold, Reply::Status(500), Reply::Status(200)]);
    let webhook = world.webhook(10, A, 2).await;
    let owed = world.add_pending(Receiver::Webhook(webhook)).await;
    world.until("in flight", || world.script.held() == 1).await;
    let read_before = (*world.pending(owed).unwrap()).clone();
    let again = world.deliveries.redeliver(read_before.clone()).await.unwrap();
    assert!(again.is_some_and(|again| again.attempts.is_empty()));
    world.script.release(A, 503);
    world.until("delivered", || world.pending(owed).is_none()).await;
    let totals = world.totals(webhook);
    assert_eq!((totals.total, totals.successful, totals.failed), (1, 1, 0));
    let statuses: Vec<_> = world
        .ended(webhook, owed)
        .attempts
        .iter()
        .map(|attempt| attempt.status_code)
        .collect();
    assert_eq!(statuses, [Some(503), Some(500), Some(200)]);

    let changed = world.deliveries.redeliver(read_before).await.unwrap();
    assert_eq!(changed, None, "it has ended since it was read");
    let again = world
        .deliveries
        .redeliver(world.ended(webhook, owed))
        .await
        .unwrap();
    assert!(again.is_some_and(|again| again.attempts.len() == 3));
    world
        .until("delivered again", || world.pending(owed).is_none())
        .await;
    assert_eq!(world.ended(webhook, owed).attempts.len(), 4);
    let totals = world.totals(webhook);
    assert_eq!((totals.total, totals.successful, totals.failed), (1, 1, 0));
}

/// Regression: the failure of the attempt in flight ended the delivery although a redelivery had been requested.
#[actix::test]
async fn a_redelivery_during_the_last_attempt_is_attempted() {
    let world = World::new().await;
    world.script.answer(A, [Reply::Hold, Reply::Status(200)]);
    let webhook = world.webhook(10, A, 0).await;
    let owed = world.add_pending(Receiver::Webhook(webhook)).await;
    world.until("in flight", || world.script.held() == 1).await;
    let read = (*world.pending(owed).unwrap()).clone();
    let again = world.deliveries.redeliver(read).await.unwrap();
    assert_eq!(again.map(|again| again.status), Some(DeliveryStatus::Pending));
    world.script.release(A, 503);
    world.until("over", || world.pending(owed).is_none()).await;
    let ended = world.ended(webhook, owed);
    let statuses: Vec<_> = ended.attempts.iter().map(|attempt| attempt.status_code).collect();
    assert_eq!(statuses, [Some(503), Some(200)]);
    assert_eq!(ended.status, DeliveryStatus::Delivered);
}

#[actix::test]
async fn stopping_waits_for_attempts_in_flight_and_starts_no_others() {
    let world = World::new().await;
    let prompt = world.webhook(10, A, 3).await;
    let silent = world.webhook(11, B, 3).await;
    world.script.answer(A, [Reply::Hold]);
    world.script.answer(B, [Reply::Hold]);
    let ended = world.add_pending(Receiver::Webhook(prompt)).await;
    let cut_short = world.add_pending(Receiver::Webhook(silent)).await;
    world
        .until("both are in flight", || world.script.held() == 2)
        .await;
    let stopping = {
        let deliveries = world.deliveries.clone();
        actix::spawn(async move { deliveries.stop(Duration::from_secs(1)).await })
    };
    world.script.release(A, 200);
    stopping.await.unwrap();
    assert!(world.pending(ended).is_none(), "its result is recorded");
    assert_eq!(world.pending(cut_short).map(|owed| owed.tries), Some(0));
    let late = world.add_pending(Receiver::Webhook(prompt)).await;
    let world = world.restart(START_NS);
    let over = |id: ObjectId| world.pending(id).is_none();
    world
        .until("the next process sends both", || over(cut_short) && over(late))
        .await;
    assert_eq!((world.script.sent(A).len(), world.script.sent(B).len()), (1, 1));
}

/// Regression: each of them stayed in memory until it was due, possibly for years.
#[actix::test]
async fn deliveries_that_are_no_longer_pending_are_forgotten() {
    const MANY: usize = 5_000;
    let world = World::new().await;
    let (gone, other) = (world.webhook(10, A, 3).await, world.webhook(11, B, 3).await);
    world.script.answer(A, [Reply::Hold]);
    world.script.answer(B, [Reply::Hold]);
    let owe_many = async |webhook: ObjectId| {
        let deliveries: Vec<Delivery> = (0..MANY)
            .map(|_| world.delivery(Receiver::Webhook(webhook)))
            .collect();
        let ids = deliveries.iter().map(|delivery| delivery.id).collect();
        world.commit(Command::DeliveriesQueued { deliveries }).await;
        world.deliveries.queued(ids);
    };
    let pending = || world.deliveries.stats().pending;
    owe_many(gone).await;
    world
        .until("all wait", || {
            pending() == MANY as u64 && world.script.held() == 1
        })
        .await;
    world.commit(Command::WebhookDeleted { webhook_id: gone }).await;
    owe_many(other).await;
    // One is in flight, and the new ones are kept.
    world
        .until("they are forgotten", || pending() == MANY as u64 + 1)
        .await;
}
