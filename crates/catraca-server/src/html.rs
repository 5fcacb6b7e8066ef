//! A builder of HTML: one call for trusted markup, and others that escape text.

use std::fmt::Write;

/// HTML under construction.
#[derive(Default)]
pub struct Html(String);

impl Html {
    /// Appends markup as it is. Only for text of this program, never for input.
    pub fn raw(&mut self, markup: &str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Appends text escaped for an element's content or a quoted attribute.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                _ => self.0.push(c),
            }
        }
        self
    }

    /// Appends an element with escaped text.
    pub fn element(&mut self, tag: &'static str, class: &'static str, text: &str) -> &mut Self {
        self.raw("<").raw(tag);
        if !class.is_empty() {
            self.raw(" class=\"").raw(class).raw("\"");
        }
        self.raw(">").text(text).raw("</").raw(tag).raw(">")
    }

    /// Appends a number: whole ones without decimals, others with two.
    pub fn number(&mut self, number: f64) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = if number.fract() == 0.0 {
            write!(self.0, "{number:.0}")
        } else {
            write!(self.0, "{number:.2}")
        };
        self
    }

    /// The HTML so far.
    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let mut html = Html::default();
        html.element("b", "who", "<script>alert('1')</script> & \"more\"");
        let expected = "<b class=\"who\">&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; \
                        &amp; &quot;more&quot;</b>";
        assert_eq!(html.into_string(), expected);
    }

    #[test]
    fn numbers_are_short() {
        let mut html = Html::default();
        html.number(3.0).raw(" ").number(1.0 / 3.0);
        assert_eq!(html.into_string(), "3 0.33");
    }
}
