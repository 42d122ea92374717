//! Litmus tests: which outcomes there are under sequential consistency, and which with writes that are seen
//! late (total store order, as x86 has it). Expected outcomes are those of the literature (Owens, Sarkar and
//! Sewell, "A better x86 memory model: x86-TSO").

use encoders::dsl::parse;
use encoders::models::tso::delayed;
use model::EventTrace;
use model::evaluate::evaluate;
use solver::{Goal, Limits, OrderingSession, Outcome, Session};

struct Litmus {
    name: &'static str,
    threads: &'static str,
    /// The outcome, as the condition of a failure.
    outcome: &'static str,
    sequential: bool,
    late: bool,
}

const LITMUS: &[Litmus] = &[
    Litmus {
        name: "SB",
        threads: "t1: W x 1 \n t1: R y -> a \n t2: W y 1 \n t2: R x -> b",
        outcome: "a + b == 0",
        sequential: false,
        late: true,
    },
    Litmus {
        name: "SB with fences",
        threads: "t1: W x 1 \n t1: fence \n t1: R y -> a \n t2: W y 1 \n t2: fence \n t2: R x -> b",
        outcome: "a + b == 0",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "SB with one fence",
        threads: "t1: W x 1 \n t1: fence \n t1: R y -> a \n t2: W y 1 \n t2: R x -> b",
        outcome: "a + b == 0",
        sequential: false,
        late: true,
    },
    Litmus {
        name: "SB with atomic updates",
        threads: "t1: RMW x -> c = c + 1 \n t1: R y -> a \n t2: RMW y -> d = d + 1 \n t2: R x -> b",
        outcome: "a + b == 0",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "SB with locks between",
        threads: "t1: W x 1 \n t1: lock m \n t1: unlock m \n t1: R y -> a \n t2: W y 1 \n t2: lock n \n \
                  t2: unlock n \n t2: R x -> b",
        outcome: "a + b == 0",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "MP",
        threads: "t1: W x 1 \n t1: W y 1 \n t2: R y -> a \n t2: R x -> b",
        outcome: "a * 2 + b == 2",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "LB",
        threads: "t1: R x -> a \n t1: W y 1 \n t2: R y -> b \n t2: W x 1",
        outcome: "a + b == 2",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "S",
        threads: "t1: W x 2 \n t1: W y 1 \n t2: R y -> a \n t2: W x 1 \n t0: R x -> c",
        outcome: "a * 4 + c == 6",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "R",
        threads: "t1: W x 1 \n t1: W y 1 \n t2: W y 2 \n t2: R x -> a \n t0: R y -> c",
        outcome: "a * 4 + c == 2",
        sequential: false,
        late: true,
    },
    Litmus {
        name: "2+2W",
        threads: "t1: W x 1 \n t1: W y 2 \n t2: W y 1 \n t2: W x 2 \n t0: R x -> a \n t0: R y -> b",
        outcome: "a * 4 + b == 5",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "IRIW",
        threads: "t1: W x 1 \n t2: W y 1 \n t3: R x -> a \n t3: R y -> b \n t4: R y -> c \n t4: R x -> d",
        outcome: "a * 8 + b * 4 + c * 2 + d == 10",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "WRC",
        threads: "t1: W x 1 \n t2: R x -> a \n t2: W y 1 \n t3: R y -> b \n t3: R x -> c",
        outcome: "a * 4 + b * 2 + c == 6",
        sequential: false,
        late: false,
    },
    Litmus {
        name: "a race that needs nothing late",
        threads: "t1: R x -> a \n t1: W x a + 1 \n t2: R x -> b \n t2: W x b + 1 \n t0: R x -> c",
        outcome: "c == 1",
        sequential: true,
        late: true,
    },
    // x86 has this one, by forwarding, which is not modelled.
    Litmus {
        name: "SB with reads of what was written",
        threads: "t1: W x 1 \n t1: R x -> c \n t1: R y -> a \n t2: W y 1 \n t2: R y -> d \n t2: R x -> b",
        outcome: "(a + b) * 4 + c + d == 2",
        sequential: false,
        late: false,
    },
];

impl Litmus {
    fn trace(&self) -> EventTrace {
        let threads = ["t1", "t2", "t3", "t4"];
        let used = threads.iter().filter(|name| self.threads.contains(&format!("{name}:")));
        let used: Vec<&str> = used.copied().collect();
        let each = |what: &str| -> String {
            used.iter().map(|name| format!("t0: {what} {name}\n")).collect()
        };
        let (own, others): (Vec<&str>, Vec<&str>) =
            self.threads.split('\n').map(str::trim).partition(|line| line.starts_with("t0:"));
        let text = format!(
            "{}{}\n{}{}\nt0: fail {}\n",
            each("fork"),
            others.join("\n"),
            each("join"),
            own.join("\n"),
            self.outcome
        );
        parse(&text).unwrap_or_else(|error| panic!("{}: {error}", self.name)).trace
    }
}

/// Is there a schedule with the outcome? The evaluator has to agree.
fn comes_up(trace: &EventTrace) -> bool {
    model::verify::verify(trace).expect("a valid trace");
    let system = encoders::encode(trace).expect("a system");
    let mut session = OrderingSession::new(trace, &system, Limits::default());
    match session.check(Goal::Fail, &[]).expect("an answer") {
        Outcome::Sat(found) => {
            let inputs = |var: model::VarId| found.values.get(&var).copied();
            let evaluation = evaluate(trace, &found.schedule, &inputs).expect("a schedule");
            assert!(evaluation.fails);
            true
        }
        Outcome::Unsat(_) => false,
        Outcome::Unknown(reason) => panic!("undecided: {reason}"),
    }
}

#[test]
fn outcomes_are_those_of_the_memory_models() {
    for litmus in LITMUS {
        let trace = litmus.trace();
        assert_eq!(comes_up(&trace), litmus.sequential, "{} in sequence", litmus.name);
        let all = delayed(&trace, &|_| true);
        assert_eq!(comes_up(&all.trace), litmus.late, "{} with late writes", litmus.name);
    }
}
