//! Patterns of topics.

use crate::topic::{Origin, Pattern, PatternError};

fn pattern(topic: &str) -> Pattern {
    Pattern::parse(topic, None).unwrap()
}

fn origin<'a>(source: &'a str, dimensions: &[(&'a str, &'a str)]) -> Option<Origin<'a>> {
    Some(Origin {
        source,
        dimensions: dimensions.to_vec(),
    })
}

#[test]
fn levels_become_source_and_dimensions() {
    let plant = pattern("plant/{site}/{source}");
    assert_eq!(plant.filter(), "plant/+/+");
    assert_eq!(
        plant.matches("plant/north/pump-7"),
        origin("pump-7", &[("site", "north")])
    );
    for other in [
        "plant",
        "plant/north",
        "plant/north/pump-7/x",
        "Plant/north/pump-7",
        "",
        "/plant/a/b",
    ] {
        assert_eq!(plant.matches(other), None, "{other}");
    }
}

#[test]
fn a_fixed_source_takes_no_level() {
    let plant = Pattern::parse("plant/{site}/temperature", Some("temperature")).unwrap();
    assert_eq!(plant.filter(), "plant/+/temperature");
    assert_eq!(
        plant.matches("plant/north/temperature"),
        origin("temperature", &[("site", "north")])
    );
    assert_eq!(plant.matches("plant/north/pressure"), None);
}

#[test]
fn wildcards_are_those_of_mqtt_and_a_named_rest_keeps_the_levels() {
    let any = pattern("plant/+/{source}/#");
    assert_eq!(any.filter(), "plant/+/+/#");
    for topic in ["plant/north/pump", "plant/north/pump/a", "plant/north/pump/a/b"] {
        assert_eq!(any.matches(topic), origin("pump", &[]), "{topic}");
    }
    assert_eq!(any.matches("plant/north"), None);
    let rest = pattern("plant/{source}/{path...}");
    assert_eq!(rest.filter(), "plant/+/#");
    assert_eq!(rest.matches("plant/pump/a/b"), origin("pump", &[("path", "a/b")]));
    assert_eq!(rest.matches("plant/pump"), origin("pump", &[("path", "")]));
    assert_eq!(pattern("{source...}").filter(), "#");
    assert_eq!(pattern("{source...}").matches("a/b"), origin("a/b", &[]));
}

#[test]
fn levels_may_be_empty_as_in_mqtt() {
    assert_eq!(
        pattern("/{site}/{source}").matches("//pump"),
        origin("pump", &[("site", "")])
    );
    assert_eq!(pattern("plant/{source}").matches("plant/"), origin("", &[]));
}

#[test]
fn a_wildcard_at_the_start_takes_no_topic_of_the_broker_itself() {
    assert_eq!(pattern("{source...}").matches("$SYS/uptime"), None);
    assert_eq!(pattern("{source}/uptime").matches("$SYS/uptime"), None);
    assert_eq!(
        pattern("$SYS/{source}").matches("$SYS/uptime"),
        origin("uptime", &[])
    );
}

#[test]
fn faulty_patterns_are_refused_with_the_reason() {
    use PatternError::{Length, Name, NoSource, NotLast, PartOfLevel, Shared, Source, Twice, TwoSources};
    let owned = str::to_owned;
    let cases = [
        ("", None, Length),
        ("plant/pump", None, NoSource),
        ("plant/{source}", Some("pump"), TwoSources(owned("pump"))),
        ("plant/{site}/{site}/{source}", None, Twice(owned("site"))),
        ("{source}/{source}", None, Twice(owned("source"))),
        ("plant/{source}-x", None, PartOfLevel(owned("{source}-x"))),
        ("plant/a+/{source}", None, PartOfLevel(owned("a+"))),
        ("plant/{source", None, PartOfLevel(owned("{source"))),
        ("plant/#/{source}", None, NotLast(owned("#..."))),
        ("plant/{}/{source}", None, Name(String::new())),
        ("plant/{a\\}/{source}", None, Name(owned("a\\"))),
        ("plant/{...}/x", Some("pump"), NotLast(owned("#..."))),
        ("plant/+", Some(""), Source(String::new())),
        ("plant/+", Some("#pump"), Source(owned("#pump"))),
        ("plant/+", Some("a\nb"), Source(owned("a\nb"))),
        ("$share/group/plant/{source}", None, Shared),
    ];
    for (topic, source, fault) in cases {
        assert_eq!(Pattern::parse(topic, source), Err(fault), "{topic} {source:?}");
    }
    let long = format!("{}/{{source}}", "x".repeat(65_535));
    assert_eq!(Pattern::parse(&long, None), Err(Length));
    let name = format!("{{{}}}/{{source}}", "x".repeat(129));
    assert!(matches!(Pattern::parse(&name, None), Err(Name(_))));
}
