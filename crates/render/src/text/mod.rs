//! Plain text for a terminal or a log.

mod sides;
mod steps;
mod style;

use crate::Solution;
use crate::lanes::{Lane, describe, lanes, place};
use crate::solution::{Event, Failure, Replay, RootCause, Verdict};
use std::fmt::{self, Write as _};
use style::{Paint, paint, wrap};

/// How much to print, and for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Print every event of the failing schedule too.
    pub full_schedule: bool,
    /// Columns of the terminal; none for a log, where lines may have any length.
    pub width: Option<usize>,
    /// Use the terminal's colours.
    pub colour: bool,
}

/// Gives a line of a source file, without its end, by the file's name in the answer and the line's
/// number from 1; `None` where there is no such file or line.
pub type SourceLine<'s> = dyn Fn(&str, u32) -> Option<String> + 's;

/// The solution as text: the cause in one sentence, the failure, the root cause, the DSP, the
/// figures.
#[must_use]
pub fn to_text(solution: &Solution, options: TextOptions) -> String {
    to_text_with_source(solution, options, &|_, _| None)
}

/// The same with lines of the program.
#[must_use]
pub fn to_text_with_source(
    solution: &Solution,
    options: TextOptions,
    source: &SourceLine<'_>,
) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_text(&mut out, solution, options, source);
    style::fitted(&out, options.width)
}

fn write_text(
    out: &mut String,
    solution: &Solution,
    options: TextOptions,
    source: &SourceLine<'_>,
) -> fmt::Result {
    if let Some(cause) = &solution.cause {
        let title = if solution.doubts_cause() { "possible cause:" } else { "cause:" };
        let sentence = wrap(&cause.sentence, options.width, title.len() + 1, "  ");
        writeln!(out, "{} {sentence}\n", heading(options, title))?;
        steps::write(out, solution, options, source)?;
    }
    if let Some(failure) = &solution.failure {
        write_failure(out, failure, options)?;
        steps::write_lines(out, &failure.location, options, source)?;
        write_waits(out, solution)?;
    }
    match solution.verdict {
        Verdict::FailingSchedule => write_schedule(out, solution, options)?,
        Verdict::NoSchedule => {
            writeln!(
                out,
                "no schedule: no order of the recorded events leads to this failure{}",
                reason(solution)
            )?;
            for note in &solution.replay_notes {
                writeln!(out, "{}", wrap(note, options.width, 2, "  "))?;
            }
        }
        Verdict::Unknown => writeln!(out, "unknown: no answer was found{}", reason(solution))?,
    }
    write_stats(out, solution)
}

fn heading(options: TextOptions, text: &str) -> String {
    paint(options.colour, Paint::Heading, text)
}

fn reason(solution: &Solution) -> String {
    solution.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
}

fn write_failure(out: &mut String, failure: &Failure, options: TextOptions) -> fmt::Result {
    write!(out, "{} {}", heading(options, "failure:"), failure.kind)?;
    if !failure.message.is_empty() {
        write!(out, ": {}", failure.message)?;
    }
    let location = &failure.location;
    writeln!(out)?;
    // Of a run that was not walked only the thread is known, and of one that hung not even that.
    if location.file.is_empty() && failure.thread.is_empty() {
        return Ok(());
    }
    if location.file.is_empty() {
        return writeln!(out, "  in thread {}", failure.thread);
    }
    write!(out, "  at {}:{}", location.file, location.line)?;
    if location.column > 0 {
        write!(out, ":{}", location.column)?;
    }
    if !location.function.is_empty() {
        write!(out, " in {}", location.function)?;
    }
    writeln!(out, ", thread {}", failure.thread)
}

/// Who waited for what when the run was ended, and since when others have had it, with stacks.
fn write_waits(out: &mut String, solution: &Solution) -> fmt::Result {
    let waits = |event: &&Event| event.awaits();
    for wait in solution.events.iter().filter(waits) {
        writeln!(out, "  {}: {} [{}]", wait.thread, describe(wait, None), wait.id)?;
        write_stack(out, wait)?;
        if !wait.kind.starts_with("wait-for-lock") {
            continue;
        }
        // Different objects may have the same name: that of the array's element in each thread.
        let same = |event: &Event, other: &Event| {
            event.targets == other.targets
                && (!event.targets.is_empty() || event.object == other.object)
        };
        let held = |event: &&Event| event.kind == "still-held" && same(event, wait);
        for release in solution.events.iter().filter(held) {
            let acquires = |event: &&Event| {
                event.thread == release.thread
                    && same(event, release)
                    && matches!(event.kind.as_str(), "lock" | "lock-shared")
            };
            if let Some(lock) = solution.events.iter().rfind(acquires) {
                writeln!(out, "    {} has it since {} [{}]", lock.thread, lock.kind, lock.id)?;
                write_stack(out, lock)?;
            }
        }
    }
    Ok(())
}

fn write_stack(out: &mut String, event: &Event) -> fmt::Result {
    for (depth, location) in [&event.location].into_iter().chain(&event.callers).enumerate() {
        let word = if depth == 0 { "at" } else { "called at" };
        write!(out, "      {word} {}", place(location))?;
        if !location.function.is_empty() {
            write!(out, " in {}", location.function)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_schedule(out: &mut String, solution: &Solution, options: TextOptions) -> fmt::Result {
    let stats = &solution.stats;
    writeln!(
        out,
        "\n{} {} events of {} threads, {} context switches ({})",
        heading(options, "failing schedule:"),
        solution.schedule.len(),
        solution.threads.len(),
        stats.context_switches,
        solution.replay.words()
    )?;
    for note in &solution.replay_notes {
        writeln!(out, "  replay: {note}")?;
    }
    if options.full_schedule {
        write_full_schedule(out, solution)?;
    }
    write_root_cause(out, solution, options)?;
    write_alternates(out, solution, options)?;
    if let Some([failing, alternate]) = lanes(solution) {
        sides::write(out, &failing, &alternate, options)?;
        write_flows(out, solution, &failing)?;
        write_flows(out, solution, &alternate)?;
    }
    if let Some(reason) = &solution.reason {
        writeln!(out, "\nincomplete: {reason}")?;
    }
    Ok(())
}

fn write_full_schedule(out: &mut String, solution: &Solution) -> fmt::Result {
    let width = solution.threads.iter().map(|thread| thread.id.len()).max().unwrap_or(0);
    let mut previous = "";
    for event in solution.schedule.iter().filter_map(|id| solution.event(id)) {
        if event.thread != previous {
            writeln!(out, "  {}", event.thread)?;
            previous = &event.thread;
        }
        let what = describe(event, event.value.as_deref());
        writeln!(out, "  {:width$}  {:>6}  {:<20} {what}", "", event.id, place(&event.location))?;
    }
    Ok(())
}

fn write_root_cause(out: &mut String, solution: &Solution, options: TextOptions) -> fmt::Result {
    let Some(cause) = &solution.root_cause else { return Ok(()) };
    if cause.fails_always {
        return write_unavoidable(out, solution, cause);
    }
    let minimal = match (cause.minimal, cause.proposed) {
        (true, _) => "minimal",
        (false, false) => "not proved minimal",
        (false, true) => "proposed: not shown to always lead to the failure",
    };
    let count = cause.orders.len();
    let noun = if count == 1 { "ordering" } else { "orderings" };
    writeln!(out, "\n{} {count} {noun} ({minimal})", heading(options, "root cause:"))?;
    write_orders(out, solution, cause)
}

/// Along the recorded paths every schedule fails; perhaps not along others.
fn write_unavoidable(out: &mut String, solution: &Solution, cause: &RootCause) -> fmt::Result {
    if solution.alternates.iter().any(|alternate| !alternate.same_path) {
        writeln!(
            out,
            "\nroot cause: along the recorded paths every schedule fails. With this ordering the \
             other way round\nthe program takes another path, which avoids the failure (seen in a \
             run; not proved to be the only way):"
        )?;
        return write_orders(out, solution, cause);
    }
    if solution.had_one_thread() {
        return writeln!(
            out,
            "\nroot cause: none among the orderings: there was one thread when the run failed."
        );
    }
    if solution.replay == Replay::Diverged {
        return writeln!(
            out,
            "\nroot cause: none among the orderings that are modelled: every schedule along these \
             paths should fail,\nbut the program did not under the one that it was given."
        );
    }
    let tried = solution.stats.alternates_tried;
    if solution.stats.not_compared > 0 {
        return writeln!(
            out,
            "\nroot cause: not found. The failure happens under every schedule along these paths. \
             {} of {tried} runs with other\norderings passed, but what their threads did could not \
             be followed well enough to compare them.",
            solution.stats.not_compared
        );
    }
    writeln!(
        out,
        "\nroot cause: none among the orderings. The failure happens under every schedule along \
         these paths.\nA run that avoids it, if there is one, takes other branches or touches other \
         addresses;\n{}.",
        match tried {
            0 => "such a run is looked for by replay, which did not take place".to_owned(),
            1 => "the one run that was tried did not".to_owned(),
            _ => format!("none of {tried} runs with other orderings did"),
        }
    )
}

fn write_orders(out: &mut String, solution: &Solution, cause: &RootCause) -> fmt::Result {
    for [before, after] in &cause.orders {
        writeln!(out, "  {}", one_event(solution, before))?;
        writeln!(out, "    before {}", one_event(solution, after))?;
    }
    Ok(())
}

fn one_event(solution: &Solution, id: &str) -> String {
    match solution.event(id) {
        Some(event) => format!(
            "{}: {} at {} [{id}]{}",
            event.thread,
            describe(event, event.value.as_deref()),
            place(&event.location),
            if id.starts_with('a') { " (only in the passing run)" } else { "" }
        ),
        None => id.to_owned(),
    }
}

fn write_alternates(out: &mut String, solution: &Solution, options: TextOptions) -> fmt::Result {
    let fails_always = solution.root_cause.as_ref().is_some_and(|cause| cause.fails_always);
    if solution.alternates.is_empty() && !fails_always {
        return writeln!(
            out,
            "\nalternates: none found on these paths ({} pairs tried)",
            solution.stats.alternates_tried
        );
    }
    for (index, alternate) in solution.alternates.iter().enumerate() {
        let [before, after] = &alternate.flipped;
        let path = if alternate.same_path { "" } else { "takes another path and " };
        let title = heading(options, &format!("alternate {index}"));
        writeln!(out, "\n{title} {path}{} ({})", alternate.outcome(), alternate.replay.words())?;
        writeln!(out, "  {}", one_event(solution, before))?;
        writeln!(out, "    now before {}", one_event(solution, after))?;
        if let Some(note) = &alternate.replay_note {
            writeln!(out, "  replay: {note}")?;
        }
    }
    Ok(())
}

fn write_flows(out: &mut String, solution: &Solution, lane: &Lane) -> fmt::Result {
    if lane.flows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\ndata-flows of the {} only", lane.title)?;
    for flow in &lane.flows {
        let end = |id: &str| {
            solution.event(id).map_or_else(
                || "the initial value".to_owned(),
                |event| {
                    format!("{} {}", event.thread, describe(event, None))
                        + &format!(" ({})", place(&event.location))
                },
            )
        };
        let value = flow.value.as_deref().unwrap_or("");
        writeln!(out, "  {} --{value}--> {}", end(&flow.write), end(&flow.read))?;
        let causes = flow.follows_from.iter().filter_map(|id| solution.event(id));
        let causes: Vec<String> = causes
            .map(|event| format!("{}'s read ({})", event.thread, place(&event.location)))
            .collect();
        if !causes.is_empty() {
            writeln!(out, "    (follows from the other source of {})", causes.join(" and "))?;
        }
    }
    Ok(())
}

fn write_stats(out: &mut String, solution: &Solution) -> fmt::Result {
    let stats = &solution.stats;
    if solution.dsp.is_some() {
        writeln!(
            out,
            "\nshown: {} of {} events, {} of {} data-flows",
            stats.dsp_events, stats.events, stats.dsp_data_flows, stats.data_flows
        )?;
    }
    if stats.model_gaps > 0 {
        writeln!(
            out,
            "\nwarning: {} model gaps: the executor could not model everything the program did; \
             `symbiosis check` lists them",
            stats.model_gaps
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lost_update, other_path};
    use expect_test::expect;

    #[test]
    fn a_lost_update_reads_as_a_story() {
        expect![[r#"
            cause: t0.1 wrote `bank->total` (bank.c:11) between t0.2's read (bank.c:10) and its write (bank.c:11)

              1. t0.2: read bank->total = 0 (1 when it passes) [e2]
                 at bank.c:10 in deposit
              2. t0.1 (deposit): write bank->total = 1 [e1]
                 at bank.c:11 in deposit
              3. t0.2: write bank->total = 1 [e3]
                 at bank.c:11 in deposit

            failure: assertion: bank->total == "2"
              at /src/bank.c:30:5 in deposit, thread t0

            failing schedule: 6 events of 2 threads, 0 context switches (replay: not run)

            root cause: 1 ordering (minimal)
              t0.2: read bank->total = 0 at bank.c:10 [e2]
                before t0.1: write bank->total = 1 at bank.c:11 [e1]

            alternate 0 does not fail in the model (replay: not run)
              t0.1: write bank->total = 1 at bank.c:11 [e1]
                now before t0.2: read bank->total = 0 at bank.c:10 [e2]

            differential schedule projection (* the reordered pair)
              failing schedule                                 | alternate schedule
              -------------------------------------------------+-------------------------------
              * t0.2  bank.c:10          read bank->total = 0  | * t0.1  bank.c:11          write bank->total = 1
              * t0.1  bank.c:11          write bank->total = 1 | * t0.2  bank.c:10          read bank->total = 1

            data-flows of the failing schedule only
              the initial value --0--> t0.2 read bank->total (bank.c:10)

            data-flows of the alternate schedule only
              t0.1 write bank->total (bank.c:11) --1--> t0.2 read bank->total (bank.c:10)

            shown: 2 of 6 events, 2 of 3 data-flows
        "#]].assert_eq(&to_text(&lost_update(), TextOptions::default()));
    }

    #[test]
    fn a_failure_under_every_schedule_says_so() {
        let mut solution = lost_update();
        solution.alternates.clear();
        solution.dsp = None;
        solution.root_cause =
            Some(RootCause { fails_always: true, minimal: true, ..Default::default() });
        let text = to_text(&solution, TextOptions::default());
        assert!(text.contains("under every schedule"), "{text}");
        assert!(text.contains("replay, which did not take place"), "{text}");
        solution.stats.alternates_tried = 12;
        let text = to_text(&solution, TextOptions::default());
        assert!(text.contains("none of 12 runs"), "{text}");
        assert!(!text.contains("none found on these paths"), "{text}");
    }

    #[test]
    fn orderings_that_were_not_shown_to_be_enough_are_a_proposal() {
        let mut solution = lost_update();
        let cause = solution.root_cause.as_mut().expect("a root cause");
        (cause.minimal, cause.proposed) = (false, true);
        let text = to_text(&solution, TextOptions::default());
        assert!(text.contains("1 ordering (proposed: not shown to always lead"), "{text}");
    }

    #[test]
    fn what_a_replay_refuted_is_not_claimed() {
        let mut solution = lost_update();
        solution.alternates.clear();
        solution.dsp = None;
        solution.root_cause =
            Some(RootCause { fails_always: true, minimal: true, ..Default::default() });
        solution.replay = Replay::Diverged;
        let text = to_text(&solution, TextOptions::default());
        assert!(text.contains("none among the orderings that are modelled"), "{text}");
        assert!(!text.contains("under every schedule"), "{text}");
    }

    #[test]
    fn what_no_run_confirmed_is_a_possible_cause() {
        let mut solution = lost_update();
        assert!(to_text(&solution, TextOptions::default()).starts_with("cause: "));
        solution.replay = Replay::Diverged;
        let text = to_text(&solution, TextOptions::default());
        assert!(text.starts_with("possible cause: "), "{text}");
        solution.replay = Replay::Confirmed;
        solution.cause.as_mut().expect("a cause").in_vain = true;
        let text = to_text(&solution, TextOptions::default());
        assert!(text.starts_with("possible cause: "), "{text}");
        let mut proposed = lost_update();
        proposed.alternates.clear();
        proposed.replay = Replay::NotRun;
        assert!(to_text(&proposed, TextOptions::default()).starts_with("cause: "));
        proposed.root_cause.as_mut().expect("a root cause").proposed = true;
        let text = to_text(&proposed, TextOptions::default());
        assert!(text.starts_with("possible cause: "), "{text}");
        // That there was nobody else is known whatever a run came to.
        solution.cause.as_mut().expect("a cause").case = Some("one-thread".to_owned());
        assert!(to_text(&solution, TextOptions::default()).starts_with("cause: "));
    }

    #[test]
    fn of_a_hang_that_was_not_walked_no_thread_is_named() {
        let mut solution = lost_update();
        let failure = solution.failure.as_mut().expect("a failure");
        failure.location = crate::solution::Location::default();
        let text = to_text(&solution, TextOptions::default());
        assert!(text.contains("  in thread t0"), "{text}");
        solution.failure.as_mut().expect("a failure").thread.clear();
        let text = to_text(&solution, TextOptions::default());
        assert!(!text.contains("in thread"), "{text}");
    }

    #[test]
    fn where_no_order_leads_to_the_failure_the_notes_say_where_to_look() {
        let mut solution = lost_update();
        solution.verdict = Verdict::NoSchedule;
        solution.replay_notes = vec!["record with --detect=use-after-free".to_owned()];
        let text = to_text(&solution, TextOptions::default());
        let (_, after) = text.split_once("no schedule:").expect("the verdict");
        assert!(after.contains("record with --detect=use-after-free"), "{text}");
    }

    #[test]
    fn alternates_on_other_paths_say_what_only_one_run_has() {
        let text = to_text(&other_path(), TextOptions::default());
        let (_, text) = text.split_once("root cause").expect("a root cause");
        expect_test::expect![[r#"
            : along the recorded paths every schedule fails. With this ordering the other way round
            the program takes another path, which avoids the failure (seen in a run; not proved to be the only way):
              t0.2: read bank->total = 0 at bank.c:10 [e2]
                before t0.1: write bank->total = 1 at bank.c:11 [e1]

            alternate 0 takes another path and does not fail (replay: confirmed)
              t0.1: write bank->total = 1 at bank.c:11 [e1]
                now before t0.2: read bank->total = 0 at bank.c:10 [e2]

            differential schedule projection (* the reordered pair)
              failing schedule                                                         | passing run
              -------------------------------------------------------------------------+-------------------------------
              * t0.2  bank.c:10          read bank->total = 0                          | * t0.1  bank.c:11          write bank->total = 1
              * t0.1  bank.c:11          write bank->total = 1                         | * t0.2  bank.c:10          read bank->total = 1
                t0.2  bank.c:11          write bank->total = 1 (does not happen there) |   t0.2  bank.c:11          write bank->note = 7 (only in the passing run)

            data-flows of the failing schedule only
              the initial value --0--> t0.2 read bank->total (bank.c:10)

            data-flows of the passing run only
              t0.1 write bank->total (bank.c:11) --1--> t0.2 read bank->total (bank.c:10)

            shown: 2 of 6 events, 2 of 3 data-flows
        "#]].assert_eq(text);
    }

    #[test]
    fn what_came_too_late_is_said_to_be_in_the_passing_run_only() {
        let mut solution = other_path();
        if let Some(cause) = &mut solution.root_cause {
            cause.orders = vec![["e5".to_owned(), "a0".to_owned()]];
        }
        solution.alternates[0].flipped = ["a0".to_owned(), "e2".to_owned()];
        let text = to_text(&solution, TextOptions::default());
        let late = "before t0.2: write bank->note = 7 at bank.c:11 [a0] (only in the passing run)";
        assert!(text.contains(late), "{text}");
        // Both the new order and the cause are marked.
        let marked =
            |what: &str| text.lines().any(|line| line.contains('*') && line.contains(what));
        assert!(marked("bank->note = 7") && marked("read bank->total = 1"), "{text}");
    }

    /// The lost update with locks, a block that should be atomic, and source.
    fn told(options: TextOptions) -> String {
        let mut solution = lost_update();
        let lock = |id: &str, thread: &str| Event {
            id: id.to_owned(),
            thread: thread.to_owned(),
            kind: "lock".to_owned(),
            object: Some("bank->lock".to_owned()),
            targets: vec!["o1".to_owned()],
            ..Event::default()
        };
        solution.events.push(lock("e6", "t0.1"));
        solution.schedule.insert(0, "e6".to_owned());
        solution.alternates[0].schedule.insert(0, "e6".to_owned());
        let block = crate::solution::AtomicBlock {
            thread: "t0.1".to_owned(),
            first: "e0".to_owned(),
            last: "e1".to_owned(),
            interrupted_by: vec!["e2".to_owned()],
        };
        if let Some(dsp) = &mut solution.dsp {
            dsp.failing.insert(0, "e0".to_owned());
            dsp.alternate.insert(0, "e0".to_owned());
            dsp.atomic_blocks.push(block);
        }
        to_text_with_source(&solution, options, &|file, line| {
            (file == "/src/bank.c").then(|| format!("\tsource of line {line};"))
        })
    }

    #[test]
    fn events_of_the_cause_come_with_source_and_locks() {
        let text = told(TextOptions::default());
        let (_, text) = text.split_once("\n\n").expect("a paragraph");
        let (steps, _) = text.split_once("\n\n").expect("a paragraph");
        // What is expected stands without the indentation that is common to all lines.
        let steps: Vec<&str> =
            steps.lines().map(|line| line.strip_prefix("  ").expect("an indented line")).collect();
        expect![[r#"
              1. t0.2: read bank->total = 0 (1 when it passes) [e2]
                 at bank.c:10 in deposit
                      9 |     source of line 9;
                 >   10 |     source of line 10;
                     11 |     source of line 11;
              2. t0.1 (deposit): write bank->total = 1, holding bank->lock [e1]
                 at bank.c:11 in deposit
                     10 |     source of line 10;
                 >   11 |     source of line 11;
                     12 |     source of line 12;
              3. t0.2: write bank->total = 1 [e3]
                 at bank.c:11 in deposit
                     10 |     source of line 10;
                 >   11 |     source of line 11;
                     12 |     source of line 12;"#]]
        .assert_eq(&steps.join("\n"));
    }

    #[test]
    fn narrow_terminals_get_one_side_after_the_other() {
        let wide = told(TextOptions { width: Some(200), ..TextOptions::default() });
        assert!(wide.contains(" | alternate schedule\n"), "{wide}");
        assert!(wide.contains("*| t0.1") || wide.contains("*|t0.1"), "{wide}");
        assert!(wide.contains("{bank->lock}"), "{wide}");
        let narrow = told(TextOptions { width: Some(80), ..TextOptions::default() });
        assert!(!narrow.contains(" | alternate schedule\n"), "{narrow}");
        assert!(narrow.contains("\n  alternate schedule\n"), "{narrow}");
        let cause = narrow.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>();
        assert!(cause.len() == 2 && cause.iter().all(|line| line.len() <= 80), "{cause:?}");
        let long: Vec<&str> = narrow.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(long, Vec::<&str>::new(), "all words are short");
    }

    #[test]
    fn addresses_of_two_runs_are_not_compared() {
        let mut solution = other_path();
        let dsp = solution.dsp.as_mut().expect("a projection");
        for pair in &mut dsp.values {
            pair.alternate = Some("0x7f20".to_owned());
        }
        let shown = |solution: &Solution| {
            to_text(solution, TextOptions::default()).contains("0x7f20 when it passes")
        };
        assert!(shown(&solution), "null, say, and an address differ");
        for event in &mut solution.events {
            event.value = Some("0x7f10".to_owned());
        }
        assert!(!shown(&solution));
        solution.alternates[0].same_path = true;
        assert!(shown(&solution), "in the same run, it is another object");
    }

    #[test]
    fn colour_is_only_where_it_is_asked_for() {
        let colour = TextOptions { colour: true, ..TextOptions::default() };
        assert!(told(colour).contains("\u{1b}[1mcause:\u{1b}[0m"));
        assert!(!told(TextOptions::default()).contains('\u{1b}'));
    }
}
