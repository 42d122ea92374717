//! Walks a trace directory and prints the report, the gaps, and with `-v` the event trace: for
//! looking at the executor alone.

use std::path::Path;
use symex::{Options, RecordedFailure, RecordedFailureKind, RecordedModule, Recording, ThreadLog};
use trace_format::{FailureKind, ModuleId, Trace};

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let verbose = arguments.iter().any(|argument| argument == "-v");
    arguments.retain(|argument| argument != "-v");
    let directory = arguments.first().ok_or("usage: walk TRACE [-v]")?;
    let recording = load(Path::new(directory))?;
    let started = std::time::Instant::now();
    let execution = symex::execute(&recording, &Options::default())?;
    for thread in &execution.report.threads {
        println!(
            "{}: {} instructions, {} blocks, {} ({} entries, {} words unused)",
            thread.name,
            thread.instructions,
            thread.blocks,
            thread.stopped,
            thread.unused_path,
            thread.unused_values
        );
    }
    for (kind, count) in &execution.report.gaps {
        println!("{count} x {kind}");
    }
    for gap in execution.gaps.iter().take(20) {
        println!(
            "{} {}:{} {}: {} {}",
            gap.thread, gap.site.file, gap.site.line, gap.site.function, gap.what, gap.detail
        );
    }
    let trace = &execution.trace;
    println!(
        "{} events, {} cells, {} conditions, {} expressions, {:?}",
        trace.events.len(),
        trace.cells.len(),
        trace.conditions.len(),
        trace.exprs.len(),
        started.elapsed()
    );
    if let Err(violations) = model::verify::verify(trace) {
        println!("not valid: {violations:?}");
    }
    if verbose {
        print_trace(trace);
    }
    Ok(())
}

fn print_trace(trace: &model::EventTrace) {
    for event in &trace.events {
        let name = event.name.as_deref().unwrap_or("");
        let site = event.site();
        let when = trace.intervals.get(event.id.index()).copied().unwrap_or_default();
        println!(
            "{} {} {:?} {name} {}:{} in {}..{}",
            event.id, event.thread, event.kind, site.file, site.line, when.earliest, when.latest
        );
    }
    for cell in &trace.cells {
        println!(
            "{} {} bits {} init {:?}",
            cell.id,
            cell.width,
            cell.name,
            trace.exprs.get(cell.init)
        );
    }
    for variable in trace.variables.iter().filter(|variable| variable.recorded.is_some()) {
        println!("{} {:?} recorded {:?}", variable.id, variable.origin, variable.recorded);
    }
    for condition in &trace.conditions {
        println!(
            "{} {} after {} {:?} {} line {}",
            condition.id,
            condition.thread,
            condition.position,
            condition.kind,
            show(trace, condition.expr, 12),
            condition.site.line
        );
    }
    if let Some(failure) = &trace.failure {
        println!("{:?} at {}: {:?}", failure.kind, failure.event, failure.condition);
        if let model::FailureCondition::Value(expr) = failure.condition {
            println!("  {}", show(trace, expr, 24));
        }
    }
}

fn show(trace: &model::EventTrace, id: model::ExprId, depth: u32) -> String {
    let expr = trace.exprs.get(id);
    match expr {
        model::Expr::Const { value, .. } => format!("{value:#x}"),
        model::Expr::Var { var, .. } => var.to_string(),
        _ if depth == 0 => "...".to_owned(),
        _ => {
            let mut operands = Vec::new();
            expr.for_each_operand(|operand| operands.push(show(trace, operand, depth - 1)));
            let name = format!("{expr:?}");
            let head = name.split(['(', ' ']).next().unwrap_or("").to_owned();
            let head = match expr {
                model::Expr::Bin(op, ..) => format!("{op:?}"),
                model::Expr::Cmp(op, ..) => format!("{op:?}"),
                _ => head,
            };
            format!("({head} {})", operands.join(" "))
        }
    }
}

fn load(directory: &Path) -> Result<Recording, AnyError> {
    let trace = Trace::open(directory)?;
    let mut recording = Recording {
        common_clock: trace.manifest().common_clock,
        scheduled: trace.is_scheduled(),
        forked: false,
        stuck: false,
        handled: None,
        ..Recording::default()
    };
    for (index, record) in trace.modules().iter().enumerate() {
        let bitcode = trace.module_bitcode(ModuleId(u32::try_from(index)?))?;
        recording.modules.push(RecordedModule {
            ir: ir::read_bitcode(&bitcode)?,
            base: record.base,
            functions: record.functions.clone(),
            globals: record.globals.clone(),
        });
    }
    let failure = trace.failure();
    for thread in trace.threads() {
        recording.threads.push(ThreadLog {
            name: thread.name.clone(),
            serial: thread.serial,
            parent: thread.parent,
            start_routine: thread.start_routine,
            streams: trace.streams(thread),
        });
    }
    recording.failure = failure.map(|failure| RecordedFailure {
        kind: match failure.kind {
            FailureKind::Assertion => RecordedFailureKind::Assertion,
            FailureKind::Abort => RecordedFailureKind::Abort,
            FailureKind::Signal => RecordedFailureKind::Signal {
                signo: failure.code as i32,
                fault_address: failure.fault_address,
            },
            FailureKind::Exit => RecordedFailureKind::Exit { status: failure.code as i32 },
            FailureKind::Hang => RecordedFailureKind::TimedOut,
            FailureKind::UseAfterFree => {
                RecordedFailureKind::UseAfterFree { address: failure.fault_address }
            }
            FailureKind::DoubleFree => {
                RecordedFailureKind::DoubleFree { address: failure.fault_address }
            }
            FailureKind::HeapCorruption => RecordedFailureKind::HeapCorruption,
            FailureKind::StackOverflow => RecordedFailureKind::StackOverflow,
            FailureKind::Exception => RecordedFailureKind::Exception,
            FailureKind::Panic => RecordedFailureKind::Panic,
            FailureKind::User => RecordedFailureKind::User,
            FailureKind::Reached => RecordedFailureKind::Reached,
            FailureKind::Output => RecordedFailureKind::Output,
        },
        thread_serial: failure.thread_serial.unwrap_or(0),
        message: failure.message.clone(),
    });
    Ok(recording)
}
