//! The HTML page in a browser: what it shows is what the JSON answer says.

mod axe;
mod browser;
mod expected;
mod large;

use crate::workspace::Workspace;
use browser::{Browser, END, ENTER, ESCAPE, HOME, LEFT, RIGHT};
use expected::Expected;
use render::Solution;
use render::html::{Sources, to_html};
use render::solution::Location;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const SUCCESS: i32 = 0;

/// What the page shows of a step: see [`expected::Step`].
const STATE: &str = r##"
    const all = (selector) => [...document.querySelectorAll(selector)];
    const cells = (row) => [...row.cells].map((cell) => cell.textContent);
    const state = () => {
        const here = document.querySelector("#source .line.here");
        return {
            step: document.getElementById("step").textContent,
            event: document.querySelector(".now .name").textContent.trim(),
            what: document.querySelector(".now code").textContent,
            line: here ? Number(here.dataset.line) : 0,
            source: here ? here.querySelector("code").textContent : "",
            variables: all("[data-variable]").map((row) => [row.dataset.key, cells(row)[1]]),
            locks: all("[data-lock]").map((row) => [row.dataset.lock, cells(row)[1].split(" ")[0]]),
        };
    };
"##;

/// A fixture's failing run: its answer. The source is the workspace's own.
fn solved(workspace: &Workspace, fixture: &str, more: &[&str]) -> Solution {
    let source = format!("{}/fixtures/programs/{fixture}/buggy.c", env!("CARGO_MANIFEST_DIR"));
    fs::copy(&source, workspace.path("buggy.c")).expect("the fixture can be copied");
    workspace
        .symbiosis(["cc", "-g", "-O1", "-pthread", "buggy.c", "-o", "program"])
        .expect_code(SUCCESS);
    let record = ["record", "--until-failure", "400", "-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let solve = ["solve", "failing.trace", "--format", "json", "-o", "answer.json"];
    workspace.symbiosis(solve.iter().chain(more)).expect_code(SUCCESS);
    let answer = fs::read_to_string(workspace.path("answer.json")).expect("the answer is there");
    serde_json::from_str(&answer).expect("it is a solution")
}

/// The identifiers of the events that a schedule shows, first to last.
fn shown(browser: &Browser, lane: usize) -> Vec<String> {
    let script = format!(
        "return [...document.querySelectorAll('[data-lane=\"{lane}\"] .row[data-id]')]
            .map((row) => row.dataset.id)"
    );
    serde_json::from_value(browser.run(&script)).expect("identifiers")
}

fn marked(browser: &Browser, lane: usize) -> BTreeSet<String> {
    let script = format!(
        "return [...document.querySelectorAll('[data-lane=\"{lane}\"] .row.marked')]
            .map((row) => row.dataset.id)"
    );
    serde_json::from_value(browser.run(&script)).expect("identifiers")
}

fn current(browser: &Browser) -> String {
    browser.text(".now .name").trim().to_owned()
}

/// Goes through every event of the schedule that is chosen and compares what is shown at each.
fn step_through(browser: &Browser, expected: &Expected<'_>) {
    browser.press("u");
    browser.press(HOME);
    let script = format!(
        "{STATE}
        const states = [state()];
        for (let step = 1; step < {}; step += 1) {{
            document.getElementById('forward').click();
            states.push(state());
        }}
        return states;",
        expected.order.len()
    );
    let states = browser.run(&script);
    let states = states.as_array().expect("states");
    assert_eq!(states.len(), expected.order.len());
    for (step, state) in states.iter().enumerate() {
        expected.compare(step, state);
    }
    browser.press("u");
}

fn check_flows(browser: &Browser, solution: &Solution) {
    let dsp = solution.dsp.as_ref().expect("a DSP");
    let lanes = [&dsp.data_flows.failing_only, &dsp.data_flows.alternate_only];
    let all =
        lanes.iter().enumerate().flat_map(|(lane, flows)| flows.iter().map(move |f| (lane, f)));
    let all: Vec<_> = all.collect();
    assert!(!all.is_empty(), "the fixture has data-flows that differ");
    let ends = |flow: &render::solution::DataFlow| {
        let ends = [&flow.write, &flow.read].into_iter().filter(|end| *end != "init");
        ends.cloned().collect::<BTreeSet<_>>()
    };
    for (lane, flow) in &all {
        browser.press("d");
        assert_eq!(marked(browser, *lane), ends(flow), "by keyboard, {flow:?}");
        let value = flow.value.as_deref().unwrap_or("?");
        let title = browser.text("#source-title");
        assert!(
            title.starts_with("Data-flow") && title.ends_with(&format!("= {value}")),
            "{title}"
        );
        let read = solution.event(&flow.read).expect("the reading event");
        let words = browser.text("#source");
        let place = format!("Read by {}", read.thread);
        assert!(words.contains(&place) && words.contains(&render::lanes::place(&read.location)));
        assert!(flow.write == "init" || words.contains("Written by"), "{words}");
    }
    browser.run("document.activeElement.blur()");
    assert!(marked(browser, 0).is_empty() && marked(browser, 1).is_empty());
    assert!(browser.text("#source-title").starts_with("Source"));
    let (lane, flow) = all[0];
    browser.hover(&format!("[data-lane='{lane}'] button.flow"));
    assert_eq!(marked(browser, lane), ends(flow), "by pointer");
    browser.hover("h1");
    assert!(marked(browser, lane).is_empty());
}

fn check_search(browser: &Browser, solution: &Solution, word: &str) {
    let contains = |id: &&String| {
        let event = solution.event(id).expect("an event");
        [event.object.as_deref().unwrap_or(""), &event.location.function]
            .iter()
            .any(|text| text.contains(word))
    };
    let matches: Vec<&String> = solution.schedule.iter().filter(contains).collect();
    assert!(!matches.is_empty(), "the fixture has {word}");
    browser.press(HOME);
    browser.press("/");
    browser.press(word);
    let first = browser.text("#matches");
    browser.press(ENTER);
    let second = browser.text("#matches");
    let count = matches.len();
    // The event that it begins at may be a match itself.
    assert!(
        first == format!("{count} found") || first.ends_with(&format!(" of {count}")),
        "{first}"
    );
    assert!(second.ends_with(&format!(" of {count}")), "{second} of {count}");
    assert!(matches.contains(&&current(browser)), "{} is no match", current(browser));
    let position = |id: String| matches.iter().position(|one| **one == id);
    let before = position(current(browser)).expect("a match");
    browser.press(ENTER);
    assert_eq!(position(current(browser)), Some((before + 1) % count));
    browser.press(ESCAPE);
    assert_eq!(browser.run("return document.activeElement.getAttribute('role')"), "grid");
    browser.run(
        "const search = document.getElementById('search');
        search.value = ''; search.dispatchEvent(new Event('input'))",
    );
}

fn check_folding(browser: &Browser, solution: &Solution) {
    browser.press("u");
    let rows = "return Number(document.querySelector('[data-lane=\"0\"] .grid').ariaRowCount)";
    assert_eq!(browser.run(rows), solution.schedule.len() + 1, "all, and the heads");
    browser.press("u");
    let folded = browser.run(rows).as_u64().expect("a number");
    assert!(folded < solution.schedule.len() as u64, "{folded} rows");
    let label = browser.text("[data-lane='0'] .unfold");
    let hidden: u64 = label.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    browser.click("[data-lane='0'] .unfold");
    assert_eq!(browser.run(rows).as_u64(), Some(folded - 1 + hidden));
    browser.press("u");
    browser.press("u");
    assert_eq!(browser.run(rows).as_u64(), Some(folded), "as at first");
}

#[test]
fn a_solved_fixture_is_shown_as_the_answer_says() {
    let workspace = Workspace::new("page-fixture");
    let Some(browser) = Browser::start(&workspace.path(".")) else { return };
    let solution = solved(&workspace, "two_stage", &["--no-replay"]);
    let page = workspace.path("page.html");
    let solve = ["solve", "failing.trace", "--no-replay", "--format", "html", "-o", "page.html"];
    workspace.symbiosis(solve).expect_code(SUCCESS);
    browser.open(&page);
    browser.picture("light");

    let failure = solution.failure.as_ref().expect("a failure");
    let place = render::lanes::place(&failure.location);
    let head = browser.text("header");
    for part in ["Assertion failed", "kelvin == celsius + ZERO_CELSIUS", &failure.thread, &place] {
        assert!(head.contains(part), "{part} is missing in {head}");
    }
    let cause = solution.cause.as_ref().expect("a cause");
    assert!(head.contains(&cause.sentence.replace('`', "")), "{head}");

    for lane in 0..2 {
        let expected = Expected::of(&solution, lane);
        assert_eq!(shown(&browser, lane), expected.shown(), "what schedule {lane} shows at first");
        let rows = browser.run(&format!(
            "return [...document.querySelectorAll('[data-lane=\"{lane}\"] .row[data-id]')].map((row) =>
                [row.dataset.id, row.querySelector('.what').textContent,
                row.querySelector('.where').firstChild.textContent])"
        ));
        for row in rows.as_array().expect("rows") {
            expected.compare_row(row);
        }
    }
    // The sensor's two writes, or the display's two reads. A run that ends early may have neither.
    let brackets = "return document.querySelectorAll('[data-lane=\"0\"] .block').length";
    let atomicity = cause.pattern.ends_with("atomicity");
    assert_eq!(browser.run(brackets).as_u64() >= Some(1), atomicity, "{cause:?}");

    let first = Expected::of(&solution, 0).shown();
    let begins = first.iter().find(|id| cause.events.contains(id)).expect("the cause is shown");
    assert_eq!(current(&browser), *begins);
    browser.press(HOME);
    assert_eq!(current(&browser), first[0]);
    browser.press(RIGHT);
    assert_eq!(current(&browser), first[1]);
    let said = browser.text("#said");
    let event = solution.event(&first[1]).expect("an event");
    assert!(said.starts_with("Step ") && said.contains(&event.thread), "{said}");
    browser.press(LEFT);
    assert_eq!(current(&browser), first[0]);
    browser.press(END);
    assert_eq!(Some(&current(&browser)), first.last());
    browser.click("header .named button");
    assert_eq!(current(&browser), cause.events[0]);

    check_flows(&browser, &solution);
    step_through(&browser, &Expected::of(&solution, 0));
    browser.press("s");
    step_through(&browser, &Expected::of(&solution, 1));
    browser.press("s");
    check_search(&browser, &solution, "kelvin");
    check_folding(&browser, &solution);
    check_appearance(&browser, &workspace);
    assert_eq!(browser.complaints(), Vec::<String>::new());

    fs::remove_file(workspace.path("buggy.c")).expect("the source is there");
    workspace.symbiosis(solve).expect_code(SUCCESS);
    browser.open(&page);
    let source = browser.text("#source");
    assert!(source.contains("The source is not on this page") && source.contains("buggy.c"));
    assert_eq!(current(&browser), *begins);
}

/// Light and dark, wide and narrow, folded and not: nothing that axe finds serious.
fn check_appearance(browser: &Browser, workspace: &Workspace) {
    let ground = "return getComputedStyle(document.body).backgroundColor";
    let light = browser.run(ground);
    browser.prefer_dark(true);
    let dark = browser.run(ground);
    assert_ne!(light, dark, "the page follows the system's colours");
    browser.picture("dark");
    browser.click("#theme");
    assert_eq!(browser.run(ground), light, "the first choice is light");
    browser.click("#theme");
    browser.prefer_dark(false);
    assert_eq!(browser.run(ground), dark, "the second is dark");
    browser.click("#theme");
    assert_eq!(browser.run(ground), light, "then as the system has it");
    let axe = axe::fetched(&workspace.path("."));
    let check = |state: &str| {
        if let Some(axe) = &axe {
            assert_eq!(axe::serious(browser, axe), Vec::<Value>::new(), "{state}");
        }
    };
    check("light");
    browser.press("d");
    check("with a data-flow");
    browser.prefer_dark(true);
    browser.press("u");
    browser.press("?");
    check("dark, unfolded, with the keys");
    browser.press("u");
    browser.press("?");
    browser.resize(500, 1400);
    browser.picture("narrow-dark");
    check("narrow");
    let wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.run(wide), 0, "nothing is beyond the right edge");
    browser.resize(1440, 900);
    browser.prefer_dark(false);
}

#[test]
fn a_run_on_other_paths_is_shown_with_its_own_events() {
    let workspace = Workspace::new("page-other-path");
    let Some(browser) = Browser::start(&workspace.path(".")) else { return };
    let solution = solved(&workspace, "settings", &[]);
    let alternate = solution.alternates.first().expect("a passing run");
    assert!(!alternate.same_path && !alternate.events.is_empty(), "it takes another path");
    let page = workspace.path("page.html");
    let read = |name: &str| fs::read_to_string(name).map_err(|error| error.to_string());
    let html = to_html(&solution, &Sources::gather(&solution, read)).expect("a page");
    fs::write(&page, html).expect("it can be written");
    browser.open(&page);
    browser.picture("other-path");
    assert_eq!(browser.text("[data-lane='1'] h2"), "passing run");
    browser.press("s");
    step_through(&browser, &Expected::of(&solution, 1));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_hundred_thousand_events_stay_a_few_rows() {
    let workspace = Workspace::new("page-large");
    let Some(browser) = Browser::start(&workspace.path(".")) else { return };
    // What a program may call a thing, or a compiler: it must stay text.
    let name = "</script><img src=x onerror=\"document.title='broken'\">counters";
    let solution = large::large(100_000, name);
    let sources = Sources::gather(&solution, |_| Err("nobody has it".to_owned()));
    let page = workspace.path("page.html");
    fs::write(&page, to_html(&solution, &sources).expect("a page")).expect("it can be written");
    browser.open(&page);
    assert_eq!(browser.run("return document.images.length"), 0);
    assert!(!browser.text("title").contains("broken"));
    assert!(browser.text("[data-lane='0'] .what b").contains(name), "the name is text");

    let count = solution.schedule.len();
    browser.press("u");
    let rows = "return document.querySelectorAll('.row').length";
    let few = |browser: &Browser| {
        let rows = browser.run(rows).as_u64().expect("a number");
        assert!((10..120).contains(&rows), "{rows} rows of {count} events");
    };
    few(&browser);
    browser.press(END);
    assert_eq!(Some(&current(&browser)), solution.schedule.last());
    few(&browser);
    browser.press(HOME);
    assert_eq!(Some(&current(&browser)), solution.schedule.first());
    // From the middle on, as a person would who drags the scroll bar.
    browser.run(
        "const grid = document.querySelector('[data-lane=\"0\"] .grid');
        grid.scrollTop = grid.scrollHeight / 2;",
    );
    let middle = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(
        () => done(document.querySelector('[data-lane=\"0\"] .row[data-step]').dataset.step))))";
    let step: usize = serde_json::from_value::<String>(browser.run(middle))
        .ok()
        .and_then(|step| step.parse().ok())
        .expect("a step");
    assert!(step.abs_diff(count / 2) < 100, "{step} of {count}");
    browser.click(&format!("[data-lane='0'] .row[data-step='{}']", step + 12));
    assert_eq!(current(&browser), solution.schedule[step + 12]);
    let expected = Expected::of(&solution, 0);
    let state = browser.run(&format!("{STATE} return state()"));
    expected.compare_last(step + 12, &state);
    let spent = browser.run(
        "const start = performance.now();
        for (let count = 0; count < 50; count += 1) document.getElementById('forward').click();
        return (performance.now() - start) / 50;",
    );
    eprintln!("a step takes {spent} ms among {count} events");
    assert_eq!(current(&browser), solution.schedule[step + 62]);
    browser.press("/");
    browser.press("counters[63] write");
    let writes = solution.events.iter().filter(|event| {
        event.kind == "write" && event.object.as_ref().is_some_and(|o| o.ends_with("counters[63]"))
    });
    let found = browser.text("#matches");
    assert!(found.ends_with(&format!("{} found", writes.count())), "{found}");
    browser.press(ENTER);
    let event = solution.event(&current(&browser)).expect("an event");
    assert_eq!((event.kind.as_str(), event.targets[0].as_str()), ("write", "m63"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The line of a file that still is where the location says; `None` for one that is not there.
fn line_of(location: &Location) -> Option<String> {
    let text = fs::read_to_string(Path::new(&location.file)).ok()?;
    text.lines().nth(location.line.checked_sub(1)? as usize).map(str::to_owned)
}
