//! What the bridge does with messages while nothing fails.

use rumqttc::QoS;

use super::broker::{Broker, Publication, distinct};
use super::service::{BAD, Service};
use super::world::{Running, VERSIONS, World};
use crate::BridgeError;
use crate::broker::{Ending, Link};
use crate::counts::Counted;

fn message(number: usize) -> Publication {
    let payload = format!(r#"{{"timestamp":"1970-01-01T00:00:00.{number:09}Z","v":{number}}}"#);
    Publication::new("plant/north/pump", &payload)
}

fn line(number: usize) -> String {
    format!("pump,site=north v={number}.0 {number}")
}

#[actix_web::test]
async fn messages_become_points_in_their_order() {
    for version in VERSIONS {
        let world = World::new(version).await;
        world.subscribe().await;
        let bridge = world.bridge();
        world.publish((1..=500).map(message).collect()).await;
        world.service.until(|service| service.stored().len() == 500).await;
        let expected: Vec<String> = (1..=500).map(line).collect();
        assert_eq!(world.service.stored(), expected, "{version}");
        let head = world.service.head();
        assert!(
            head.starts_with("POST /api/v2/write?precision=ns&bucket=the+plant "),
            "{head}"
        );
        let counted = bridge.stop().await.unwrap();
        let all = Counted {
            received: 500,
            stored: 500,
            ..Counted::default()
        };
        assert_eq!(counted, all);
    }
}

#[actix_web::test]
async fn what_was_published_while_no_bridge_ran_is_delivered_to_the_next_one() {
    for version in VERSIONS {
        let world = World::new(version).await;
        world.subscribe().await;
        world.publish((1..=100).map(message).collect()).await;
        let bridge = world.bridge();
        world.service.until(|service| service.stored().len() == 100).await;
        bridge.stop().await.unwrap();
        // All of it is acknowledged: nothing comes again.
        let bridge = world.bridge();
        world.publish(vec![message(101)]).await;
        world
            .service
            .until(|service| service.stored().contains(&line(101)))
            .await;
        assert_eq!(bridge.stop().await.unwrap().received, 1, "{version}");
    }
}

#[actix_web::test]
async fn unreadable_messages_are_acknowledged_in_their_turn_and_counted() {
    for version in VERSIONS {
        let world = World::new(version).await;
        world.subscribe().await;
        let odd = [
            Publication::new("plant/north/pump", "on"),
            Publication::new("plant//pump", "1"),
            Publication::new("plant/north/", "1"),
            Publication::new("plant/north/pump", "{}"),
            message(1),
        ];
        world.publish(odd.to_vec()).await;
        let bridge = world.bridge();
        world
            .service
            .until(|service| service.stored().contains(&line(1)))
            .await;
        let counted = bridge.stop().await.unwrap();
        let expected = Counted {
            received: 5,
            stored: 2,
            unreadable: 3,
            ..Counted::default()
        };
        assert_eq!(counted, expected, "{version}");
        let bridge = world.bridge();
        world.publish(vec![message(2)]).await;
        world
            .service
            .until(|service| service.stored().contains(&line(2)))
            .await;
        assert_eq!(bridge.stop().await.unwrap().received, 1, "{version}");
    }
}

#[actix_web::test]
async fn points_that_the_service_refuses_are_counted_and_the_others_stored() {
    let world = World::new("5").await;
    world.subscribe().await;
    let bad = format!(r#"{{"timestamp":"1970-01-01","text":"a\nb {BAD}"}}"#);
    let bad = Publication::new("plant/north/pump", &bad);
    world
        .publish(vec![message(1), bad.clone(), message(2), bad, message(3)])
        .await;
    let bridge = world.bridge();
    world
        .service
        .until(|service| service.stored().contains(&line(3)))
        .await;
    let counted = bridge.stop().await.unwrap();
    assert_eq!((counted.stored, counted.refused), (3, 2));
    assert_eq!(world.service.stored(), [line(1), line(2), line(3)]);
}

#[actix_web::test]
async fn a_batch_that_is_too_large_is_sent_in_parts_and_a_point_that_is_too_large_dropped() {
    let world = World::new("5").await;
    world.subscribe().await;
    world.publish((1..=100).map(message).collect()).await;
    world.service.limit_lines(3);
    let bridge = world.bridge();
    world.service.until(|service| service.stored().len() == 100).await;
    let expected: Vec<String> = (1..=100).map(line).collect();
    assert_eq!(world.service.stored(), expected);
    bridge.stop().await.unwrap();

    world.service.limit_lines(0);
    let bridge = world.bridge();
    world.publish(vec![message(101)]).await;
    world
        .service
        .until(|service| service.requests().iter().any(|body| body.contains(&line(101))))
        .await;
    let counted = bridge.stop().await.unwrap();
    assert_eq!((counted.stored, counted.refused), (0, 1));
}

#[actix_web::test]
async fn messages_in_flight_are_bounded() {
    for version in VERSIONS {
        let mut world = World::new(version).await;
        world.subscribe().await;
        world.members = "in_flight = 5".to_owned();
        world.sections.push_str("[batch]\nlinger_ms = 20\n");
        world.publish((1..=200).map(message).collect()).await;
        let bridge = world.bridge();
        world.service.until(|service| service.stored().len() == 200).await;
        bridge.stop().await.unwrap();
        let most = world
            .service
            .requests()
            .iter()
            .map(|body| body.lines().count())
            .max();
        assert_eq!(most, Some(5), "{version}");
    }
}

#[actix_web::test]
async fn an_oversized_message_does_not_hold_up_those_behind_it() {
    for version in VERSIONS {
        let world = World::new(version).await;
        world.subscribe().await;
        let large = format!("{{\"text\":\"{}\"}}", "x".repeat(3 << 20));
        world
            .publish(vec![Publication::new("plant/north/pump", &large), message(1)])
            .await;
        let bridge = world.bridge();
        world
            .service
            .until(|service| service.stored().contains(&line(1)))
            .await;
        bridge.stop().await.unwrap();
    }
}

#[actix_web::test]
async fn a_retained_message_counts_only_with_a_time_of_its_own() {
    for version in VERSIONS {
        let world = World::new(version).await;
        let retained = |topic: &str, payload: &str| Publication {
            retain: true,
            ..Publication::new(topic, payload)
        };
        let timed = r#"{"timestamp":"1970-01-01T00:00:00.000000007Z","v":1}"#;
        let messages = [
            retained("plant/north/timed", timed),
            retained("plant/north/plain", "5"),
        ];
        world.publish(messages.to_vec()).await;
        let bridge = world.bridge();
        world
            .service
            .until(|service| service.stored().contains(&"timed,site=north v=1.0 7".to_owned()))
            .await;
        world.publish(vec![message(1)]).await;
        world
            .service
            .until(|service| service.stored().contains(&line(1)))
            .await;
        assert_eq!(bridge.stop().await.unwrap().retained, 1, "{version}");
        let stored = world.service.stored();
        assert!(
            !stored.iter().any(|line| line.starts_with("plain")),
            "{version}: {stored:?}"
        );
    }
}

#[actix_web::test]
async fn messages_of_qos_0_are_taken_too() {
    let world = World::new("5").await;
    world.subscribe().await;
    let bridge = world.bridge();
    // Once this one is stored, the bridge is connected.
    world.publish(vec![message(1)]).await;
    world
        .service
        .until(|service| service.stored().contains(&line(1)))
        .await;
    let quick = Publication {
        qos: QoS::AtMostOnce,
        ..message(2)
    };
    world.publish(vec![quick, message(3)]).await;
    world
        .service
        .until(|service| service.stored().contains(&line(3)))
        .await;
    bridge.stop().await.unwrap();
    assert_eq!(distinct(&world.service.stored()).len(), 3);
}

#[actix_web::test]
async fn an_encrypted_connection_with_user_and_password() {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let broker = Broker::with_settings(|path| {
        let file = |name: &str, text: &str| {
            std::fs::write(path.join(name), text).unwrap();
            path.join(name).display().to_string()
        };
        let cert = file("cert.pem", &certificate.cert.pem());
        let key = file("key.pem", &certificate.signing_key.serialize_pem());
        let passwords = file("passwords", "");
        let added = ["mosquitto_passwd", "/usr/bin/mosquitto_passwd"]
            .iter()
            .find_map(|program| {
                std::process::Command::new(program)
                    .args(["-b", &passwords, "ada", "right"])
                    .status()
                    .ok()
            });
        assert!(added.unwrap().success());
        format!("certfile {cert}\nkeyfile {key}\nallow_anonymous false\npassword_file {passwords}")
    });
    let service = Service::start().await;
    let config = |version: &str, password: &str, ca: bool| {
        let ca = match ca {
            true => format!("ca = '{}'\n", broker.path().join("cert.pem").display()),
            false => String::new(),
        };
        let text = format!(
            "[api]\nurl = '{}'\nkey = 'svc_w_key'\n[broker]\nurl = 'mqtts://localhost:{}'\nclient_id = 'bridge'\n\
             version = '{version}'\nuser = 'ada'\npassword = '{password}'\n{ca}[[topics]]\ntopic = '{{source}}'\n",
            service.url, broker.port
        );
        crate::Config::parse(&text, None, std::path::Path::new("bridge.toml")).unwrap()
    };
    for version in VERSIONS {
        let refused = Running::start(config(version, "wrong", true)).end().await;
        assert!(
            matches!(refused, Err(BridgeError::Broker(_))),
            "{version}: {refused:?}"
        );
        let bridge = Running::start(config(version, "right", true));
        bridge.until(|counted| counted.connections == 1).await;
        bridge.stop().await.unwrap();
    }
    let (mut link, sender) = Link::new(&config("5", "right", false).broker).unwrap();
    let Err(Ending::Lost(cause)) = link.next(&sender).await else {
        panic!("a certificate that nobody vouches for is trusted");
    };
    assert!(cause.contains("certificate"), "{cause}");
}
