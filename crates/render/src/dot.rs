//! Graphviz DOT: the two sides of the DSP beside each other, one column per thread, time running
//! downwards. Every node has a fixed position, so that the picture shows order and threads and not
//! what a layout engine makes of them.

use crate::Solution;
use crate::lanes::{Lane, Row, lanes, place};
use crate::solution::{Alternate, DataFlow, Failure, Replay};
use graphviz_rust::dot_structures::{
    Attribute, Edge, EdgeTy, Graph, GraphAttributes, Id, Node, NodeId, Stmt, Vertex,
};
use graphviz_rust::printer::{DotPrinter, PrinterContext};

/// Points per character of the font used, measured wide.
const CHARACTER: f64 = 6.6;
const ROW_HEIGHT: f64 = 58.0;
const COLUMN_GAP: f64 = 40.0;
const PANEL_GAP: f64 = 70.0;
const TITLE_HEIGHT: f64 = 64.0;

const FAILING_COLOUR: &str = "#b3261e";
const ALTERNATE_COLOUR: &str = "#1e6b3a";

/// The DSP as a DOT graph, or a graph that says that there is none.
#[must_use]
pub fn to_dot(solution: &Solution) -> String {
    let mut stmts = header();
    match lanes(solution) {
        Some([failing, alternate]) => {
            let shown = solution.alternates.first();
            let replayed = shown.map_or(Replay::NotRun, |alternate| alternate.replay);
            let mut panel = Panel {
                solution,
                prefix: "f",
                left: 0.0,
                colour: FAILING_COLOUR,
                replay: solution.replay,
                end: solution.failure.as_ref().map_or_else(|| "fails".to_owned(), failure_text),
            };
            let width = panel.draw(&failing, &mut stmts);
            panel = Panel {
                solution,
                prefix: "a",
                left: width + PANEL_GAP,
                colour: ALTERNATE_COLOUR,
                replay: replayed,
                end: shown.map_or("does not fail", Alternate::outcome).to_owned(),
            };
            panel.draw(&alternate, &mut stmts);
        }
        None => stmts.push(node(
            "none",
            vec![
                attribute("shape", "plaintext"),
                escaped("label", "no differential schedule projection"),
            ],
        )),
    }
    let graph = Graph::DiGraph { id: Id::Plain("dsp".to_owned()), strict: false, stmts };
    let mut text = graph.print(&mut PrinterContext::default());
    text.push('\n');
    text
}

fn header() -> Vec<Stmt> {
    vec![
        Stmt::GAttribute(GraphAttributes::Graph(vec![
            attribute("layout", "neato"),
            attribute("inputscale", "72"),
            attribute("splines", "true"),
            attribute("outputorder", "nodesfirst"),
            escaped("bgcolor", "white"),
            attribute("pad", "0.3"),
        ])),
        Stmt::GAttribute(GraphAttributes::Node(vec![
            attribute("shape", "box"),
            escaped("style", "rounded,filled"),
            escaped("fillcolor", "white"),
            escaped("fontname", "Helvetica"),
            attribute("fontsize", "11"),
        ])),
        Stmt::GAttribute(GraphAttributes::Edge(vec![
            escaped("fontname", "Helvetica"),
            attribute("fontsize", "10"),
        ])),
    ]
}

/// How the failing side ends: `assertion fails in t0 at bank.c:117`.
fn failure_text(failure: &Failure) -> String {
    let place = place(&failure.location);
    format!("{} in {} at {place}", failure.kind.replace('-', " "), failure.thread)
}

/// One side of the picture.
struct Panel<'s> {
    solution: &'s Solution,
    prefix: &'static str,
    left: f64,
    colour: &'static str,
    replay: Replay,
    /// What stands below the last event.
    end: String,
}

impl Panel<'_> {
    /// Adds the side's statements and returns its width in points.
    fn draw(&self, lane: &Lane, stmts: &mut Vec<Stmt>) -> f64 {
        let threads = threads(lane);
        let length = |row: &Row| {
            let alone = row.alone.map_or(0, |words| words.chars().count() + 2);
            row.what.chars().count().max(alone).max(holding(row).chars().count())
        };
        let longest = lane.rows.iter().map(length).max().unwrap_or(0);
        let box_width = (longest.max(14) as f64) * CHARACTER + 18.0;
        let step = box_width + COLUMN_GAP;
        let width = (step * threads.len().max(1) as f64 - COLUMN_GAP).max(box_width);
        self.titles(lane, &threads, step, width, box_width, stmts);
        self.footer(self.left + width / 2.0, lane.rows.len(), stmts);
        // Behind the events, so before them.
        self.blocks(lane, &threads, step, box_width, stmts);
        for (index, row) in lane.rows.iter().enumerate() {
            let column = threads.iter().position(|thread| *thread == row.thread).unwrap_or(0);
            let x = self.left + step * column as f64 + box_width / 2.0;
            let y = -TITLE_HEIGHT - ROW_HEIGHT * (index as f64 + 1.0);
            stmts.push(self.event(row, x, y, box_width));
        }
        self.order(lane, stmts);
        for flow in &lane.flows {
            self.flow(flow, lane, stmts);
        }
        width
    }

    fn titles(
        &self,
        lane: &Lane,
        threads: &[&str],
        step: f64,
        width: f64,
        box_width: f64,
        stmts: &mut Vec<Stmt>,
    ) {
        let centre = self.left + width / 2.0;
        stmts.push(node(
            &format!("{}_title", self.prefix),
            vec![
                attribute("shape", "plaintext"),
                attribute("fontsize", "15"),
                escaped("style", ""),
                escaped("fontcolor", self.colour),
                escaped("label", &format!("{} ({})", lane.title, self.replay.words())),
                position(centre, 0.0),
            ],
        ));
        for (column, thread) in threads.iter().enumerate() {
            let x = self.left + step * column as f64 + box_width / 2.0;
            stmts.push(node(
                &format!("{}_thread{column}", self.prefix),
                vec![
                    attribute("shape", "plaintext"),
                    escaped("style", ""),
                    escaped("label", &self.thread_title(thread)),
                    position(x, -34.0),
                ],
            ));
        }
        if lane.flows.iter().any(|flow| flow.write == "init") {
            stmts.push(node(
                &format!("{}_init", self.prefix),
                vec![
                    attribute("shape", "ellipse"),
                    escaped("style", "dashed"),
                    escaped("label", "initial value"),
                    position(centre, -TITLE_HEIGHT - 8.0),
                ],
            ));
        }
    }

    fn footer(&self, centre: f64, rows: usize, stmts: &mut Vec<Stmt>) {
        let y = -TITLE_HEIGHT - ROW_HEIGHT * (rows as f64 + 1.0);
        stmts.push(node(
            &format!("{}_end", self.prefix),
            vec![
                attribute("shape", "plaintext"),
                escaped("style", ""),
                escaped("fontcolor", self.colour),
                attribute("fontsize", "13"),
                escaped("label", &self.end),
                position(centre, y),
            ],
        ));
    }

    /// A frame around events of one thread that nothing interrupts on this side.
    fn blocks(
        &self,
        lane: &Lane,
        threads: &[&str],
        step: f64,
        box_width: f64,
        stmts: &mut Vec<Stmt>,
    ) {
        let rows: Vec<&Row> = lane.rows.iter().collect();
        let runs = rows.chunk_by(|a, b| a.atomic && b.atomic && a.thread == b.thread);
        let mut from = 0;
        for (number, run) in runs.enumerate() {
            let (first, last) = (from as f64 + 1.0, (from + run.len()) as f64);
            from += run.len();
            let Some(row) = run.first().filter(|row| row.atomic && run.len() > 1) else { continue };
            let column = threads.iter().position(|thread| *thread == row.thread).unwrap_or(0);
            let x = self.left + step * column as f64 + box_width / 2.0;
            let y = -TITLE_HEIGHT - ROW_HEIGHT * (first + last) / 2.0;
            let height = ROW_HEIGHT * (last - first) + 62.0;
            stmts.push(node(
                &format!("{}_block{number}", self.prefix),
                vec![
                    escaped("label", "not interrupted"),
                    attribute("labelloc", "t"),
                    attribute("fontsize", "9"),
                    escaped("fontcolor", self.colour),
                    escaped("color", self.colour),
                    escaped("style", "dashed"),
                    position(x, y),
                    attribute("width", &format!("{:.2}", (box_width + 18.0) / 72.0)),
                    attribute("height", &format!("{:.2}", height / 72.0)),
                ],
            ));
        }
    }

    /// `thread t0.1 (serve)`.
    fn thread_title(&self, thread: &str) -> String {
        let entry = self.solution.all_threads().find(|other| other.id == thread);
        let entry = entry.map(|thread| format!(" ({})", thread.entry)).unwrap_or_default();
        format!("thread {thread}{entry}")
    }

    /// Where the event happens, and who called: what pictures show under the pointer.
    fn stack(&self, id: &str) -> String {
        let Some(event) = self.solution.event(id) else { return id.to_owned() };
        let mut text = id.to_owned();
        let places = [&event.location].into_iter().chain(&event.callers);
        for (depth, location) in places.enumerate() {
            text.push_str(if depth == 0 { ": " } else { "\ncalled at " });
            text.push_str(&place(location));
            if !location.function.is_empty() {
                text.push_str(" in ");
                text.push_str(&location.function);
            }
        }
        text
    }

    fn event(&self, row: &Row, x: f64, y: f64, width: f64) -> Stmt {
        let alone = row.alone.map(|words| format!("\n({words})")).unwrap_or_default();
        let held = if row.held.is_empty() { String::new() } else { format!("\n{}", holding(row)) };
        let more = usize::from(row.alone.is_some()) + usize::from(!row.held.is_empty());
        let height = ["0.46", "0.6", "0.74"][more];
        let mut attributes = vec![
            escaped("label", &format!("{}\n{}{held}{alone}", row.place, row.what)),
            escaped("tooltip", &self.stack(&row.event)),
            position(x, y),
            attribute("width", &format!("{:.2}", width / 72.0)),
            attribute("height", height),
        ];
        if row.alone.is_some() {
            attributes.push(escaped("style", "rounded,filled,dashed"));
        }
        if row.flipped {
            attributes.push(escaped("color", self.colour));
            attributes.push(attribute("penwidth", "2.2"));
        }
        node(&self.name(&row.event), attributes)
    }

    /// Thin lines from each event to the next show the schedule.
    fn order(&self, lane: &Lane, stmts: &mut Vec<Stmt>) {
        for pair in lane.rows.windows(2) {
            stmts.push(edge(
                &self.name(&pair[0].event),
                &self.name(&pair[1].event),
                vec![
                    escaped("color", "#b8b8b8"),
                    attribute("style", "dotted"),
                    attribute("arrowsize", "0.5"),
                ],
            ));
        }
    }

    fn flow(&self, flow: &DataFlow, lane: &Lane, stmts: &mut Vec<Stmt>) {
        let shown = |id: &String| lane.rows.iter().any(|row| row.event == *id);
        if !shown(&flow.read) || (flow.write != "init" && !shown(&flow.write)) {
            return;
        }
        let mut attributes = vec![escaped("color", self.colour), attribute("penwidth", "1.8")];
        if !flow.follows_from.is_empty() {
            attributes.push(attribute("style", "dashed"));
        }
        if let Some(value) = &flow.value {
            attributes.push(escaped("label", &format!(" {value}")));
            attributes.push(escaped("fontcolor", self.colour));
        }
        stmts.push(edge(&self.name(&flow.write), &self.name(&flow.read), attributes));
    }

    fn name(&self, event: &str) -> String {
        format!("{}_{event}", self.prefix)
    }
}

/// `holding queue->lock`; empty when there is no lock.
fn holding(row: &Row) -> String {
    if row.held.is_empty() { String::new() } else { format!("holding {}", row.held.join(", ")) }
}

/// The threads of a side, in the order of their names.
fn threads(lane: &Lane) -> Vec<&str> {
    let mut threads: Vec<&str> = lane.rows.iter().map(|row| row.thread.as_str()).collect();
    threads.sort_unstable_by_key(|name| thread_key(name));
    threads.dedup();
    threads
}

/// `t0.10` after `t0.9`.
fn thread_key(name: &str) -> Vec<u64> {
    name.trim_start_matches('t').split('.').map(|part| part.parse().unwrap_or(u64::MAX)).collect()
}

fn position(x: f64, y: f64) -> Attribute {
    escaped("pos", &format!("{x:.1},{y:.1}!"))
}

fn attribute(name: &str, value: &str) -> Attribute {
    Attribute(Id::Plain(name.to_owned()), Id::Plain(value.to_owned()))
}

/// An attribute whose value is quoted.
fn escaped(name: &str, value: &str) -> Attribute {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    Attribute(Id::Plain(name.to_owned()), Id::Escaped(format!("\"{value}\"")))
}

fn node(name: &str, attributes: Vec<Attribute>) -> Stmt {
    Stmt::Node(Node::new(NodeId(Id::Plain(name.to_owned()), None), attributes))
}

fn edge(from: &str, to: &str, attributes: Vec<Attribute>) -> Stmt {
    let vertex = |name: &str| Vertex::N(NodeId(Id::Plain(name.to_owned()), None));
    Stmt::Edge(Edge { ty: EdgeTy::Pair(vertex(from), vertex(to)), attributes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lost_update, other_path};

    #[test]
    fn quotes_in_labels_are_escaped_and_the_graph_parses() {
        let mut solution = lost_update();
        solution.events[1].object = Some("a \"b\" \\ c".to_owned());
        let dot = to_dot(&solution);
        assert!(dot.contains(r#"a \"b\" \\ c"#), "{dot}");
        graphviz_rust::parse(&dot).expect("the output is DOT");
    }

    #[test]
    fn both_sides_and_their_flows_are_drawn() {
        let dot = to_dot(&lost_update());
        for part in ["f_e2 -> f_e1", "a_e1 -> a_e2", "f_init -> f_e2", "failing schedule"] {
            assert!(dot.contains(part), "{part} is missing in\n{dot}");
        }
    }

    #[test]
    fn events_of_one_run_only_are_drawn_as_such() {
        let dot = to_dot(&other_path());
        graphviz_rust::parse(&dot).expect("the output is DOT");
        for part in ["passing run", "does not happen there", "only in the passing run", "a_a0"] {
            assert!(dot.contains(part), "{part} is missing in\n{dot}");
        }
        assert!(!to_dot(&lost_update()).contains("only in the"), "both runs have the same events");
    }

    #[test]
    fn blocks_stacks_and_entries_are_shown() {
        let mut solution = lost_update();
        if let Some(dsp) = &mut solution.dsp {
            dsp.failing = ["e0", "e2", "e1"].map(str::to_owned).to_vec();
            dsp.alternate = ["e0", "e1", "e2"].map(str::to_owned).to_vec();
            dsp.atomic_blocks.push(crate::solution::AtomicBlock {
                thread: "t0.1".to_owned(),
                first: "e0".to_owned(),
                last: "e1".to_owned(),
                interrupted_by: vec!["e2".to_owned()],
            });
        }
        let dot = to_dot(&solution);
        graphviz_rust::parse(&dot).expect("the output is DOT");
        assert_eq!(dot.matches("not interrupted").count(), 1, "{dot}");
        assert!(dot.contains("thread t0.1 (deposit)"), "{dot}");
        assert!(dot.contains("e1: bank.c:11 in deposit"), "{dot}");
    }

    #[test]
    fn thread_columns_are_in_numeric_order() {
        let mut names = vec!["t0.10", "t0.9", "t0", "t0.9.1"];
        names.sort_unstable_by_key(|name| thread_key(name));
        assert_eq!(names, ["t0", "t0.9", "t0.9.1", "t0.10"]);
    }
}
