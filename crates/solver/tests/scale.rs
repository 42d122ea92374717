//! Traces of a few hundred events.

#[path = "support/random.rs"]
mod random;
#[path = "support/run.rs"]
mod run;

use solver::{Goal, Limits, Order, Outcome, Session, Z3Session};
use std::time::Instant;

#[test]
fn measure() {
    let limits = Limits { time: Some(std::time::Duration::from_secs(20)), memory_mb: None };
    for (threads, accesses, cells) in [(4, 25, 4), (6, 15, 4), (6, 25, 4), (6, 40, 8)] {
        for seed in 0..2 {
            let shape = run::Shape { threads, accesses, cells, locked: 35, branches: 40 };
            let parsed = encoders::dsl::parse(&run::generate(&shape, seed)).expect("well formed");
            let start = Instant::now();
            let system = encoders::encode(&parsed.trace).expect("encodable");
            let encode = start.elapsed();
            let start = Instant::now();
            let mut session = Z3Session::new(&parsed.trace, &system, limits).expect("expressible");
            let outcome = session.check(Goal::Fail, &[]).expect("an answer");
            println!(
                "{threads} {accesses} {cells} events {} encode {encode:?} solve {:?}",
                parsed.trace.events.len(),
                start.elapsed()
            );
            let Outcome::Sat(model) = outcome else {
                println!("not sat {outcome:?}");
                continue;
            };
            let mut orders = Vec::new();
            let order = &model.schedule.order;
            for (i, &b) in order.iter().enumerate() {
                for &a in order[..i].iter().rev().take(40) {
                    let cells = |e: model::EventId| {
                        let k = &parsed.trace.event(e).kind;
                        (
                            k.reads().iter().map(|p| p.cell).collect::<Vec<_>>(),
                            k.writes().iter().map(|p| p.cell).collect::<Vec<_>>(),
                        )
                    };
                    let ((ra, wa), (rb, wb)) = (cells(a), cells(b));
                    let conflict = wa.iter().any(|c| rb.contains(c) || wb.contains(c))
                        || ra.iter().any(|c| wb.contains(c));
                    if conflict && parsed.trace.event(a).thread != parsed.trace.event(b).thread {
                        orders.push(Order { before: a, after: b });
                        break;
                    }
                }
            }
            let start = Instant::now();
            let mut kept = orders.clone();
            match session.check(Goal::Pass, &kept).unwrap() {
                Outcome::Unsat(c) => {
                    println!("core {} of {} {:?}", c.len(), orders.len(), start.elapsed());
                    kept = c.iter().map(|&i| orders[i]).collect();
                }
                o => {
                    println!(
                        "pass not unsat {:?} {:?}",
                        matches!(o, Outcome::Sat(_)),
                        start.elapsed()
                    );
                    continue;
                }
            }
            let mut calls = 0;
            let mut i = 0;
            while i < kept.len() {
                let mut try_ = kept.clone();
                try_.remove(i);
                calls += 1;
                match session.check(Goal::Pass, &try_).unwrap() {
                    Outcome::Unsat(c) => kept = c.iter().map(|&i| try_[i]).collect(),
                    Outcome::Sat(_) => i += 1,
                    o => {
                        println!("{o:?}");
                        i += 1
                    }
                }
            }
            println!("minimal {} calls {calls} {:?}", kept.len(), start.elapsed());
        }
    }
}
