//! What lines leave for each other in memory that no other thread sees.

use crate::support::{I32, ModuleBuilder, Stream, VOID, execute, load, store};
use ir::types::{InstKind, LocId, Location, Scope, ScopeId};
use symex::{Options, OwnUse, Recording};

const CHOICE: u64 = 0x60_0000;

/// `main` sets `choice` in line 10, reads it in line 12, and sets it anew in line 14.
fn run(options: &Options) -> Vec<OwnUse> {
    let mut b = ModuleBuilder::new();
    let choice = b.global("choice", I32, 4, CHOICE);
    let (one, two) = (b.int(I32, 1), b.int(I32, 2));
    let steps = vec![
        store(choice, one),
        (load(choice), I32),
        store(choice, two),
        (InstKind::Ret(Some(one)), VOID),
    ];
    let main = b.define("main", &[], I32, vec![steps]);
    let mut module = b.finish();
    module.ir.debug.scopes = vec![Scope { file: "own.c".into(), function: "main".into(), line: 1 }];
    let location = |line| Location { line, column: 1, scope: ScopeId(0), inlined_at: None };
    module.ir.debug.locations = [10, 12, 14, 15].map(location).to_vec();
    let code = &mut module.ir.functions[main.index()].instructions;
    code.iter_mut().zip(0..).for_each(|(inst, loc)| inst.loc = Some(LocId(loc)));
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]);
    let recording = Recording {
        modules: vec![module],
        threads: vec![t0.exit()],
        failure: None,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
    };
    let execution = execute(&recording, options).expect("there is a thread");
    let thread = &execution.report.threads[0];
    assert!(thread.reached_end, "{}", thread.stopped);
    execution.own_uses
}

#[test]
fn a_line_uses_what_another_one_left_and_what_is_written_later_is_not_to_come_first() {
    let options = Options { own_uses: true, ..Options::default() };
    let found = run(&options);
    assert!(found.iter().all(|found| found.file == "own.c"), "{found:?}");
    let lines: Vec<(u32, u32)> = found.iter().map(|found| (found.from, found.to)).collect();
    assert_eq!(lines, [(10, 12), (14, 12)]);
}

#[test]
fn nothing_is_noted_unless_it_is_asked_for() {
    assert_eq!(run(&Options::default()), []);
}
