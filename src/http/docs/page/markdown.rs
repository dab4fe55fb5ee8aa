//! The subset of Markdown that descriptions use: paragraphs, headings, numbered steps, tables and fenced code; inline
//! `code`, **strong**, *emphasis* and [links](https://example.com).

use super::text::{escaped, slug};

pub fn headings(markdown: &str) -> impl Iterator<Item = &str> {
    markdown.lines().filter_map(|line| line.strip_prefix("## "))
}

/// Renders Markdown as HTML.
pub fn html(markdown: &str) -> String {
    let mut html = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        if let Some(heading) = line.strip_prefix("## ") {
            html.push_str(&format!(
                "<h2 id=\"{}\">{}</h2>\n",
                slug(heading),
                inline(heading)
            ));
        } else if line.starts_with("```") {
            let mut code = String::new();
            for line in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                code.push_str(&escaped(line));
                code.push('\n');
            }
            html.push_str(&format!("<pre tabindex=\"0\"><code>{code}</code></pre>\n"));
        } else if line.starts_with('|') {
            let mut rows = vec![line];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(row);
            }
            html.push_str(&table(&rows));
        } else {
            let mut paragraph = line.to_owned();
            let goes_on = |line: &&str| {
                !line.trim().is_empty() && !line.starts_with(['|', '#']) && !line.starts_with("```")
            };
            while let Some(more) = lines.next_if(goes_on) {
                paragraph.push(' ');
                paragraph.push_str(more);
            }
            html.push_str(&format!("<p>{}</p>\n", inline(&paragraph)));
        }
    }
    html
}

/// Renders a table: a head, a line of dashes, and the rows.
fn table(rows: &[&str]) -> String {
    let row = |line: &str, cell: &str| -> String {
        let cells = line.trim_matches('|').split('|');
        cells
            .map(|text| format!("<{cell}>{}</{cell}>", inline(text.trim())))
            .collect()
    };
    let head = rows.first().map(|line| row(line, "th")).unwrap_or_default();
    let body: String = rows
        .iter()
        .skip(2)
        .map(|line| format!("<tr>{}</tr>", row(line, "td")))
        .collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n"
    )
}

/// Renders inline elements.
pub fn inline(text: &str) -> String {
    let mut html = String::new();
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 1 {
            html.push_str(&format!("<code>{}</code>", escaped(part)));
        } else {
            html.push_str(&links(&paired(
                &paired(&escaped(part), "**", "strong"),
                "*",
                "em",
            )));
        }
    }
    html
}

/// Turns text between two marks into an element.
fn paired(html: &str, mark: &str, element: &str) -> String {
    let parts: Vec<&str> = html.split(mark).collect();
    // An unpaired mark is plain text.
    if parts.len().is_multiple_of(2) {
        return html.to_owned();
    }
    let within = |(place, part): (usize, &&str)| {
        if place % 2 == 1 {
            format!("<{element}>{part}</{element}>")
        } else {
            (*part).to_owned()
        }
    };
    parts.iter().enumerate().map(within).collect()
}

fn links(html: &str) -> String {
    let Some((before, rest)) = html.split_once('[') else {
        return html.to_owned();
    };
    match rest
        .split_once("](")
        .and_then(|(text, rest)| Some((text, rest.split_once(')')?)))
    {
        Some((text, (url, after))) => format!("{before}<a href=\"{url}\">{text}</a>{}", links(after)),
        None => html.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_descriptions_use_is_rendered() {
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
}
