//! Nothing that the broker has acknowledged to a publisher is lost, whatever fails.

use super::broker::{Publication, distinct};
use super::service::{Fault, Service};
use super::world::{Running, VERSIONS, World};
use crate::BridgeError;

fn message(number: usize) -> Publication {
    let payload = format!(r#"{{"timestamp":"1970-01-01T00:00:00.{number:09}Z","v":{number}}}"#);
    Publication::new("plant/north/pump", &payload)
}

fn is_complete(service: &Service, count: usize) -> bool {
    distinct(&service.stored()).len() == count
}

#[actix_web::test]
async fn a_message_is_acknowledged_only_after_its_point_is_stored() {
    for version in VERSIONS {
        let world = World::new(version).await;
        world.subscribe().await;
        world.publish((1..=10).map(message).collect()).await;
        let asked = world.service.requests().len();
        // The service takes the request and never answers; then the bridge dies.
        world.service.plan([Fault::Silence]);
        let bridge = world.bridge();
        world
            .service
            .until(|service| service.requests().len() > asked)
            .await;
        bridge.kill().await;
        assert_eq!(world.service.stored().len(), 0);
        let bridge = world.bridge();
        world.service.until(|service| is_complete(service, 10)).await;
        bridge.stop().await.unwrap();
    }
}

#[actix_web::test]
async fn a_batch_is_sent_again_until_the_service_has_stored_it() {
    for version in VERSIONS {
        let world = World::new(version).await;
        world.subscribe().await;
        world.service.plan([
            Fault::Status(503),
            Fault::Reset,
            Fault::Status(429),
            Fault::StoreThenReset,
            Fault::Status(500),
        ]);
        world.publish((1..=50).map(message).collect()).await;
        let bridge = world.bridge();
        world.service.until(|service| is_complete(service, 50)).await;
        let counted = bridge.stop().await.unwrap();
        // Sent again, but counted once.
        assert_eq!((counted.received, counted.stored), (50, 50), "{version}");
        assert!(
            world.service.stored().len() > 50,
            "the repeated request was stored twice"
        );
    }
}

#[actix_web::test]
async fn nothing_is_lost_over_kills_of_bridge_and_broker_and_faults_of_the_service() {
    const COUNT: usize = 3_000;
    for version in VERSIONS {
        let seed = match std::env::var("BRIDGE_SEED") {
            Ok(text) => text.parse().expect("BRIDGE_SEED is a number"),
            Err(_) => fastrand::u64(..),
        };
        println!("version {version}, BRIDGE_SEED={seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new(version).await;
        world.subscribe().await;
        let mut bridge = world.bridge();
        let publishing = actix_web::rt::spawn(super::broker::publish(
            world.broker.port,
            (1..=COUNT).map(message).collect(),
        ));
        for round in 0..12 {
            let faults = [
                Fault::Status(503),
                Fault::Reset,
                Fault::StoreThenReset,
                Fault::Status(429),
            ];
            let planned: Vec<Fault> = (0..random.usize(0..4))
                .map(|_| faults[random.usize(..faults.len())].clone())
                .collect();
            world.service.plan(planned);
            // Something happens after every few requests, wherever the bridge is then.
            let until = world.service.requests().len() + random.usize(1..4);
            world
                .service
                .until(|service| service.requests().len() >= until || is_complete(service, COUNT))
                .await;
            if random.bool() {
                bridge.kill().await;
                bridge = world.bridge();
            }
            if round % 4 == 3 {
                world.broker.stop();
                world.broker.run();
            }
        }
        world.service.until(|service| is_complete(service, COUNT)).await;
        publishing.await.unwrap();
        bridge.stop().await.unwrap();
    }
}

#[actix_web::test]
async fn a_stop_stores_what_has_arrived() {
    for version in VERSIONS {
        let world = World::new(version).await;
        world.subscribe().await;
        let mut config = world.config();
        // Everything waits for company; the stop does not.
        config.linger = std::time::Duration::from_secs(3_600);
        let bridge = Running::start(config);
        world.publish((1..=10).map(message).collect()).await;
        bridge.until(|counted| counted.received == 10).await;
        assert_eq!(world.service.stored().len(), 0);
        let counted = bridge.stop().await.unwrap();
        assert_eq!((counted.received, counted.stored), (10, 10), "{version}");
    }
}

#[actix_web::test]
async fn faults_of_the_configuration_end_the_bridge_and_keep_the_messages() {
    let world = World::new("5").await;
    world.subscribe().await;
    world.publish((1..=10).map(message).collect()).await;
    for status in [400, 401, 403, 404] {
        world.service.plan([Fault::Status(status)]);
        let ended = world.bridge().end().await;
        let Err(BridgeError::Refused(reason)) = ended else {
            panic!("{status}: {ended:?}");
        };
        assert!(reason.contains(&status.to_string()), "{reason}");
    }
    let bridge = world.bridge();
    world.service.until(|service| is_complete(service, 10)).await;
    bridge.stop().await.unwrap();
}
