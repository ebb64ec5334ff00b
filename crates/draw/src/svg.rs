//! SVG text: elements, text widths, and colours for light and dark surroundings.

use std::fmt::{Display, Write};

/// The weight of ordinary text, for [`text_width`].
pub(crate) const REGULAR: bool = false;
/// The weight of bold text, for [`text_width`].
pub(crate) const BOLD: bool = true;

/// The fonts. A viewer takes the first installed font. DejaVu Sans is the widest font of the list,
/// so [`text_width`] measures DejaVu Sans.
const FONTS: &str = "system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif";

/// An unfinished picture.
pub(crate) struct Svg {
    text: String,
    open: Vec<&'static str>,
}

impl Svg {
    /// An empty picture; `width` and `height` are in pixels. `title` describes the picture to
    /// screen readers.
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
        svg.markup(&format!("<title id=\"title\">{}</title>", escape(title)));
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
        svg.markup(&format!(
            "<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>"
        ));
        svg
    }

    /// Adds a line of markup, unescaped.
    pub(crate) fn markup(&mut self, markup: &str) {
        self.text
            .push_str(&"  ".repeat(self.open.len().saturating_sub(1)));
        self.text.push_str(markup);
        self.text.push('\n');
    }

    /// Opens a group. A viewer shows `title` while the mouse is over the group.
    pub(crate) fn group(&mut self, class: &str, data: &[(&str, &str)], title: &str) {
        let mut tag = format!("<g class=\"{class}\"");
        for (name, value) in data {
            let _ = write!(tag, " data-{name}=\"{}\"", escape(value));
        }
        self.markup(&(tag + ">"));
        self.open.push("g");
        if !title.is_empty() {
            self.markup(&format!("<title>{}</title>", escape(title)));
        }
    }

    /// Closes the last group.
    pub(crate) fn end(&mut self) {
        if let Some(tag) = self.open.pop() {
            self.markup(&format!("</{tag}>"));
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
        self.markup(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{round}/>"
        ));
    }

    pub(crate) fn path(&mut self, class: &str, data: &str) {
        self.markup(&format!("<path class=\"{class}\" d=\"{data}\"/>"));
    }

    /// Adds text. `anchor` names the point of the text's baseline at `(x, y)`.
    pub(crate) fn text(
        &mut self,
        class: &str,
        (x, y): (i32, i32),
        anchor: TextAnchor,
        text: impl Display,
    ) {
        let anchor = match anchor {
            TextAnchor::Start => "",
            TextAnchor::Middle => " text-anchor=\"middle\"",
            TextAnchor::End => " text-anchor=\"end\"",
        };
        let text = escape(&text.to_string());
        self.markup(&format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"
        ));
    }

    /// Closes all groups and returns the SVG text.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.end();
        }
        self.text
    }
}

/// The point of a text at the text's coordinates.
#[derive(Clone, Copy)]
pub(crate) enum TextAnchor {
    Start,
    Middle,
    End,
}

/// The style rules of a picture, for a light and for a dark background.
#[derive(Default)]
pub(crate) struct Style {
    light: String,
    dark: String,
}

/// A colour of the palette, named after the colour's use. Each colour has a light and a dark value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The background.
    Ground,
    /// The inside of a box.
    Paper,
    /// The edge of a box.
    Edge,
    /// Text.
    Text,
    /// Less important text.
    Faint,
    /// Unconnected ports, and grid lines.
    Absent,
    /// The hues of Okabe and Ito (2008). Colour-blind readers can tell these hues apart.
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
    /// The rules common to all pictures.
    pub(crate) fn new() -> Style {
        let mut style = Style::default();
        style.fill(".ground", Ink::Ground);
        style.fill("text", Ink::Text);
        style.fill(".faint", Ink::Faint);
        style.fixed(".title", "font-size:16px;font-weight:600");
        style
    }

    /// Adds a rule. Properties in `fixed` have fixed values, properties in `colours` have a colour.
    pub(crate) fn add(&mut self, selector: &str, fixed: &str, colours: &[(&str, Ink)]) {
        let properties = |colour: fn(Ink) -> &'static str| {
            let properties = colours.iter();
            let properties = properties.map(|(name, ink)| format!("{name}:{}", colour(*ink)));
            properties.collect::<Vec<_>>().join(";")
        };
        let join = match fixed.is_empty() || colours.is_empty() {
            true => "",
            false => ";",
        };
        let light = properties(Ink::light);
        let _ = writeln!(self.light, "{selector}{{{fixed}{join}{light}}}");
        if !colours.is_empty() {
            let dark = properties(Ink::dark);
            let _ = writeln!(self.dark, "{selector}{{{dark}}}");
        }
    }

    /// Adds a rule without colours.
    pub(crate) fn fixed(&mut self, selector: &str, properties: &str) {
        self.add(selector, properties, &[]);
    }

    /// Adds the colour of areas.
    pub(crate) fn fill(&mut self, selector: &str, ink: Ink) {
        self.add(selector, "", &[("fill", ink)]);
    }

    /// Adds the colour of lines.
    pub(crate) fn stroke(&mut self, selector: &str, ink: Ink) {
        self.add(selector, "", &[("stroke", ink)]);
    }
}

/// Escapes text for an element or an attribute. XML allows no control characters, so U+FFFD
/// replaces control characters.
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

/// The width of a text in pixels, rounded up, in the widest of [`FONTS`].
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
            // Scripts from Hangul on have square letters.
            c if (c as u32) < 0x1100 => 700,
            _ => 1050,
        })
        .sum();
    let weight = if bold { 112 } else { 100 };
    (thousandths * size * weight).div_euclid(100_000) + 1
}

/// Text cut to a width in pixels, with an ellipsis.
pub(crate) fn shorten(text: &str, width: i32, size: i32) -> String {
    if text_width(text, size, REGULAR) <= width {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while !short.is_empty() && text_width(&short, size, REGULAR) > width - size {
        short.pop();
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let mut svg = Svg::new(10, 10, "a<b>&\"\u{7}", &Style::new());
        svg.text("", (0, 0), TextAnchor::Start, "</text><script>");
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
        assert!(text_width("mmm", 10, REGULAR) > 2 * text_width("iii", 10, REGULAR));
        assert!(text_width("name", 10, BOLD) > text_width("name", 10, REGULAR));
    }
}
