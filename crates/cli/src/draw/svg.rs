//! SVG text: elements, text widths, and colours for light and dark surroundings.

use std::fmt::{Display, Write};

/// How text is set, for its width.
pub(crate) const SMALL: bool = false;
/// As [`SMALL`], in bold.
pub(crate) const BOLD: bool = true;

/// The fonts, of which the viewer takes the first that it has. None is wider than the last but one, which widths are taken from.
const FONTS: &str = "system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif";

/// A picture in the making.
pub(crate) struct Svg {
    text: String,
    open: Vec<&'static str>,
}

impl Svg {
    /// `rules` are pairs of selector and properties; a selector may come twice, first for light and then for dark surroundings.
    pub(crate) fn new(width: i32, height: i32, title: &str, style: &Style) -> Svg {
        let mut svg = Svg {
            text: String::new(),
            open: Vec::new(),
        };
        let _ = writeln!(
            svg.text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title\">"
        );
        svg.open.push("svg");
        svg.line(&format!("<title id=\"title\">{}</title>", escape(title)));
        let _ = writeln!(
            svg.text,
            "<style>\ntext{{font-family:{FONTS};font-size:11px}}"
        );
        svg.text.push_str(&style.light);
        let _ = writeln!(
            svg.text,
            "@media (prefers-color-scheme:dark){{\n{}}}\n</style>",
            style.dark
        );
        svg.line(&format!(
            "<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>"
        ));
        svg
    }

    /// A line of markup, as it is.
    pub(crate) fn line(&mut self, markup: &str) {
        self.text
            .push_str(&"  ".repeat(self.open.len().saturating_sub(1)));
        self.text.push_str(markup);
        self.text.push('\n');
    }

    /// Opens a group, with a text that is shown to those who point at it.
    pub(crate) fn group(&mut self, class: &str, data: &[(&str, &str)], title: &str) {
        let mut tag = format!("<g class=\"{class}\"");
        for (name, value) in data {
            let _ = write!(tag, " data-{name}=\"{}\"", escape(value));
        }
        self.line(&(tag + ">"));
        self.open.push("g");
        if !title.is_empty() {
            self.line(&format!("<title>{}</title>", escape(title)));
        }
    }

    /// Closes the last group.
    pub(crate) fn end(&mut self) {
        if let Some(tag) = self.open.pop() {
            self.line(&format!("</{tag}>"));
        }
    }

    pub(crate) fn rect(
        &mut self,
        class: &str,
        (x, y): (i32, i32),
        (width, height): (i32, i32),
        round: i32,
    ) {
        let round = if round > 0 {
            format!(" rx=\"{round}\"")
        } else {
            String::new()
        };
        self.line(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{round}/>"
        ));
    }

    pub(crate) fn path(&mut self, class: &str, data: &str) {
        self.line(&format!("<path class=\"{class}\" d=\"{data}\"/>"));
    }

    /// Text whose baseline begins, is centred or ends here.
    pub(crate) fn text(
        &mut self,
        class: &str,
        (x, y): (i32, i32),
        anchor: Anchor,
        text: impl Display,
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escape(&text.to_string());
        self.line(&format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"
        ));
    }

    /// The whole text.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.end();
        }
        self.text
    }
}

/// Which part of a text its place means.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Style rules.
#[derive(Default)]
pub(crate) struct Style {
    light: String,
    dark: String,
}

/// What is drawn in a colour of the palette.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// What everything stands on.
    Ground,
    /// The inside of a box.
    Paper,
    /// Its edge.
    Edge,
    /// Text.
    Text,
    /// Text that stands back.
    Faint,
    /// What is there, but not used.
    Absent,
    /// Hues that can be told from each other by everybody, after Okabe and Ito (2008).
    Blue,
    Orange,
    Green,
    Purple,
    Sky,
    Yellow,
}

impl Ink {
    fn light(self) -> &'static str {
        match self {
            Ink::Ground => "#ffffff",
            Ink::Paper => "#f6f8fa",
            Ink::Edge => "#57606a",
            Ink::Text => "#1f2328",
            Ink::Faint => "#59636e",
            Ink::Absent => "#a8b1bb",
            Ink::Blue => "#0a62b8",
            Ink::Orange => "#b8500a",
            Ink::Green => "#00805f",
            Ink::Purple => "#9c4f7f",
            Ink::Sky => "#3f92c4",
            Ink::Yellow => "#a07d00",
        }
    }

    fn dark(self) -> &'static str {
        match self {
            Ink::Ground => "#0d1117",
            Ink::Paper => "#161b22",
            Ink::Edge => "#8b949e",
            Ink::Text => "#e6edf3",
            Ink::Faint => "#9198a1",
            Ink::Absent => "#525b66",
            Ink::Blue => "#58a6ff",
            Ink::Orange => "#f0944d",
            Ink::Green => "#3fc79a",
            Ink::Purple => "#d98fbf",
            Ink::Sky => "#79c3ee",
            Ink::Yellow => "#e3c34a",
        }
    }
}

impl Style {
    /// The rules that every picture has.
    pub(crate) fn new() -> Style {
        let mut style = Style::default();
        style.add(".ground", "", &[("fill", Ink::Ground)]);
        style.add("text", "", &[("fill", Ink::Text)]);
        style.add(".faint", "", &[("fill", Ink::Faint)]);
        style.add(".title", "font-size:16px;font-weight:600", &[]);
        style
    }

    /// A rule: properties that never change, and those that take a colour.
    pub(crate) fn add(&mut self, selector: &str, fixed: &str, colours: &[(&str, Ink)]) {
        let list = |colour: fn(Ink) -> &'static str| {
            colours
                .iter()
                .map(|(name, ink)| format!("{name}:{}", colour(*ink)))
                .collect::<Vec<_>>()
                .join(";")
        };
        let join = if fixed.is_empty() || colours.is_empty() {
            ""
        } else {
            ";"
        };
        let _ = writeln!(
            self.light,
            "{selector}{{{fixed}{join}{}}}",
            list(Ink::light)
        );
        if !colours.is_empty() {
            let _ = writeln!(self.dark, "{selector}{{{}}}", list(Ink::dark));
        }
    }
}

/// Text as the content of an element or attribute. Control characters have no place in XML.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The width of a text in pixels, rounded up, in the widest of the fonts.
pub(crate) fn text_width(text: &str, size: i32, bold: bool) -> i32 {
    let thousandths: i32 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '\'' => 280,
            ' ' | '.' | ',' | ':' | ';' | '|' | 'I' => 340,
            'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | '!' => 400,
            '_' | 'c' | 's' | 'z' | 'J' => 550,
            'm' | 'w' | 'M' | 'W' | '@' | '%' | '+' | '=' | '<' | '>' | '~' => 980,
            'A'..='Z' | '#' | '&' => 780,
            c if c.is_ascii() => 640,
            // Wide scripts take a square.
            c if (c as u32) < 0x1100 => 700,
            _ => 1050,
        })
        .sum();
    let weight = if bold { 112 } else { 100 };
    (thousandths * size * weight).div_euclid(100_000) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let mut svg = Svg::new(10, 10, "a<b>&\"\u{7}", &Style::new());
        svg.text("", (0, 0), Anchor::Start, "</text><script>");
        let text = svg.finish();
        assert!(text.contains("a&lt;b&gt;&amp;&quot;\u{fffd}"), "{text}");
        assert!(!text.contains("<script>"));
    }

    #[test]
    fn every_colour_has_a_dark_twin() {
        let mut style = Style::new();
        style.add(".x", "stroke-width:2", &[("fill", Ink::Blue)]);
        assert!(
            style.light.contains(".x{stroke-width:2;fill:#0a62b8}"),
            "{}",
            style.light
        );
        assert!(style.dark.contains(".x{fill:#58a6ff}"), "{}", style.dark);
    }

    #[test]
    fn wide_letters_are_wide() {
        assert!(text_width("mmm", 10, SMALL) > 2 * text_width("iii", 10, SMALL));
        assert!(text_width("name", 10, BOLD) > text_width("name", 10, SMALL));
    }
}
