//! Random bodies: all spellings of a body give the same rows; damaged bodies never panic, and `serde_json` agrees on
//! which of them are JSON.

use engine::rows::NOT_DECIMAL;
use serde_json::Value;

use super::*;
use crate::timestamp::format_timestamp_ns;

/// A point before it is spelled as JSON.
struct Model {
    source: &'static str,
    timestamp_ns: i64,
    /// Field name and value as JSON text.
    values: Vec<(&'static str, String)>,
    metadata: Option<String>,
}

fn model(random: &mut fastrand::Rng) -> Model {
    let source = *random.choice(&[STRICT, STRICT, EXTEND]).unwrap();
    let fields: &[(&str, u8)] = if source == STRICT {
        &[("t", 0), ("p", 0), ("on", 1), ("state", 2)]
    } else {
        &[("t", 0)]
    };
    let mut values: Vec<(&str, String)> = Vec::new();
    for (name, kind) in fields {
        let value = match kind {
            _ if random.u8(..5) == 0 && !values.is_empty() => "null".to_owned(),
            0 => match random.u8(..5) {
                0 => random.i32(..).to_string(),
                1 => format!("{:.*}", random.usize(..8), random.f64() * 100.0 - 50.0),
                2 => format!("{:e}", random.f64()),
                3 => format!("{}", f64::from_bits(random.u64(..) & !(1 << 62))),
                _ => (*random
                    .choice(&["0", "-0", "-0.0", "0.10", "12345678901234567890"])
                    .unwrap())
                .to_owned(),
            },
            1 => random.bool().to_string(),
            _ => format!(
                "\"{}\"",
                random
                    .choice(&["", "ok", "é€", "a longer state than eight bytes"])
                    .unwrap()
            ),
        };
        if !(values.is_empty() && *kind != 0 && random.bool()) {
            values.push((name, value));
        }
    }
    let step = *random.choice(&[1, 1_000_000, 1_000_000_000]).unwrap();
    let timestamp_ns = random.i64(OLDEST_NS..NOW_NS + 86_400_000_000_000) / step * step;
    let metadata = random
        .bool()
        .then(|| format!(r#"{{"n":{},"x":[1.0,{{}}]}}"#, random.u8(..)));
    Model {
        source,
        timestamp_ns: timestamp_ns.max(OLDEST_NS),
        values,
        metadata,
    }
}

fn spelled_timestamp(random: &mut fastrand::Rng, timestamp_ns: i64) -> String {
    if random.bool() {
        return format_timestamp_ns(timestamp_ns).as_str().to_owned();
    }
    let minutes = random.i64(-900..900);
    let local = format_timestamp_ns(timestamp_ns + minutes * 60_000_000_000);
    let sign = if minutes < 0 { '-' } else { '+' };
    format!(
        "{}{sign}{:02}:{:02}",
        local.as_str().trim_end_matches('Z'),
        minutes.abs() / 60,
        minutes.abs() % 60
    )
}

/// `text` in quotes, some of its characters as escapes.
fn spelled(random: &mut fastrand::Rng, text: &str, odd: bool) -> String {
    let escape = odd && random.u8(..4) == 0;
    let mut out = String::from("\"");
    for character in text.chars() {
        if escape && random.bool() {
            let mut units = [0; 2];
            character
                .encode_utf16(&mut units)
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(character);
        }
    }
    out + "\""
}

/// An object of these members; with `odd`, shuffled, with extra white space, and preceded by members of the same names.
fn object(random: &mut fastrand::Rng, members: Vec<(&str, String)>, odd: bool) -> String {
    let mut all: Vec<(&str, String, bool)> = members
        .into_iter()
        .map(|(name, value)| (name, value, true))
        .collect();
    if odd {
        for _ in 0..random.usize(..3) {
            let name = random.choice(&all).map_or("note", |(name, ..)| *name);
            let decoy = random
                .choice(&["1", "null", "\"x\"", "{}", "[{\"a\":[]}]", "{\"t\":5}"])
                .unwrap();
            all.push((name, (*decoy).to_owned(), name == "note"));
        }
        random.shuffle(&mut all);
        // The real member is after all others of its name.
        for real in 0..all.len() {
            if all[real].2
                && let Some(last) = (real + 1..all.len())
                    .rev()
                    .find(|other| all[*other].0 == all[real].0)
            {
                all.swap(real, last);
            }
        }
    }
    let mut space = || {
        if odd && random.u8(..3) == 0 {
            *random.choice(&[" ", "\n", "\t\r\n  "]).unwrap()
        } else {
            ""
        }
    };
    let spaces: Vec<[&str; 4]> = all.iter().map(|_| [space(), space(), space(), space()]).collect();
    let members: Vec<String> = all
        .iter()
        .zip(spaces)
        .map(|((name, value, _), [a, b, c, d])| format!("{a}{}{b}:{c}{value}{d}", spelled(random, name, odd)))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn spelled_entry(random: &mut fastrand::Rng, model: &Model, odd: bool) -> String {
    let values = model.values.iter().map(|(name, value)| {
        let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        (
            *name,
            text.map_or_else(|| value.clone(), |text| spelled(random, text, odd)),
        )
    });
    let values = values.collect();
    let values = object(random, values, odd);
    let timestamp = spelled_timestamp(random, model.timestamp_ns);
    let mut members = vec![
        ("dataSourceId", spelled(random, model.source, odd)),
        ("timestamp", spelled(random, &timestamp, odd)),
        ("values", values),
    ];
    members.extend(model.metadata.clone().map(|metadata| ("metadata", metadata)));
    if !odd && random.bool() {
        members.swap(0, 2);
    }
    object(random, members, odd)
}

fn write(rows: &mut RowsWriter, model: &Model) {
    rows.begin(u32::from(id(model.source).as_bytes()[11]));
    for (name, value) in &model.values {
        let ordinal = ["t", "p", "on", "state"]
            .iter()
            .position(|field| field == name)
            .unwrap() as u16;
        match serde_json::from_str::<Value>(value).unwrap() {
            Value::Number(number) => {
                let digits = value.trim_start_matches('-').replace('.', "");
                let plain = !value.contains('e') && digits.trim_start_matches('0').len() <= 15;
                let behind = value.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                let minus_zero = value.starts_with('-') && digits.bytes().all(|digit| digit == b'0');
                let decimal = plain && behind <= 22 && !minus_zero;
                rows.number(
                    ordinal,
                    number.as_f64().unwrap(),
                    if decimal { behind as u8 } else { NOT_DECIMAL },
                );
            }
            Value::Bool(value) => rows.boolean(ordinal, value),
            Value::String(value) => rows.string(ordinal, &value),
            _ => {}
        }
    }
    if let Some(metadata) = &model.metadata {
        rows.metadata(metadata);
    }
    rows.commit(model.timestamp_ns);
}

fn random_body(random: &mut fastrand::Rng, models: &[Model]) -> String {
    let odd = random.bool();
    let points: Vec<String> = models
        .iter()
        .map(|model| spelled_entry(random, model, odd))
        .collect();
    let members = vec![
        ("bucketId", format!("\"{BUCKET}\"")),
        ("dataPoints", format!("[{}]", points.join(","))),
    ];
    object(random, members, odd)
}

#[test]
fn the_spelling_of_a_batch_does_not_change_its_rows() {
    let seed = 0x1265_0001;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut scratch, mut rows, mut sources) = (Scratch::default(), RowsWriter::new(), Sources::new());
    for round in 0..3_000 {
        let models: Vec<Model> = (0..random.usize(1..8)).map(|_| model(&mut random)).collect();
        let body = random_body(&mut random, &models);
        let result = parse_into(&body, &mut sources, &mut scratch, &mut rows);
        assert_eq!(ready(result).errors, vec![], "round {round}: {body}");
        assert_eq!(
            encoded(&rows),
            expected(|rows| models.iter().for_each(|model| write(rows, model))),
            "{body}"
        );
        // serde_json reads the same values from the body, so the generator's spelling is correct.
        let tree: Value = serde_json::from_str(&body).unwrap();
        for (entry, model) in tree["dataPoints"].as_array().unwrap().iter().zip(&models) {
            for (name, value) in &model.values {
                assert_eq!(
                    entry["values"][name],
                    serde_json::from_str::<Value>(value).unwrap(),
                    "{body}"
                );
            }
        }
    }
}

#[test]
fn a_single_point_gives_the_same_row_as_in_a_batch() {
    let seed = 0x1265_0002;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut rows, sources) = (RowsWriter::new(), Sources::new());
    for _ in 0..3_000 {
        let model = model(&mut random);
        let entry = spelled_entry(&mut random, &model, true);
        let body = format!("{},\"bucketId\":\"{BUCKET}\"}}", &entry[..entry.len() - 1]);
        let point = parse_point(body.as_bytes()).unwrap_or_else(|fault| panic!("{body}: {fault:?}"));
        assert_eq!(point.metadata, model.metadata.as_deref());
        let written = point.write(
            sources.view(model.source),
            NOW_NS,
            &mut rows,
            &mut SeriesOfRequest::default(),
        );
        assert_eq!(written.unwrap(), [], "{body}");
        assert_eq!(point.timestamp_ns.unwrap_or(NOW_NS), model.timestamp_ns, "{body}");
        assert_eq!(encoded(&rows), expected(|rows| write(rows, &model)), "{body}");
        let mut echo = Vec::new();
        point.write_values(&mut echo);
        let echoed: Value = serde_json::from_slice(&echo).unwrap();
        let present = model.values.iter().filter(|(_, value)| value != "null");
        assert_eq!(echoed.as_object().unwrap().len(), present.clone().count());
        for (name, value) in present {
            let sent = serde_json::from_str::<Value>(value).unwrap();
            let same = match (echoed[name].as_f64(), sent.as_f64()) {
                (Some(echoed), Some(sent)) => echoed.to_bits() == sent.to_bits(),
                _ => echoed[name] == sent,
            };
            assert!(same, "{name} of {body}");
        }
    }
}

#[test]
fn a_mutated_body_never_panics_and_agrees_with_serde_json() {
    let seed = 0x1265_0003;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut scratch, mut rows, mut sources) = (Scratch::default(), RowsWriter::new(), Sources::new());
    let alphabet = b"{}[]\",:\\u019aetn-. \xff\xc3";
    for _ in 0..15_000 {
        let models: Vec<Model> = (0..random.usize(1..3)).map(|_| model(&mut random)).collect();
        let mut body = random_body(&mut random, &models).into_bytes();
        for _ in 0..random.usize(1..4) {
            let place = random.usize(..body.len());
            match random.u8(..4) {
                0 => body[place] = *random.choice(alphabet).unwrap(),
                1 => drop(body.remove(place)),
                2 => body.insert(place, *random.choice(alphabet).unwrap()),
                _ => {
                    let (end, to) = ((place + 9).min(body.len()), place.saturating_sub(40));
                    body.copy_within(place..end, to);
                }
            }
        }
        let result = parse_batch(&body, NOW_NS, &mut sources.lookup(), &mut scratch, &mut rows);
        let single = parse_point(&body);
        let text = String::from_utf8_lossy(&body);
        match serde_json::from_slice::<Value>(&body) {
            Ok(_) => {
                assert!(!is_malformed(&result), "{text}: {result:?}");
                assert!(!is_malformed(&single), "{text}: {single:?}");
            }
            // A number beyond the range of doubles is a fault of its point, or no fault in metadata.
            Err(error) if error.to_string().starts_with("number out of range") => {}
            Err(_) => {
                assert!(is_malformed(&result), "{text}: {result:?}");
                assert!(is_malformed(&single), "{text}: {single:?}");
            }
        }
        match result {
            Ok(outcome) if outcome.new_fields.is_empty() => {
                assert_eq!(
                    rows.rows() + outcome.errors.len() as u32,
                    outcome.entries,
                    "{text}"
                );
                assert!(
                    outcome.errors.is_sorted_by(|one, next| one.index < next.index),
                    "{text}"
                );
            }
            _ => assert_eq!(rows.rows(), 0, "{text}"),
        }
    }
}
