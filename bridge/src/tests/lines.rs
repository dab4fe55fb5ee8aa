//! Lines of the line protocol.

use crate::line::{LineError, write};
use crate::payload::read;
use crate::topic::Origin;

fn line(source: &str, dimensions: &[(&str, &str)], payload: &str) -> Result<String, LineError> {
    let origin = Origin {
        source,
        dimensions: dimensions.to_vec(),
    };
    write(&origin, &read(payload.as_bytes()).unwrap(), 7)
}

#[test]
fn a_point_is_source_dimensions_fields_and_nanoseconds() {
    let written = line(
        "pump-7",
        &[("site", "north")],
        r#"{"t":21.5,"on":true,"mode":"auto"}"#,
    );
    assert_eq!(
        written.unwrap(),
        r#"pump-7,site=north mode="auto",on=true,t=21.5 7"#
    );
    assert_eq!(line("a", &[], "-1").unwrap(), "a value=-1.0 7");
}

#[test]
fn numbers_are_spelled_so_that_the_same_double_is_read() {
    for (payload, spelled) in [
        ("1", "1.0"),
        ("-0.0", "-0.0"),
        ("0.1", "0.1"),
        ("1e300", "1e300"),
        ("5e-324", "5e-324"),
        ("9007199254740993", "9007199254740992.0"),
        ("123456789012345678901", "1.2345678901234568e20"),
    ] {
        assert_eq!(line("a", &[], payload).unwrap(), format!("a value={spelled} 7"));
    }
}

#[test]
fn separators_are_written_with_a_backslash() {
    let written = line("a b,c=d", &[("x y", "1,2=3 4")], r#"{"f g,h=i":1}"#);
    assert_eq!(written.unwrap(), r"a\ b\,c\=d,x\ y=1\,2\=3\ 4 f\ g\,h\=i=1.0 7");
    assert_eq!(
        line(r"a\b", &[("x", r"\,y")], "1").unwrap(),
        r"a\b,x=\\,y value=1.0 7"
    );
    let text = line("a", &[], r#"{"m":"say \"hi\" \\ a, b\nnext"}"#);
    assert_eq!(text.unwrap(), "a m=\"say \\\"hi\\\" \\\\ a, b\nnext\" 7");
}

#[test]
fn an_empty_dimension_is_left_out() {
    assert_eq!(
        line("a", &[("x", ""), ("y", "1")], "1").unwrap(),
        "a,y=1 value=1.0 7"
    );
}

#[test]
fn what_has_no_spelling_is_refused() {
    let unwritable = |text: &str| Err(LineError::Unwritable(text.to_owned()));
    assert_eq!(line("", &[], "1"), Err(LineError::NoSource));
    assert_eq!(line("a", &[], r#"{"":1}"#), Err(LineError::NoFieldName));
    assert_eq!(line("a\\", &[], "1"), unwritable("a\\"));
    assert_eq!(line("a\nb", &[], "1"), unwritable("a\nb"));
    assert_eq!(line("a", &[("x", "\t")], "1"), unwritable("\t"));
    assert_eq!(line("a", &[("x", "1\\")], "1"), unwritable("1\\"));
    assert_eq!(line("a", &[], r#"{"b\\":1}"#), unwritable("b\\"));
    assert_eq!(line("a", &[], r#"{"b\u0000":1}"#), unwritable("b\0"));
}
