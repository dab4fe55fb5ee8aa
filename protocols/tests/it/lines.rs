//! Random lines by a writer that shares nothing with the parser.

use protocols::line::{self, Precision};

use crate::recorder::Recorder;
use crate::{labels, metadata, number, random, text};

fn escaped(text: &str) -> String {
    text.replace(',', "\\,").replace('=', "\\=").replace(' ', "\\ ")
}

/// A value as it is written, and as it is shown.
fn value(random: &mut fastrand::Rng) -> (String, String) {
    match random.u8(0..6) {
        0 => {
            let integer = random.i64(..);
            (format!("{integer}i"), (integer as f64).to_string())
        }
        1 => {
            let integer = random.u64(..);
            (format!("{integer}u"), (integer as f64).to_string())
        }
        2 => {
            let bool = random.bool();
            (bool.to_string(), bool.to_string())
        }
        3 => {
            let text = text(random) + if random.bool() { "\nsecond" } else { "" };
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            (format!("\"{quoted}\""), format!("{text:?}"))
        }
        4 => {
            let number = number(random);
            (format!("{number:e}"), number.to_string())
        }
        _ => {
            let number = number(random);
            (number.to_string(), number.to_string())
        }
    }
}

#[test]
fn random_lines_are_read_as_they_were_written() {
    let mut random = random();
    for _ in 0..300 {
        let (mut body, mut expected, mut lines) = (String::new(), Vec::new(), 1);
        for _ in 0..random.usize(1..30) {
            let (measurement, tags) = (text(&mut random), labels(&mut random));
            // Several lines of one series.
            for _ in 0..random.usize(1..4) {
                match random.u8(0..10) {
                    0 => body.push('\n'),
                    1 => body.push_str("# comment=1,x \"\r\n"),
                    _ => lines -= 1,
                }
                lines += 1;
                let timestamp_ns = random.i64(-9_000_000_000_000_000_000..9_000_000_000_000_000_000);
                let mut line = escaped(&measurement);
                for (name, value) in &tags {
                    line.push_str(&format!(",{}={}", escaped(name), escaped(value)));
                }
                let mut shown = format!("{lines} {measurement}{} {timestamp_ns}", metadata(&tags));
                for field in 0..random.usize(1..25) {
                    let name = format!("{}{field}", text(&mut random));
                    let (written, read) = value(&mut random);
                    let separator = if field == 0 { ' ' } else { ',' };
                    line.push_str(&format!("{separator}{}={written}", escaped(&name)));
                    shown.push_str(&format!(" {name}={read}"));
                }
                line.push_str(&format!(
                    " {timestamp_ns}{}",
                    if random.bool() { "\n" } else { "\r\n" }
                ));
                lines += line.matches('\n').count();
                body.push_str(&line);
                expected.push(shown);
            }
        }
        let mut recorder = Recorder::default();
        line::parse(body.as_bytes(), Precision::Nanoseconds, 0, &mut recorder);
        assert_eq!(recorder.events, expected, "{body}");
    }
}
