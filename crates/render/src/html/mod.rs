//! One HTML file that opens from disk without a network: the failure and its cause, the source
//! beside both schedules, and a way to step through them.
//!
//! The page is made of `page.html` (the skeleton), `page.css`, and the scripts, each for one part of
//! the page. What it shows comes as JSON in a `<script type="application/json">` element
//! ([`data`]), and is turned into elements by the scripts, always as text. The content security
//! policy lets nothing run or load but the style and the script of this file, named by their hashes.

mod data;
mod head;
mod sources;

pub use sources::{Missing, Sources};

use crate::Solution;
use crate::text::{TextOptions, to_text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

const SKELETON: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// In one scope of their own.
const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("model.js"),
    include_str!("elements.js"),
    include_str!("lane.js"),
    include_str!("source.js"),
    include_str!("details.js"),
    include_str!("page.js"),
    "})();\n"
);

/// The page for a solution. `sources` are the texts that its locations speak of; see
/// [`Sources::gather`].
///
/// # Errors
/// When serialisation fails, which for these types means out of memory.
pub fn to_html(solution: &Solution, sources: &Sources) -> Result<String, serde_json::Error> {
    let data = serde_json::to_string(&data::page(solution, sources))?;
    let parts = [
        ("title", escape(&head::title(solution))),
        ("policy", policy()),
        ("style", STYLE.to_owned()),
        ("head", head::markup(solution)),
        ("text", escape(&to_text(solution, TextOptions::default()))),
        ("carried", escape(&sources.carried())),
        ("data", json_for_script(&data)),
        ("script", SCRIPT.to_owned()),
    ];
    Ok(fill(SKELETON, &parts))
}

/// Puts the parts in the places of their names, `{{name}}`. What is put in is not looked at again.
fn fill(skeleton: &str, parts: &[(&str, String)]) -> String {
    let length = parts.iter().map(|(_, text)| text.len()).sum::<usize>() + skeleton.len();
    let mut out = String::with_capacity(length);
    let mut rest = skeleton;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        rest = match after.split_once("}}") {
            Some((name, behind)) => {
                let part = parts.iter().find(|(known, _)| *known == name);
                out.push_str(part.map_or("", |(_, text)| text));
                behind
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

/// Only this file's own style and script, and nothing from anywhere else.
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// Text in HTML, between tags or in a quoted attribute.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML has no way to write it.
            '\0' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

/// JSON as the content of a script element: without anything that could end the element or begin a
/// comment in it. These characters only occur within strings, where JSON has escapes for them.
fn json_for_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lost_update, other_path};

    fn page(solution: &Solution) -> String {
        let sources = Sources::gather(solution, |_| Err("it is not there".to_owned()));
        to_html(solution, &sources).unwrap()
    }

    /// The page's data, as the scripts read it.
    fn data_of(page: &str) -> serde_json::Value {
        let (_, data) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        serde_json::from_str(data).unwrap()
    }

    #[test]
    fn nothing_from_the_program_can_end_an_element() {
        let mut solution = lost_update();
        let hostile = "</script><!-- <img src=x onerror=alert(1)> {{script}} & \" '";
        solution.failure.as_mut().unwrap().message = hostile.to_owned();
        solution.events[0].object = Some(hostile.to_owned());
        let sources = Sources::gather(&solution, |_| Ok(format!("{hostile}\n").repeat(40)));
        let page = to_html(&solution, &sources).unwrap();
        assert_eq!(page.matches("</script>").count(), 2, "the data and the script");
        assert!(!page.contains("<img") && !page.contains("<!-- "), "markup from the program");
        let data = data_of(&page);
        let strings = data["strings"].as_array().unwrap();
        assert!(strings.iter().any(|text| text == hostile), "{strings:?}");
        assert!(data["files"][0]["parts"][0]["text"].as_str().unwrap().contains(hostile));
        assert!(page.contains("&lt;/script&gt;&lt;!-- &lt;img"), "the message is shown as text");
    }

    #[test]
    fn the_policy_names_the_style_and_the_script() {
        let page = page(&lost_update());
        let between = |begin: &str, end: &str| {
            let (_, rest) = page.rsplit_once(begin).unwrap();
            rest.split_once(end).unwrap().0.to_owned()
        };
        for (text, name) in [
            (between("<style>", "</style>"), "style-src"),
            (between("<script>", "</script>"), "script-src"),
        ] {
            let hash = STANDARD.encode(Sha256::digest(text.as_bytes()));
            assert!(page.contains(&format!("{name} 'sha256-{hash}'")), "{name}");
        }
        for forbidden in ["http://", "https://", " src=", " href=", " style=", " onclick="] {
            let found = page.replace("http://www.w3.org/2000/svg", "").contains(forbidden);
            assert!(!found, "the page contains {forbidden}");
        }
    }

    #[test]
    fn events_and_schedules_come_as_they_are() {
        let data = data_of(&page(&other_path()));
        let ids = data["events"]["id"].as_array().unwrap();
        let lane = |number: usize| {
            let order = data["lanes"][number]["order"].as_array().unwrap();
            let name = |index: &serde_json::Value| {
                ids[index.as_u64().unwrap() as usize].as_str().unwrap().to_owned()
            };
            order.iter().map(name).collect::<Vec<_>>()
        };
        let solution = other_path();
        assert_eq!(lane(0), solution.schedule);
        assert_eq!(lane(1), solution.alternates[0].schedule);
        // The DSP's values hold where the alternate has none of its own.
        let changed = &data["lanes"][1]["values"];
        let strings = data["strings"].as_array().unwrap();
        let of = |id: &str| {
            let pairs = changed.as_array().unwrap().iter();
            let pair = pairs
                .map(|pair| (ids[pair[0].as_u64().unwrap() as usize].clone(), pair[1].as_u64()));
            let (_, value) = pair.into_iter().find(|(event, _)| event == id)?;
            strings[value? as usize].as_str().map(str::to_owned)
        };
        assert_eq!(of("e2"), Some("1".to_owned()));
        assert_eq!(of("e1"), None, "it is the same");
    }

    #[test]
    fn an_empty_solution_makes_a_page() {
        let page = page(&Solution::default());
        assert!(page.contains("unknown"), "{page}");
        assert_eq!(data_of(&page)["lanes"].as_array().unwrap().len(), 0);
    }
}
