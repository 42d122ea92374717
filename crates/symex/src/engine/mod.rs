//! The executor's state and its main loop.

mod logged;
mod thread_locals;

pub(crate) use logged::decode_logged;

use crate::access::Stamp;
use crate::budget::Limits;
use crate::builder::{Builder, Origin};
use crate::cells::SharedCells;
use crate::channels::Channels;
use crate::containers::Containers;
use crate::contents::Contents;
use crate::descriptors::Descriptors;
use crate::endless::{Cut, Scout};
use crate::eval;
use crate::failure::Lifetime;
use crate::files::Files;
use crate::handovers::Handovers;
use crate::hang::{Requests, Waiting};
use crate::heap::{HEAP, Heap, PRIVATE};
use crate::idle::{Idle, LeaveOut};
use crate::image::{Constants, FunctionInfo, Image};
use crate::initialised::{Initialisations, Touch};
use crate::inputs::Collected;
use crate::left_locks::LeftLocks;
use crate::locals::Locals;
use crate::memory::Memory;
use crate::naming::CallPaths;
use crate::opaque::Opaque;
use crate::own::Own;
use crate::owners::Handing;
use crate::points::Tracker;
use crate::queues::{Queues, Units};
use crate::recording::{RecordedFailureKind, Recording};
use crate::report::{AwaitedChild, FunctionUse, Gap, GapKind, Options, RunningThread, SymexError};
use crate::shadow::{Shadow, Writers};
use crate::thread::{CodeFrame, Frame, Stop, Thread, contradiction};
use crate::tight::Slot;
use crate::value::{Scalar, Value};
use crate::words::Words;
use ir::effects::{Kind, effect};
use ir::name::{AccessPart, Part};
use ir::types::{
    Callee, FuncId, InstId, InstKind, Instruction, LocId, Module, Operand, Ordering, TypeId,
};
use model::{EventKind, ExprId, ExprPool, Failure, ObjectId, Site, Stack, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use trace_format::layout::SyncPoint;

/// What a walk is for (design section 4).
pub(crate) enum Pass {
    /// Which bytes are shared?
    Survey(Box<Shadow>),
    /// Make events.
    Symbolic(SharedCells),
}

/// What one pass tells the next.
#[derive(Clone, Default)]
pub(crate) struct Learned {
    pub heap: Heap,
    /// Per thread: lowest and one past highest address of its stack objects.
    pub stacks: Vec<Option<(u64, u64)>>,
    /// Per thread: the last time stamp of its creator before it was created.
    pub began: Vec<Option<u64>>,
    /// The recorded addresses of the threads' `errno`s, as far as they asked for them.
    pub errno: Vec<Option<u64>>,
    /// Thread-local variables whose real addresses are known.
    pub thread_locals: Vec<thread_locals::Found>,
    /// By thread: where libraries know it to be, its `pthread_t`, as its creator got it.
    pub thread_pointers: FxHashMap<usize, u64>,
    /// By thread: where in its path it was cancelled in a call; none where that led nowhere.
    pub jumps: FxHashMap<usize, Option<usize>>,
    /// Per thread: all time stamps, in order.
    pub stamps: Vec<Vec<Stamp>>,
    /// Addresses that belonged to nothing known when they were accessed.
    pub unresolved: FxHashSet<u64>,
    /// Heap objects that were used when they had been freed, by their indices, and when that was last.
    pub used_dead: RefCell<FxHashMap<usize, u64>>,
    /// Who wrote what in the last survey.
    pub writers: Writers,
    /// Per thread: how many writes to standard output it made, in a run whose output was wrong.
    pub writes: Vec<u64>,
    /// The first thread in which a test framework reported a failed check.
    pub reported: Option<usize>,
    /// The thread that a run hung of: what it asked for lay in another one's stack, and had no reason to keep it.
    pub lost: Option<usize>,
    /// In a process that is a fork: the thread that forked, and those that were created behind that. Empty where that is not seen.
    pub kept_by_fork: Vec<usize>,
    /// When the panic began that the run failed of, or the program's own handler of the crash, by the processor's clock.
    pub panicked: Option<u64>,
    /// Pipes and their like.
    pub channels: Channels,
    pub descriptors: Descriptors,
    pub files: Files,
    pub contents: Contents,
    /// Condition variables that may be initialised too late.
    pub initialisations: Initialisations,
    /// Objects that uninstrumented code passes between threads.
    pub handovers: Handovers,
    /// Queues of libraries.
    pub queues: Queues,
    /// Local variables that other threads may have used too late.
    pub locals: Locals,
    /// The calls that ran a once routine: thread, flag, and the time stamp before.
    pub ran_once: FxHashSet<(usize, u64, u64)>,
    pub left_locks: LeftLocks,
    /// By the address of a word, the thread and time of a call that ran the routine; and the words with which several did.
    pub ran_at: FxHashMap<u64, (usize, u64)>,
    pub ran_again: FxHashSet<u64>,
    /// The log told of writes that are only guessed, which the next survey judges by `writers`.
    pub guesses: bool,
    /// Where the texts ended that functions of libraries read, and at which of these other threads write meanwhile.
    pub text_ends: FxHashSet<u64>,
    pub open_ends: FxHashSet<u64>,
    /// Per thread: where its walk ends before its log does.
    pub cuts: Vec<Option<Cut>>,
}

/// A read variable of the instruction being executed: its offset in the access and its width.
#[derive(Clone, Copy)]
pub(crate) struct PendingRead {
    pub var: VarId,
    pub offset: i64,
    pub width: u32,
}

/// Something that a call passes on: the module, the function and the call, the argument and how many
/// bytes behind it, and what is there.
pub(crate) type Passed = (usize, FuncId, InstId, (usize, u64), Part);

/// See the module.
pub(crate) struct Engine<'r> {
    pub image: &'r Image<'r>,
    pub recording: &'r Recording,
    pub limits: &'r Limits<'r>,
    pub options: &'r Options,
    pub pool: ExprPool,
    pub memory: Memory<'r>,
    pub pass: Pass,
    pub threads: Vec<Thread<'r>>,
    pub out: Builder,
    pub points: Tracker,
    pub collected: Collected,
    pub idle: Idle<'r>,
    /// For the thread-local variables that others know.
    pub addresses: thread_locals::Addresses,
    /// Looks for loops that threads never came out of.
    pub scout: Option<Scout>,
    pub learned: Learned,
    /// The events of the instruction at hand leave nothing in the store buffer, see [`model::Event::drains`].
    drains: bool,
    pub gaps: Vec<Gap>,
    /// Thread, place and kind of each of them: its index.
    gap_places: FxHashMap<(usize, model::Site, String, GapKind), usize>,
    pub gap_counts: BTreeMap<GapKind, u64>,
    /// How often uninstrumented functions were called, by symbol.
    pub functions: BTreeMap<&'r str, (FunctionUse, u64)>,
    /// The write being done is only guessed from what the log says.
    pub guessing: bool,
    /// Values that expressions had in the recorded run.
    pub known: FxHashMap<ExprId, u128>,
    pub pending_reads: SmallVec<[PendingRead; 4]>,
    pub serials: FxHashMap<u64, usize>,
    pub constants: Constants,
    pub failing: Option<usize>,
    pub failure: Option<(usize, Failure)>,
    pub lifetime: Lifetime,
    /// Who waited and who held what when the run was ended.
    pub waiting: Waiting,
    /// What threads waited for where the run failed in another way.
    pub requests: Requests,
    /// Initialisations of condition variables that count.
    pub initialised: Vec<Touch>,
    pub sync_objects: FxHashMap<(u64, u8), ObjectId>,
    pub heap_objects: FxHashMap<usize, ObjectId>,
    /// Semaphores that stand for channels: channel and number.
    pub channel_objects: FxHashMap<(usize, usize), ObjectId>,
    /// Semaphores that stand for hand-overs.
    pub handover_objects: FxHashMap<usize, ObjectId>,
    /// Semaphores that stand for items of queues.
    pub queue_objects: FxHashMap<Units, ObjectId>,
    /// Heap objects that contain shared cells.
    pub shared_heap: FxHashSet<usize>,
    pub sites: FxHashMap<(usize, LocId), Arc<[Site]>>,
    pub call_paths: CallPaths,
    pub containers: Containers,
    /// Per address and size: what a part of a global variable is called.
    pub global_names: FxHashMap<(u64, u64), Option<String>>,
    /// Per instruction and pointer operand: what the access is called.
    pub path_names: FxHashMap<(usize, FuncId, InstId, Operand), Option<String>>,
    /// Per instruction: the scalars that it moves.
    pub access_parts: FxHashMap<(usize, FuncId, InstId), Arc<[AccessPart]>>,
    /// The first thread that was seen to use memory after it had been freed, and where.
    pub used_after_free: Option<(usize, Site)>,
    /// The child process that the run waited for.
    pub awaited_child: Option<AwaitedChild>,
    /// Does a thread wait for ever at something in the heap that has no reason to keep it ([`crate::hang`])?
    pub awaits_lost: bool,
    /// The threads that still ran at the end of a run that may have gone on.
    pub still_running: Vec<RunningThread>,
    /// The names of what calls pass on.
    pub passed_names: FxHashMap<Passed, Option<String>>,
    /// The same in the words of one of the functions that are inlined there.
    pub inlined_names: FxHashMap<(Passed, usize), Option<Arc<str>>>,
    /// Per call: how many functions that are inlined there do nothing but that call.
    pub inlined_levels: FxHashMap<(usize, FuncId, InstId), usize>,
    /// What the functions of a stack call a lock.
    pub words: Words,
    /// What lines leave for each other.
    pub own: Own<'r>,
    /// What is only handed over.
    pub handing: Handing,
    /// Objects of libraries in the program's memory.
    pub opaque: Opaque,
    /// The numbers of the loop that is walked in one piece, kept for the next one.
    pub slots: Vec<Slot>,
}

impl<'r> Engine<'r> {
    pub fn new(
        image: &'r Image<'r>,
        recording: &'r Recording,
        limits: &'r Limits<'r>,
        pass: Pass,
        learned: Learned,
        order: &[usize],
        leave_out: LeaveOut,
    ) -> Self {
        let threads: Vec<Thread<'r>> = order
            .iter()
            .enumerate()
            .filter_map(|(index, &log)| {
                recording.threads.get(log).map(|log| Thread::new(index, log))
            })
            .collect();
        let serials = threads.iter().map(|thread| (thread.log.serial, thread.index)).collect();
        let mut engine = Self {
            image,
            recording,
            limits,
            options: limits.options,
            pool: ExprPool::default(),
            memory: Memory::new(image),
            pass,
            out: Builder::new(threads.len()),
            points: Tracker::new(threads.len()),
            collected: Collected::default(),
            idle: Idle::new(leave_out),
            scout: None,
            threads,
            learned,
            drains: false,
            gaps: Vec::new(),
            gap_places: FxHashMap::default(),
            gap_counts: BTreeMap::new(),
            functions: BTreeMap::new(),
            guessing: false,
            known: FxHashMap::default(),
            pending_reads: SmallVec::new(),
            serials,
            constants: Constants::default(),
            failing: None,
            failure: None,
            lifetime: Lifetime::default(),
            waiting: Waiting::default(),
            requests: Requests::default(),
            initialised: Vec::new(),
            sync_objects: FxHashMap::default(),
            heap_objects: FxHashMap::default(),
            channel_objects: FxHashMap::default(),
            handover_objects: FxHashMap::default(),
            queue_objects: FxHashMap::default(),
            shared_heap: FxHashSet::default(),
            sites: FxHashMap::default(),
            call_paths: CallPaths::default(),
            containers: Containers::default(),
            global_names: FxHashMap::default(),
            path_names: FxHashMap::default(),
            access_parts: FxHashMap::default(),
            passed_names: FxHashMap::default(),
            inlined_names: FxHashMap::default(),
            inlined_levels: FxHashMap::default(),
            words: Words::default(),
            own: Own::default(),
            handing: Handing::default(),
            opaque: Opaque::default(),
            slots: Vec::new(),
            addresses: thread_locals::Addresses::default(),
            used_after_free: None,
            awaited_child: None,
            awaits_lost: false,
            still_running: Vec::new(),
        };
        engine.learned.stacks.resize(engine.threads.len(), None);
        engine.learned.errno.resize(engine.threads.len(), None);
        engine.learned.began.resize(engine.threads.len(), None);
        engine.learned.stamps.resize(engine.threads.len(), Vec::new());
        engine.learned.writes.resize(engine.threads.len(), 0);
        for (thread, cut) in engine.threads.iter_mut().zip(&engine.learned.cuts) {
            thread.cut = *cut;
        }
        engine.failing = engine.failing_thread();
        engine.find_shared_heap();
        for object in &engine.learned.heap.objects {
            if object.mapped.as_ref().is_some_and(|mapped| mapped.zero) {
                engine.memory.zero(object.base, object.size);
            }
        }
        engine.make_thread_locals();
        if let Some(first) = engine.threads.first_mut() {
            first.clock.tick(0);
        }
        engine
    }

    fn failing_thread(&self) -> Option<usize> {
        let failure = self.limits.failure.as_ref()?;
        if failure.kind == RecordedFailureKind::TimedOut {
            return self.learned.lost;
        }
        if failure.kind == RecordedFailureKind::Output {
            return Some(self.writing_thread());
        }
        if self.learned.reported.is_some() {
            return self.learned.reported;
        }
        Some(self.serials.get(&failure.thread_serial).copied().unwrap_or(0))
    }

    pub fn symbolic(&self) -> bool {
        matches!(self.pass, Pass::Symbolic(_))
    }

    /// Walks all threads, in an order that fork and join allow.
    ///
    /// # Errors
    /// When a thread's stream cannot be read to its end, or the budget is spent.
    pub fn run(&mut self) -> Result<(), SymexError> {
        loop {
            let runnable = (0..self.threads.len()).find(|&t| self.is_runnable(t));
            let next = runnable.or_else(|| self.force());
            let Some(t) = next else { break };
            self.run_thread(t);
            if let Some(error) = self.threads[t].take_error() {
                return Err(error.into());
            }
            self.limits.check()?;
        }
        Ok(())
    }

    pub(crate) fn is_runnable(&self, t: usize) -> bool {
        let thread = &self.threads[t];
        thread.started
            && match thread.stop {
                None => true,
                Some(Stop::Wait(other)) => self.has_ended(other),
                Some(_) => false,
            }
    }

    pub fn has_ended(&self, t: usize) -> bool {
        self.threads.get(t).is_none_or(|thread| {
            thread.stop.as_ref().is_some_and(|stop| !matches!(stop, Stop::Wait(_)))
        })
    }

    /// Picks a thread although nothing allows it: only logs that contradict each other need this.
    pub(crate) fn force(&mut self) -> Option<usize> {
        let orphan = self.threads.iter().position(|thread| !thread.started);
        if let Some(t) = orphan {
            self.threads[t].started = true;
            self.check_created(t);
            let parent = self.threads[t].log.parent;
            if let Some(&parent) = self.serials.get(&parent) {
                let clock = self.threads[parent].clock.clone();
                self.threads[t].clock.join(&clock);
            }
            self.threads[t].clock.tick(t);
            return Some(t);
        }
        let waiting =
            self.threads.iter().position(|thread| matches!(thread.stop, Some(Stop::Wait(_))))?;
        self.threads[waiting].stop =
            Some(Stop::Contradiction("joins a thread that waits for it".to_owned()));
        self.forget_idle();
        self.finish_thread(waiting);
        None.or_else(|| (0..self.threads.len()).find(|&t| self.is_runnable(t)))
    }

    pub(crate) fn run_thread(&mut self, t: usize) {
        self.forget_idle();
        if self.threads[t].left_out {
            self.threads[t].stop = Some(Stop::EndOfLog);
            self.finish_thread(t);
            return;
        }
        let fresh = self.threads[t].stop.is_none() && !self.threads[t].paused;
        self.threads[t].paused = false;
        self.threads[t].stop = None;
        if fresh {
            self.threads[t].open();
        }
        if fresh && self.symbolic() {
            self.pass_sync(t, SyncPoint::Start, None);
            self.event(t, model::EventKind::Start, None);
        }
        loop {
            if self.handing.turn.is_some_and(|until| self.threads[t].last_stamp > until) {
                self.threads[t].paused = true;
                return;
            }
            match self.run_plain(t).and_then(|()| self.step(t)) {
                Ok(()) | Err(Stop::Left) => {}
                Err(Stop::Wait(other)) => {
                    self.threads[t].again = self.threads[t].code().is_some();
                    if !self.has_ended(other) {
                        self.threads[t].stop = Some(Stop::Wait(other));
                        return;
                    }
                }
                Err(stop) => {
                    self.create_unlogged(t);
                    self.threads[t].stop = Some(stop);
                    self.finish_thread(t);
                    return;
                }
            }
        }
    }

    pub fn step(&mut self, t: usize) -> Result<(), Stop> {
        if self.limits.step() {
            return Err(Stop::Spent);
        }
        if self.threads[t].left_out {
            return Err(Stop::EndOfLog);
        }
        match self.threads[t].frames.last() {
            Some(Frame::Code(_)) => self.instruction(t),
            Some(Frame::External(_)) => self.external_step(t),
            None => contradiction("no frames"),
        }
    }

    fn instruction(&mut self, t: usize) -> Result<(), Stop> {
        self.count_instruction(t)?;
        let Some((info, id)) = self.current(t) else { return contradiction("no function") };
        let function = info.function;
        let Some(instruction) = function.instructions.get(id.index()) else {
            return contradiction(format!("{} runs off its end", function.name));
        };
        self.check_reached(t, id)?;
        self.pass_gate(t, info, id);
        let marks = info.marks(id);
        match marks.may_fault() {
            true => self.handle_fault(t, instruction)?,
            false => self.threads[t].pass_repeated(),
        }
        if marks.ends_region() {
            self.region_ends(t, info)?;
        }
        self.execute(t, id, instruction)
    }

    fn count_instruction(&mut self, t: usize) -> Result<(), Stop> {
        let thread = &mut self.threads[t];
        thread.report.instructions += 1;
        if thread.exhausted() {
            thread.tail += 1;
            if thread.tail > self.options.tail_limit {
                return Err(Stop::EndOfLog);
            }
        }
        Ok(())
    }

    /// The function and instruction that the top frame is at.
    pub fn current(&self, t: usize) -> Option<(&'r FunctionInfo<'r>, InstId)> {
        self.threads[t].code().map(|frame| (frame.info, frame.next))
    }

    fn execute(&mut self, t: usize, id: InstId, inst: &'r Instruction) -> Result<(), Stop> {
        match &inst.kind {
            InstKind::Alloca { size, count, .. } => self.alloca(t, id, inst, *size, *count),
            InstKind::Load { address, .. } => self.load(t, id, inst, *address),
            InstKind::Store { address, value, ordering, .. } => {
                self.drains = *ordering == Ordering::SequentiallyConsistent;
                let done = self.store(t, id, inst, *address, *value);
                self.drains = false;
                done
            }
            InstKind::AtomicRmw { op, address, value, .. } => {
                self.atomic_rmw(t, inst, *op, *address, *value)
            }
            InstKind::CmpXchg { address, expected, new, .. } => {
                self.cmpxchg(t, inst, *address, *expected, *new)
            }
            InstKind::Fence(ordering) => {
                self.drains = *ordering == Ordering::SequentiallyConsistent;
                self.event(t, model::EventKind::Fence, None);
                self.drains = false;
                self.finish(t, Value::Absent)
            }
            InstKind::Call(call) | InstKind::Invoke { call, .. } => {
                // Of what a library does it is not known how it writes.
                self.drains = true;
                let done = self.call(t, id, inst, call);
                self.drains = false;
                done
            }
            InstKind::Br(target) => self.enter_block(t, *target),
            InstKind::CondBr(..) | InstKind::Switch(..) | InstKind::IndirectBr(..) => {
                self.branch(t, id, inst)
            }
            InstKind::Ret(value) => self.ret(t, *value),
            InstKind::Unreachable => self.unreachable(t),
            InstKind::Resume(_) => self.unwind(t, true),
            InstKind::LandingPad => {
                let value = self.fresh(t, inst.ty, None);
                self.finish(t, value)
            }
            InstKind::VaArg(_) | InstKind::Other(..) => {
                let name = instruction_name(&inst.kind);
                let value = self.fresh(t, inst.ty, Some(GapKind::Instruction(name)));
                self.finish(t, value)
            }
            InstKind::Phi(_) => contradiction("phi after another instruction"),
            _ => self.pure(t, inst),
        }
    }

    /// An instruction without side effects.
    fn pure(&mut self, t: usize, inst: &'r Instruction) -> Result<(), Stop> {
        self.check_division(t, inst)?;
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return contradiction("no function") };
        let (image, constants) = (self.image, &mut self.constants);
        let mut get = |operand| operand_value(thread, frame, image, constants, operand);
        let result = eval::evaluate(&mut self.pool, frame.module, &inst.kind, inst.ty, &mut get);
        let value = match result {
            Ok(value) => value,
            Err(gap) => {
                let gap = match gap {
                    GapKind::Instruction(_) => GapKind::Instruction(instruction_name(&inst.kind)),
                    gap => gap,
                };
                let mut operands = Vec::new();
                inst.kind.for_each_operand(&mut |operand| operands.push(operand));
                let operands = self.arguments(t, &operands);
                self.not_computed(t, inst.ty, &operands, gap)
            }
        };
        self.finish(t, value)
    }

    /// The result of an operation that is not modelled: what the log says, where it says something.
    /// A result made of values that another schedule may change is a gap all the same.
    pub fn not_computed(
        &mut self,
        t: usize,
        ty: TypeId,
        operands: &[Value],
        gap: GapKind,
    ) -> Value {
        if self.is_logged(t) && operands.iter().all(Value::is_concrete) {
            return Value::Absent;
        }
        let matters = gap != GapKind::FloatFormat || !self.is_only_told(t);
        self.fresh(t, ty, matters.then_some(gap))
    }

    /// Does only a call that ends the program use the current instruction's value? That is what a failed
    /// assertion prints, say.
    fn is_only_told(&self, t: usize) -> bool {
        let (Some(frame), Some((info, id))) = (self.threads[t].code(), self.current(t)) else {
            return false;
        };
        let ends = |call: &ir::types::Call| match call.callee {
            Callee::Direct(callee) => {
                let function = frame.module.functions.get(callee.index());
                let described = function.and_then(|function| effect(&function.name));
                described.is_some_and(|described| described.kind == Kind::Ends)
            }
            _ => false,
        };
        info.function.instructions.iter().all(|inst| {
            let mut used = false;
            inst.kind.for_each_operand(&mut |operand| used |= operand == Operand::Inst(id));
            !used || matches!(&inst.kind, InstKind::Call(call) if ends(call))
        })
    }

    /// Will the current instruction's value be in the log?
    pub fn is_logged(&self, t: usize) -> bool {
        self.current(t).is_some_and(|(info, id)| info.marks(id).is_logged())
    }

    pub fn operand(&mut self, t: usize, operand: Operand) -> Value {
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return Value::Absent };
        operand_value(thread, frame, self.image, &mut self.constants, operand)
    }

    pub fn scalar(&mut self, t: usize, operand: Operand) -> Option<Scalar> {
        self.operand(t, operand).scalar()
    }

    /// The module of the innermost code frame.
    pub fn module(&self, t: usize) -> &'r Module {
        match self.threads[t].innermost_code() {
            Some(frame) => frame.module,
            None => self.image.module(0),
        }
    }

    /// Gives the current instruction its value and moves on.
    pub fn finish(&mut self, t: usize, value: Value) -> Result<(), Stop> {
        let Some((info, id)) = self.current(t) else { return contradiction("no function") };
        let Some(inst) = info.function.instructions.get(id.index()) else {
            return contradiction("no instruction");
        };
        // A reading stands behind the access.
        let had = self.threads[t].stamps;
        if info.marks(id).has_reading()
            && let [tsc] = self.threads[t].words(1)?.as_slice()
        {
            self.stamp(t, *tsc);
            self.check_reading_after_panic(t, *tsc);
        }
        let value =
            if info.marks(id).is_logged() { self.reconcile(t, value, id, inst)? } else { value };
        self.pending_reads.clear();
        if let Some(frame) = self.threads[t].code_mut() {
            if let Some(register) = frame.registers.get_mut(id.index()) {
                *register = value;
            }
            if !matches!(inst.kind, InstKind::Invoke { .. }) {
                frame.next = InstId(id.0 + 1);
            }
        }
        self.note_had(t, id, inst, had);
        match inst.kind {
            InstKind::Invoke { normal, .. } => {
                // That it threw nothing decides that the blocks behind it are reached.
                self.take_branch(t, None);
                self.enter_block(t, normal)
            }
            _ => Ok(()),
        }
    }

    /// A value that nothing is known of.
    pub fn fresh(&mut self, t: usize, ty: TypeId, gap: Option<GapKind>) -> Value {
        if let Some(gap) = gap {
            self.gap(t, gap, String::new());
        }
        let module = self.module(t);
        let (pool, out) = (&mut self.pool, &mut self.out);
        eval::build(module, ty, &mut |bits| {
            let var = out.variable(bits, Origin::Input, None);
            let id = pool.var(var, bits);
            Scalar::expr(pool, id)
        })
    }

    /// A new input variable.
    pub fn input(&mut self, bits: u32) -> ExprId {
        let var = self.out.variable(bits, Origin::Input, None);
        self.pool.var(var, bits)
    }

    /// Counts a gap.
    pub fn gap(&mut self, t: usize, what: GapKind, detail: String) {
        self.doubt_return(t, &what);
        if !self.symbolic() {
            return;
        }
        *self.gap_counts.entry(what.clone()).or_default() += 1;
        let site = self.site(t);
        let stack = self.stack(t);
        let own = stack.iter().find(|site| !site.is_in_library()).unwrap_or(&site);
        let function = own.function.clone();
        let place = (t, site.clone(), function.clone(), what.clone());
        if let Some(&index) = self.gap_places.get(&place) {
            self.gaps[index].times += 1;
        } else if self.gaps.len() < self.options.max_gaps {
            self.gap_places.insert(place, self.gaps.len());
            let thread = self.threads[t].log.name.clone();
            self.gaps.push(Gap { thread, site, function, what, detail, times: 1 });
        }
    }

    /// Adds an event of the symbolic pass; gives its index in the thread.
    pub fn event(&mut self, t: usize, kind: EventKind, name: Option<String>) -> u32 {
        if !self.symbolic() {
            return 0;
        }
        if !self.threads[t].ended_locals.is_empty() && !kind.is_access() {
            self.overwrite_locals(t);
        }
        let sync = kind.object().is_some()
            && !matches!(kind, EventKind::Allocate { .. } | EventKind::Free { .. });
        let stack = if sync { self.sync_stack(t) } else { self.stack(t) };
        self.event_at(t, kind, stack, name)
    }

    /// The same for an event of another place than the thread is at.
    pub(crate) fn event_at(
        &mut self,
        t: usize,
        kind: EventKind,
        stack: Stack,
        name: Option<String>,
    ) -> u32 {
        self.points.event(t, &kind);
        self.idle.event(&kind);
        let interval = self.happened(t);
        let continued = self.continued(t, &stack);
        let index = self.out.event(t, kind, (stack, continued), name, interval);
        if self.drains {
            self.out.set_draining(t, index);
        }
        index
    }
}

/// The value of an operand in a frame.
pub(crate) fn operand_value<'r>(
    thread: &Thread<'r>,
    frame: &CodeFrame<'r>,
    image: &Image<'r>,
    constants: &mut Constants,
    operand: Operand,
) -> Value {
    match operand {
        Operand::Inst(id) => thread.settled_at(frame.registers.get(id.index())),
        Operand::Param(index) => thread.settled_at(frame.arguments.get(index as usize)),
        Operand::Other => Value::Absent,
        Operand::Const(id) => {
            let m = frame.info.module;
            if let Some(address) = thread_locals::named(thread, frame, id) {
                return Value::constant(64, u128::from(address));
            }
            constants.value(image, m, id)
        }
    }
}

/// Is the address one that only its thread can have?
pub(crate) fn is_private(internal: u64) -> bool {
    (PRIVATE..HEAP).contains(&internal)
}

/// What an instruction is called in gaps.
pub(crate) fn instruction_name(kind: &InstKind) -> String {
    let name = match kind {
        InstKind::Binary(op, ..) => return format!("{op:?}").to_lowercase(),
        InstKind::Cast(op, ..) => return format!("{op:?}").to_lowercase(),
        InstKind::Other(name, _) => return name.clone(),
        InstKind::FNeg(_) => "fneg",
        InstKind::ICmp(..) => "icmp",
        InstKind::FCmp(..) => "fcmp",
        InstKind::Select(..) => "select",
        InstKind::Phi(_) => "phi",
        InstKind::Alloca { .. } => "alloca",
        InstKind::Load { .. } => "load",
        InstKind::Store { .. } => "store",
        InstKind::Gep { .. } => "getelementptr",
        InstKind::AtomicRmw { .. } => "atomicrmw",
        InstKind::CmpXchg { .. } => "cmpxchg",
        InstKind::Fence(_) => "fence",
        InstKind::Call(_) => "call",
        InstKind::Invoke { .. } => "invoke",
        InstKind::ExtractValue(..) => "extractvalue",
        InstKind::InsertValue(..) => "insertvalue",
        InstKind::ExtractElement(..) => "extractelement",
        InstKind::InsertElement(..) => "insertelement",
        InstKind::ShuffleVector(..) => "shufflevector",
        InstKind::LandingPad => "landingpad",
        InstKind::VaArg(_) => "va_arg",
        InstKind::Freeze(_) => "freeze",
        InstKind::Ret(_) => "ret",
        InstKind::Br(_) => "br",
        InstKind::CondBr(..) => "br",
        InstKind::Switch(..) => "switch",
        InstKind::IndirectBr(..) => "indirectbr",
        InstKind::Resume(_) => "resume",
        InstKind::Unreachable => "unreachable",
    };
    name.to_owned()
}
