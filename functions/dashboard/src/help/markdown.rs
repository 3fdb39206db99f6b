//! Documents as HTML. Links between them lead to `/help`; a link out of the
//! documentation, such as to a source file, becomes plain text.

use std::collections::BTreeSet;

use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};

use super::documents::{DOCUMENTS, Document, INDEX, PICTURES};

/// The part of the index that is for people who change the service.
const DEVELOPMENT: &str = "\n## Development\n";

/// A document as it is shown.
#[derive(Debug)]
pub(super) struct Rendered {
    /// Its content with its title.
    pub html: String,
    /// Headings of the second level, with their anchors.
    pub sections: Vec<(String, String)>,
}

impl Rendered {
    /// Whether a heading has this anchor; the top of the page has none.
    #[cfg(test)]
    pub(super) fn has_anchor(&self, anchor: &str) -> bool {
        anchor.is_empty() || self.html.contains(&format!(" id=\"{anchor}\""))
    }
}

/// Renders a document.
pub(super) fn render(document: &Document) -> Rendered {
    let text = document.text;
    let end = if document.path == INDEX { text.find(DEVELOPMENT) } else { None };
    let events: Vec<Event<'_>> =
        Parser::new_ext(&text[..end.unwrap_or(text.len())], Options::ENABLE_TABLES).collect();
    let mut writer = Writer { folder: folder_of(document.path), ..Writer::default() };
    for (at, event) in events.iter().enumerate() {
        writer.take(event, &events[at + 1..]);
    }
    let mut rendered = String::with_capacity(text.len() * 2);
    html::push_html(&mut rendered, writer.events.into_iter());
    Rendered { html: rendered, sections: writer.sections }
}

/// Rewrites the events of a document on their way to HTML.
#[derive(Default)]
struct Writer<'d> {
    folder: &'d str,
    events: Vec<Event<'d>>,
    sections: Vec<(String, String)>,
    anchors: BTreeSet<String>,
    /// Whether each open link is one, or was left out.
    links: Vec<bool>,
}

impl<'d> Writer<'d> {
    fn take(&mut self, event: &Event<'d>, rest: &[Event<'d>]) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => self.heading(*level, rest),
            // Columns are aligned by inline styles, which the pages forbid. What scrolls can be reached by keyboard.
            Event::Start(Tag::Table(columns)) => {
                self.raw("<div class=\"table-frame\" tabindex=\"0\">");
                let columns = columns.iter().map(|_| pulldown_cmark::Alignment::None).collect();
                self.events.push(Event::Start(Tag::Table(columns)));
            }
            Event::End(TagEnd::Table) => {
                self.events.push(event.clone());
                self.raw("</div>");
            }
            Event::Start(Tag::CodeBlock(_)) => self.raw("<pre tabindex=\"0\"><code>"),
            Event::End(TagEnd::CodeBlock) => self.raw("</code></pre>"),
            Event::Start(Tag::Link { dest_url, title, .. }) => self.open_link(dest_url, title),
            Event::End(TagEnd::Link) => {
                if self.links.pop() == Some(true) {
                    self.events.push(event.clone());
                }
            }
            Event::Start(Tag::Image { dest_url, title, .. }) => {
                let name = resolved(self.folder, dest_url);
                let known = PICTURES.iter().any(|(picture, _)| *picture == name);
                let dest_url = if known { format!("/help/{name}").into() } else { CowStr::from("") };
                let (link_type, id) = (LinkType::Inline, CowStr::from(""));
                self.events.push(Event::Start(Tag::Image { link_type, dest_url, title: title.clone(), id }));
            }
            // Comments carry the examples' checks; markup of their own documents have none.
            Event::Html(_)
            | Event::InlineHtml(_)
            | Event::Start(Tag::HtmlBlock)
            | Event::End(TagEnd::HtmlBlock) => {}
            _ => self.events.push(event.clone()),
        }
    }

    fn heading(&mut self, level: HeadingLevel, rest: &[Event<'d>]) {
        let words = rest.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let title: String = words
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        // As code hosts tell headings with the same words apart.
        let mut candidates = (0..).map(|number| numbered(&anchor_of(&title), number));
        let anchor = candidates.find(|anchor| !self.anchors.contains(anchor)).unwrap_or_default();
        if level == HeadingLevel::H2 {
            self.sections.push((anchor.clone(), title));
        }
        self.anchors.insert(anchor.clone());
        let (classes, attrs) = (Vec::new(), Vec::new());
        self.events.push(Event::Start(Tag::Heading { level, id: Some(anchor.into()), classes, attrs }));
    }

    fn open_link(&mut self, target: &CowStr<'d>, title: &CowStr<'d>) {
        let address = address_of(self.folder, target);
        self.links.push(address.is_some());
        if let Some(address) = address {
            let (link_type, dest_url, id) = (LinkType::Inline, address.into(), CowStr::from(""));
            self.events.push(Event::Start(Tag::Link { link_type, dest_url, title: title.clone(), id }));
        }
    }

    fn raw(&mut self, html: &'static str) {
        self.events.push(Event::Html(html.into()));
    }
}

/// Where a link of a document leads in the product; `None` for what is not in it.
fn address_of(folder: &str, target: &str) -> Option<String> {
    if target.starts_with("https://") || target.starts_with("http://") || target.starts_with('#') {
        return Some(target.to_owned());
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let name = resolved(folder, path.strip_suffix(".md")?);
    let document = DOCUMENTS.iter().find(|document| document.path == name)?;
    let address = document.address();
    Some(if anchor.is_empty() { address } else { format!("{address}#{anchor}") })
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path relative to a folder, from the root of the documents.
fn resolved(folder: &str, path: &str) -> String {
    let mut segments: Vec<&str> = folder.split('/').filter(|segment| !segment.is_empty()).collect();
    for segment in path.split('/') {
        match segment {
            "." | "" => {}
            ".." if segments.last().is_some_and(|last| *last != "..") => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    segments.join("/")
}

fn numbered(anchor: &str, number: usize) -> String {
    if number == 0 { anchor.to_owned() } else { format!("{anchor}-{number}") }
}

/// The anchor of a heading, as code hosts write it.
fn anchor_of(title: &str) -> String {
    let kept = title.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|char| if char == ' ' { '-' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_what_leads_somewhere() {
        let text = "# Title\n\n<!-- check -->\n\n## What `x` means\n\n| A | B |\n|---|--:|\n| [flaky](flaky-and-quarantine.md#quarantine) | [source](../../infra/x.yaml) |\n\n[out](https://example.org) <b>bold</b> [self](#title) ![Grid](../grid.png)\n\n```sh\na < b\n```\n";
        let rendered = render(&Document { path: "guides/any", text });
        assert_eq!(
            rendered.html,
            "<h1 id=\"title\">Title</h1>\n<h2 id=\"what-x-means\">What <code>x</code> means</h2>\n<div class=\"table-frame\" tabindex=\"0\"><table><thead><tr><th>A</th><th>B</th></tr></thead><tbody>\n<tr><td><a href=\"/help/guides/flaky-and-quarantine#quarantine\">flaky</a></td><td>source</td></tr>\n</tbody></table>\n</div>\n<p><a href=\"https://example.org\">out</a> bold <a href=\"#title\">self</a> <img src=\"/help/grid.png\" alt=\"Grid\" /></p>\n<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>"
        );
        assert_eq!(rendered.sections, [("what-x-means".to_owned(), "What x means".to_owned())]);
    }
}
