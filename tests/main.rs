//! The tests of the command line, in one executable: each takes seconds to link.

mod across;
#[path = "fixtures/annotations.rs"]
mod annotations;
mod assembly;
mod bad_input;
mod build_systems;
mod cancelled;
mod check;
mod children;
mod clock;
mod compiler_driver;
mod conditions;
mod crash_handlers;
mod diff_verify;
mod endless;
mod foreign;
mod frameworks;
mod gdb;
mod hangs;
mod inputs;
mod interrupted;
mod late_writes;
mod long_runs;
mod names;
mod noise;
mod page;
mod path;
mod points;
mod replay;
mod rust;
mod semantics;
mod show;
mod solve;
mod test_case;
mod triage;
mod waiting;
#[path = "fixtures/workspace.rs"]
mod workspace;
