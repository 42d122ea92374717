//! How long a failing schedule takes to find, by the number of shared accesses, contention and
//! solver. The traces are of random programs that really ran, so that a failing schedule exists.
//!
//! `cargo bench -p solver --bench scale -- [ACCESSES ...]` prints a Markdown table. In it "-" stands
//! for more than the time limit (`SYMBIOSIS_SCALE_TIMEOUT`, 60 s on the wall; what is shown is
//! processor time). `SYMBIOSIS_SCALE_Z3=0` leaves Z3 out, `SYMBIOSIS_SCALE_ONLY=low` one contention.
//! "Followed" is how long it takes to make the failing schedule of the recorded run from its clock and what its log tells
//! of reads: those on which conditions depend.
//! "Clock" is with the known orders of the recorded run's clock, as the failing schedule is looked
//! for first; its readings are taken where threads lock and unlock, and, where
//! `SYMBIOSIS_SCALE_READING` is set, after so many accesses of a thread. `SYMBIOSIS_SCALE_THREADS`
//! names the numbers of threads, separated by commas (2,4,16,32), `SYMBIOSIS_SCALE_UNCLOCKED` the
//! most accesses that are also tried without the clock (3000), and `SYMBIOSIS_SCALE_SEEDS` the number
//! of traces in a row (3).

#[path = "../crates/solver/tests/support/random.rs"]
mod random;
#[path = "../crates/solver/tests/support/run.rs"]
mod run;

use model::evaluate::{Check, Evaluator};
use model::{EventTrace, VarId};
use run::Shape;
use solver::{Goal, Limits, OrderingSession, Outcome, Session, Z3Session};
use std::collections::BTreeSet;
use std::time::Duration;

const THREADS: [usize; 4] = [2, 4, 16, 32];
const SIZES: [usize; 4] = [100, 300, 1_000, 3_000];
/// Without the clock no more accesses are tried.
const LARGEST_UNCLOCKED: u64 = 3_000;
const SEEDS: u64 = 3;

/// Shares of accesses under locks and cells by the number of accesses.
struct Contention {
    name: &'static str,
    locked: usize,
    cells: fn(usize) -> usize,
}

const CONTENTIONS: [Contention; 2] = [
    Contention { name: "low", locked: 50, cells: |accesses| (accesses / 20).max(8) },
    Contention { name: "high", locked: 5, cells: |_| 8 },
];

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
    let limit = number("SYMBIOSIS_SCALE_TIMEOUT").unwrap_or(60);
    let limits = Limits { time: Some(Duration::from_secs(limit)), memory_mb: None };
    println!(
        "| accesses | contention | threads | events | followed | clock, encode and solve | encode | ordering | Z3 | paper |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let only = std::env::var("SYMBIOSIS_SCALE_ONLY").ok();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let threads = match std::env::var("SYMBIOSIS_SCALE_THREADS") {
        Ok(text) => text.split(',').filter_map(|text| text.trim().parse().ok()).collect(),
        Err(_) => THREADS.to_vec(),
    };
    for accesses in sizes {
        for contention in CONTENTIONS.iter().filter(|contention| wanted(contention.name)) {
            for &threads in &threads {
                row(accesses, contention, threads, limits);
            }
        }
    }
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The medians over a few traces.
fn row(accesses: usize, contention: &Contention, threads: usize, limits: Limits) {
    let shape = Shape {
        threads,
        accesses: accesses.div_ceil(threads),
        cells: (contention.cells)(accesses),
        locked: contention.locked,
        branches: 30,
        reading: number("SYMBIOSIS_SCALE_READING").unwrap_or(0) as usize,
    };
    let (mut followed, mut clock, mut encoding, mut ordering, mut z3, mut paper, mut events) =
        (vec![], vec![], vec![], vec![], vec![], vec![], 0);
    let wanted = std::env::var_os("SYMBIOSIS_SCALE_Z3").is_none_or(|wanted| wanted != "0");
    let unclocked = number("SYMBIOSIS_SCALE_UNCLOCKED").unwrap_or(LARGEST_UNCLOCKED);
    for seed in 0..number("SYMBIOSIS_SCALE_SEEDS").unwrap_or(SEEDS) {
        let text = run::generate(&shape, seed);
        let trace = match encoders::dsl::parse(&text) {
            Ok(parsed) => parsed.trace,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        events = trace.events.len();
        followed.push(follow(&text, &trace));
        let began = spent();
        let clocked = match encoders::encode_recorded(&trace) {
            Ok(system) => system,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let encoded = spent().saturating_sub(began);
        clock.push(
            find(|| OrderingSession::new(&trace, &clocked, limits), &trace)
                .map(|time| time + encoded),
        );
        drop(clocked);
        if accesses as u64 > unclocked {
            encoding.push(None);
            ordering.push(None);
            z3.push(None);
            paper.push(None);
            continue;
        }
        let began = spent();
        let system = match encoders::encode(&trace) {
            Ok(system) => system,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        encoding.push(Some(spent().saturating_sub(began)));
        ordering.push(find(|| OrderingSession::new(&trace, &system, limits), &trace));
        let linked = || match Z3Session::new(&trace, &system, limits) {
            Ok(session) => session,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let hopeless = z3.last() == Some(&None);
        z3.push(if hopeless || !wanted { None } else { find(linked, &trace) });
        let hopeless = paper.last() == Some(&None);
        paper.push(if hopeless || !wanted { None } else { as_in_the_paper(&trace, limits) });
    }
    println!(
        "| {accesses} | {} | {threads} | {events} | {} | {} | {} | {} | {} | {} |",
        contention.name,
        median(followed),
        median(clock),
        median(encoding),
        median(ordering),
        median(z3),
        median(paper)
    );
}

/// How long it takes to follow the recorded run, in whose log are the reads that conditions depend on.
fn follow(text: &str, trace: &EventTrace) -> Option<Duration> {
    let mut trace = trace.clone();
    let conditions = trace.conditions.iter().map(|condition| condition.expr);
    let logged: BTreeSet<VarId> = conditions.flat_map(|expr| trace.exprs.variables(expr)).collect();
    run::record(text, &mut trace, |var| logged.contains(&var));
    let began = spent();
    let system = match encoders::encode_recorded_orders(&trace) {
        Ok(system) => system,
        Err(error) => panic!("{error}"),
    };
    let found = solver::follow(&trace, &system, &[], true, || true)?;
    let took = spent().saturating_sub(began);
    let check = Evaluator::new(&trace).check(&found.order, &|_| Some(0));
    (check == Check::Fails).then_some(took)
}

/// The processor time that this process has had, that of threads that have ended too: on a machine
/// that does other work, the time on the wall says little. The main thread's part is exact, the
/// others' in steps of 10 ms.
fn spent() -> Duration {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, at: usize| -> u64 {
        text.split_whitespace().nth(at).and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    // Behind the name in parentheses: user and system time are the 12th and 13th field.
    let ticks = |path: &str| {
        let text = read(path);
        let fields = text.rsplit(')').next().unwrap_or_default();
        field(fields, 11) + field(fields, 12)
    };
    let main = format!("/proc/self/task/{}/stat", std::process::id());
    let others = ticks("/proc/self/stat").saturating_sub(ticks(&main));
    Duration::from_nanos(field(&read("/proc/self/schedstat"), 0))
        + Duration::from_millis(10 * others)
}

/// Encoding as in the paper and solving with Z3.
fn as_in_the_paper(trace: &EventTrace, limits: Limits) -> Option<Duration> {
    let began = spent();
    let system = match encoders::encode_paper(trace) {
        Ok(system) => system,
        Err(error) => panic!("{error}"),
    };
    let session = || match Z3Session::new(trace, &system, limits) {
        Ok(session) => session,
        Err(error) => panic!("{error}"),
    };
    let encoded = spent().saturating_sub(began);
    find(session, trace).map(|time| time + encoded)
}

/// How long the failing schedule took; none when it was not found.
fn find<S: Session>(session: impl FnOnce() -> S, trace: &EventTrace) -> Option<Duration> {
    let began = spent();
    let mut session = session();
    match session.check(Goal::Fail, &[]) {
        Ok(Outcome::Sat(found)) => {
            assert_eq!(found.schedule.order.len(), trace.events.len());
            Some(spent().saturating_sub(began))
        }
        Ok(Outcome::Unknown(_)) => None,
        other => panic!("a schedule exists, but: {other:?}"),
    }
}

fn median(mut times: Vec<Option<Duration>>) -> String {
    times.sort_by_key(|time| time.unwrap_or(Duration::MAX));
    times[times.len() / 2].map_or("-".to_owned(), |time| format!("{:.3} s", time.as_secs_f64()))
}
