//! Which form of the document a client likes better.

/// Whether HTML is liked better than JSON. Where both are liked equally (`*/*`, nothing said, `text/html,
/// application/json`), JSON it is.
pub fn prefers_html<'a>(accept: impl Iterator<Item = &'a str>) -> bool {
    let ranges: Vec<Range<'_>> = accept
        .flat_map(|value| value.split(','))
        .filter_map(Range::parse)
        .collect();
    quality(&ranges, "text", "html") > quality(&ranges, "application", "json")
}

/// A media range with its weight.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
}

impl<'a> Range<'a> {
    fn parse(entry: &'a str) -> Option<Self> {
        let mut parts = entry.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let quality = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        Some(Self {
            kind,
            subtype,
            quality,
        })
    }

    /// How closely it names a type: 2 exactly, 1 by kind, 0 by `*/*`; `None` not at all.
    fn closeness(&self, kind: &str, subtype: &str) -> Option<u8> {
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(kind) => Some(1),
            (own, sub) if own.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subtype) => Some(2),
            _ => None,
        }
    }
}

/// The weight of the range that names the type most closely (RFC 9110, 12.5.1).
fn quality(ranges: &[Range<'_>], kind: &str, subtype: &str) -> f32 {
    let named = ranges
        .iter()
        .filter_map(|range| Some((range.closeness(kind, subtype)?, range.quality)));
    named
        .max_by_key(|(closeness, _)| *closeness)
        .map_or(0.0, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_for_those_that_like_it_better() {
        for (accept, html) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("text/html", true),
            ("TEXT/HTML", true),
            ("text/*", true),
            ("application/json;q=0.1, text/html;q=0.2", true),
            ("text/html; charset=utf-8; q=0.5", true),
            ("text/html;q=0.1, */*;q=0", true),
            ("", false),
            ("*/*", false),
            ("application/json", false),
            ("image/png", false),
            ("text/html, application/json", false),
            ("text/html;q=0.5, application/json", false),
            ("text/html;q=0.5, */*", false),
            ("text/html;q=0", false),
            ("text/html;q=0, */*;q=0.1", false),
            ("text/html;q=nonsense", false),
            ("html", false),
        ] {
            assert_eq!(prefers_html([accept].into_iter()), html, "{accept:?}");
        }
        assert!(
            prefers_html(["application/json;q=0.5", "text/html"].into_iter()),
            "two headers"
        );
    }
}
