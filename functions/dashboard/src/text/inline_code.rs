//! Sentences in which `backticks` mark code, as HTML.

use std::fmt::{self, Display, Formatter};

use askama::filters::{Escaper, Html, HtmlSafe};

/// Writes a sentence with its code marked up.
pub(crate) struct InlineCode<'t>(pub &'t str);

/// Safe because both the text and the code are escaped.
impl HtmlSafe for InlineCode<'_> {}

impl Display for InlineCode<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((before, after)) = rest.split_once('`') {
            let Some((code, behind)) = after.split_once('`') else { break };
            Html.write_escaped_str(&mut *out, before)?;
            out.write_str("<code>")?;
            Html.write_escaped_str(&mut *out, code)?;
            out.write_str("</code>")?;
            rest = behind;
        }
        Html.write_escaped_str(out, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_everything_is_escaped() {
        let html = InlineCode("Set `a<b>` & go; a lone ` stays").to_string();
        assert_eq!(html, "Set <code>a&#60;b&#62;</code> &#38; go; a lone ` stays");
    }
}
