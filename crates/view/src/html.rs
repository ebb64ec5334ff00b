//! The page as one HTML text, with its style, its script and, in a saved page, its data.

use serde::Serialize;

use crate::access::random_text;
use crate::viewed_run::{ViewError, ViewedRun};

const PAGE: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");

/// The parts of the script, in their order: the later ones use the earlier ones.
const SCRIPT: &str = concat!(
    include_str!("../page/script/base.js"),
    include_str!("../page/script/units.js"),
    include_str!("../page/script/figures.js"),
    include_str!("../page/script/header.js"),
    include_str!("../page/script/graph.js"),
    include_str!("../page/script/tables.js"),
    include_str!("../page/script/history.js"),
    include_str!("../page/script/logs.js"),
    include_str!("../page/script/look.js"),
);

/// The page of a server, and the policy for its header. Only the style and the script of the page itself
/// have the nonce.
pub(crate) fn served() -> Result<(String, String), ViewError> {
    let nonce = random_text()?;
    let page = fill(&nonce, "", "titin", "null");
    let policy = format!(
        "{}; connect-src 'self'; frame-ancestors 'none'",
        policy(&nonce)
    );
    Ok((page, policy))
}

/// The page of a run with all its data. It needs no server and no other file.
///
/// # Errors
/// [`ViewError`] if the system has no random numbers, or the data cannot be written as JSON.
pub fn save(run: &ViewedRun) -> Result<String, ViewError> {
    let nonce = random_text()?;
    let saved = run.saved();
    let meta = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n",
        policy(&nonce)
    );
    let title = escape(&saved.facts.model);
    Ok(fill(&nonce, &meta, &title, &for_script(&saved)?))
}

fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
    )
}

/// The page with its parts in their places. The data come last: whatever they contain is not a place.
fn fill(nonce: &str, policy: &str, title: &str, saved: &str) -> String {
    let with_nonce = |tag: &str| tag.replace('>', &format!(" nonce=\"{nonce}\">"));
    let frame = PAGE
        .replace("<style>", &with_nonce("<style>"))
        .replace("<script>", &with_nonce("<script>"));
    let parts = [
        ("{policy}", policy),
        ("{title}", title),
        ("{style}", STYLE),
        ("{script}", SCRIPT),
    ];
    let (before, after) = frame.split_once("{saved}").unwrap_or((&frame, ""));
    let place = |text: &str| {
        let known = parts.iter().filter(|(name, _)| text.contains(name));
        known.fold(text.to_owned(), |text, (name, part)| {
            text.replacen(name, part, 1)
        })
    };
    [&place(before), saved, &place(after)].concat()
}

/// JSON for an element `script`. No text within can end the element.
fn for_script(value: &impl Serialize) -> Result<String, ViewError> {
    Ok(serde_json::to_string(value)?.replace('<', "\\u003c"))
}

/// Text for the content of an element.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_run_ends_the_data() {
        let data = for_script(&["</script><script>alert(1)</script>", "<!--"]).unwrap();
        assert!(!data.contains('<'), "{data}");
        let page = fill("n", "", &escape("<b>{script}"), &data);
        assert_eq!(page.matches("<script").count(), 2);
        assert!(page.contains("<title>&lt;b>"), "{page}");
        let read: Vec<String> = serde_json::from_str(&data).unwrap();
        assert_eq!(read[0], "</script><script>alert(1)</script>");
    }

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        let (page, policy) = served().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"));
        for text in ["http://", "https://", "//cdn", "url(", "@import", " src="] {
            let found = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(text), "{text}");
        }
        for place in ["{policy}", "{title}", "{style}", "{script}", "{saved}"] {
            let in_script = SCRIPT.matches(place).count();
            assert_eq!(page.matches(place).count(), in_script, "{place}");
        }
    }
}
