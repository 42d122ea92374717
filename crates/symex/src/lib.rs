//! The guided symbolic executor (design section 4): walks every thread's IR along its recorded
//! path and makes the event trace.
//!
//! One walk per thread, no forking, no solver. All addresses are concrete, since the loads that
//! feed addresses are in the log; values are concrete until they depend on a shared read. Two
//! passes run over one engine: the survey finds the shared bytes, the symbolic pass makes events.
//!
//! | file | what |
//! | --- | --- |
//! | `image` | the recorded process's modules, addresses, initial memory |
//! | `streams` | a thread's path and values, piece by piece |
//! | `engine` | state, main loop, values against the log |
//! | `budget` | what all that may take |
//! | `control`, `call` | blocks, functions, uninstrumented code |
//! | `plain`, `tight` | runs of plain instructions, and loops of them, walked faster |
//! | `eval` | side-effect-free instructions, one family per file |
//! | `memory_ops`, `access` | accesses: addresses, cells, events |
//! | `intrinsics`, `externals`, `containers` | LLVM intrinsics; library functions that are modelled |
//! | `described`, `strings` | library functions as `ir::effects` describes them |
//! | `sync`, `once`, `allocations` | what the runtime reported |
//! | `channels` | pipes and their like, which order threads |
//! | `cancelled` | threads that are cancelled while they wait |
//! | `descriptors` | descriptors that are used behind their `close` |
//! | `contents` | what stands in files that one thread writes and another one reads |
//! | `files` | files that one thread makes or removes and another one looks for |
//! | `initialised` | condition variables that are initialised when threads wait for them |
//! | `handovers` | objects that threads hand each other inside of uninstrumented code |
//! | `queues` | queues of libraries, which do, too |
//! | `foreign` | names of libraries' synchronisation functions |
//! | `inputs` | results that a replay gives back |
//! | `idle` | rounds of waiting, which are left out |
//! | `points` | where a scheduler can stop the threads |
//! | `failure`, `hang` | φbug |
//! | `locals` | local variables that end while other threads use them |
//! | `pointed` | which local variable a pointer means that was read from memory |
//! | `own` | what lines leave for each other in memory of the thread's own |
//! | `owners` | what threads only hand over, which is left out where there is too much of it |
//! | `shadow`, `cells`, `heap`, `mappings`, `memory` | shared bytes, allocations, memory |
//!
//! Invariants: the executor never panics on what the recording holds, and never guesses silently:
//! the recorded path and the logged values win over what was computed, and every contradiction and
//! every construct that is not modelled is a [`Gap`].
//!
//! Absent on purpose: reading trace files, LLVM, solvers, IO of any kind.

mod access;
mod allocations;
mod assembly;
mod budget;
mod builder;
mod call;
mod cancelled;
mod cells;
mod channels;
mod choices;
mod clock;
mod concrete;
mod containers;
mod contents;
mod continued;
mod control;
mod derived;
mod described;
mod descriptors;
mod endless;
mod engine;
mod eval;
mod execute;
mod externals;
mod failure;
mod files;
mod foreign;
mod guesses;
mod handovers;
mod hang;
mod heap;
mod idle;
mod image;
mod initialised;
mod inputs;
mod intrinsics;
mod left_locks;
mod libatomic;
mod locals;
mod mappings;
mod memory;
mod memory_ops;
mod naming;
mod numerals;
mod once;
mod opaque;
mod openmp;
mod outlived;
mod own;
mod owners;
mod plain;
mod pointed;
mod points;
mod processor;
mod queues;
mod recording;
mod repeats;
mod report;
mod settled;
mod shadow;
mod signals;
mod sizes;
mod streams;
mod strings;
mod sync;
mod tail;
mod thread;
mod tight;
mod tries;
mod value;
mod words;

pub use budget::Spending;
pub use execute::{execute, execute_within};
pub use inputs::Input;
pub use own::OwnUse;
pub use recording::{RecordedFailure, RecordedFailureKind, RecordedModule, Recording, ThreadLog};
pub use report::{
    AwaitedChild, BlockedCall, EndedBy, EndlessLoop, Execution, FunctionCalls, FunctionUse, Gap,
    GapKind, Options, Report, RunningThread, SymexError, ThreadReport,
};
