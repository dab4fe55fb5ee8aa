//! Renders Markdown as HTML. HTML in the Markdown is shown as text.

use std::ops::Range;

use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::text::slug;

fn events(markdown: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter()
}

/// Returns the text of a heading from its source.
fn title(source: &str) -> &str {
    source.trim_start_matches('#').trim()
}

pub fn headings(markdown: &str) -> impl Iterator<Item = &str> {
    events(markdown).filter_map(|(event, range)| match event {
        Event::Start(Tag::Heading { .. }) => Some(title(&markdown[range])),
        _ => None,
    })
}

/// Renders Markdown as HTML.
pub fn html(markdown: &str) -> String {
    let events = events(markdown).map(|(mut event, range)| {
        if let Event::Start(Tag::Heading { id, .. }) = &mut event {
            *id = Some(slug(title(&markdown[range])).into());
        }
        match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::SoftBreak => Event::Text(" ".into()),
            other => other,
        }
    });
    let mut html = String::new();
    push_html(&mut html, events);
    // Wide content scrolls on its own, also with the keyboard.
    html.replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<table>", "<div class=\"wide\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
}

/// Renders a single paragraph without the element around it.
pub fn inline(markdown: &str) -> String {
    html(markdown).replace("<p>", "").replace("</p>\n", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_used_by_descriptions_is_rendered() {
        for (markdown, expected) in [
            ("a `<b>` c", "<p>a <code>&lt;b&gt;</code> c</p>\n"),
            (
                "**a** and *b*\ngo on",
                "<p><strong>a</strong> and <em>b</em> go on</p>\n",
            ),
            ("a\n`b` c", "<p>a <code>b</code> c</p>\n"),
            ("2 * 3", "<p>2 * 3</p>\n"),
            ("## Who may", "<h2 id=\"who-may\">Who may</h2>\n"),
            (
                "```\na < b\n```",
                "<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>\n",
            ),
            ("[x](https://y)", "<p><a href=\"https://y\">x</a></p>\n"),
            ("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"),
            ("<script>\na\n</script>", "&lt;script&gt;\na\n&lt;/script&gt;"),
        ] {
            assert_eq!(html(markdown), expected);
        }
        let table = html("| a | b |\n|---|---|\n| `c` | d |");
        assert!(
            table.contains("<thead><tr><th>a</th><th>b</th></tr></thead>"),
            "{table}"
        );
        assert!(
            table.contains("<tr><td><code>c</code></td><td>d</td></tr>"),
            "{table}"
        );
    }

    #[test]
    fn headings_link_to_their_anchors() {
        let markdown = "## Who may\n\n```\n## code\n```\n\n## What";
        assert_eq!(headings(markdown).collect::<Vec<_>>(), ["Who may", "What"]);
        assert!(html(markdown).contains("<h2 id=\"what\">What</h2>"));
    }

    #[test]
    fn a_single_paragraph_has_no_wrapping_element() {
        assert_eq!(inline("a `b`"), "a <code>b</code>");
    }
}
