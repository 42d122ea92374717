//! Calls: into walked functions, out to uninstrumented code, and back.

use crate::control::Logged;
use crate::engine::{Engine, operand_value};
use crate::idle::is_harmless;
use crate::image::FunctionInfo;
use crate::report::GapKind;
use crate::thread::{Entry, ExternalCall, ExternalFrame, Frame, Stop, contradiction};
use crate::value::{Scalar, Value};
use ir::assembly::Assembly;
use ir::calls::is_left_out;
use ir::types::{Call, Callee, FuncId, InstId, Instruction, Operand, TypeId};
use model::PathConditionKind;

impl<'r> Engine<'r> {
    /// A call or invoke.
    pub fn call(
        &mut self,
        t: usize,
        id: InstId,
        inst: &'r Instruction,
        call: &'r Call,
    ) -> Result<(), Stop> {
        let Some((info, _)) = self.current(t) else { return contradiction("no function") };
        let module = self.image.module(info.module);
        match &call.callee {
            Callee::Direct(callee) => {
                let Some(function) = module.functions.get(callee.index()) else {
                    return contradiction("call of a function that is not there");
                };
                if function.name.starts_with("llvm.") {
                    if info.plan.returns.contains(&id) {
                        // The thread's pointer, the only one of them that is logged, is what this gives, too.
                        return self.outside(t, id, inst, call, "pthread_self", None);
                    }
                    return self.intrinsic(t, inst, call, &function.name);
                }
                if !function.is_declaration() {
                    return self.direct(t, info.module, *callee, call);
                }
                let address = self.image.function_address(info.module, *callee);
                self.outside(t, id, inst, call, &function.name, Some(address))
            }
            Callee::Indirect(pointer) => {
                let address = self.scalar(t, *pointer);
                self.check_fault(t, address, 1)?;
                let address = address
                    .and_then(|address| self.concretise(t, address, PathConditionKind::CallTarget));
                let name = address.and_then(|address| self.image.by_address(address));
                let name = name.map_or("", |(m, f)| {
                    self.image.module(m).functions.get(f.index()).map_or("", |f| &f.name)
                });
                self.outside(t, id, inst, call, name, address)
            }
            Callee::Asm(text, constraints) => {
                let assembly = Assembly::parse(text, constraints);
                self.assembly(t, id, inst, call, assembly)
            }
        }
    }

    pub fn arguments(&mut self, t: usize, operands: &[Operand]) -> Vec<Value> {
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return Vec::new() };
        operands
            .iter()
            .map(|&op| operand_value(thread, frame, self.image, &mut self.constants, op))
            .collect()
    }

    /// A call of a function with a body in the same module.
    fn direct(
        &mut self,
        t: usize,
        module: usize,
        callee: FuncId,
        call: &'r Call,
    ) -> Result<(), Stop> {
        let Some(info) = self.image.info(module, callee) else {
            return contradiction("call of a function without a body");
        };
        let mut info = info;
        let mut logged = Logged::None;
        if info.plan.entry {
            let (number, called) = match self.next_entry(t)? {
                Entry::Enter(number) => (number, false),
                Entry::Called(number) => (number, true),
                _ => return contradiction(format!("no entry of {}", info.function.name)),
            };
            let entered = self.image.by_number(number).and_then(|(m, f)| self.image.info(m, f));
            match entered {
                // The linker kept another module's copy.
                Some(entered) if entered.function.name == info.function.name => info = entered,
                _ => {
                    let name = &info.function.name;
                    return contradiction(format!("entry of {number} where {name} is called"));
                }
            }
            self.threads[t].advance();
            logged = Logged::All;
            if called {
                self.check_called(t, call, info)?;
                logged = Logged::Some;
            }
        }
        let arguments = self.arguments(t, &call.args);
        self.push_function(t, info, arguments, logged)
    }

    /// A function says that the call named it. Can it have?
    fn check_called(&self, t: usize, call: &Call, info: &FunctionInfo<'_>) -> Result<(), Stop> {
        let Some(caller) = self.threads[t].innermost_code() else {
            return contradiction("a call without a caller");
        };
        let callee = self.image.module(info.module);
        let names = ir::calls::shape_of_call(caller.module, caller.info.function, call).is_some();
        let looks = ir::calls::shape_of(callee, info.function).is_some();
        if names && looks && ir::calls::fits((caller.module, call), (callee, info.function)) {
            return Ok(());
        }
        let (from, to) = (&caller.info.function.name, &info.function.name);
        contradiction(format!("{to} says that {from} called it, with other types"))
    }

    /// A call whose target is not known to be in the module.
    fn outside(
        &mut self,
        t: usize,
        id: InstId,
        inst: &'r Instruction,
        call: &'r Call,
        name: &'r str,
        address: Option<u64>,
    ) -> Result<(), Stop> {
        let Some((info, _)) = self.current(t) else { return contradiction("no function") };
        let returns = info.plan.returns.contains(&id);
        // Of a function that is walked it is known what it does.
        if !returns && !is_harmless(name) {
            self.idle.effect();
        }
        if !returns && !call.must_tail {
            self.miss_input(t, name);
            let value = self.fresh(t, inst.ty, Some(GapKind::External(name.to_owned())));
            return self.finish(t, value);
        }
        let arguments = self.arguments(t, &call.args);
        self.check_exit_call(t, name, &arguments, &call.args)?;
        self.check_output(t, name, &arguments, &call.args)?;
        self.check_report(t, name, &arguments)?;
        if matches!(name, "swapcontext" | "setcontext") {
            return contradiction(format!(
                "{name} goes on on another stack, which is not followed"
            ));
        }
        self.note_setjmp(t, id, name, &arguments);
        self.note_thread_exit(t, name, &arguments);
        if crate::tail::is_sleep(name) && name != "sched_yield" && self.ends_in_sleep(t) {
            self.threads[t].forget_rest();
            return Err(Stop::EndOfLog);
        }
        let reallocated = self.reallocated(t, name, &arguments);
        let text = self.text_before(t, name, &arguments);
        let passed = self.pass_on(t, name, &arguments);
        let frame = ExternalFrame {
            signal: None,
            call: Some(ExternalCall {
                name,
                address,
                arguments,
                operands: call.args.clone(),
                result: inst.ty,
                reallocated,
                walked: false,
                walked_result: None,
                performed: false,
                created: None,
                allocated: None,
                written: None,
                text_read: None,
                went_in: Vec::new(),
                measured: smallvec::SmallVec::new(),
                doubted: false,
                read: false,
                text,
                assembly: None,
                tail: call.must_tail,
                stamp: self.threads[t].last_stamp,
                reading: None,
                at_work: false,
                passed,
                allocations: self.threads[t].allocations,
            }),
        };
        self.threads[t].frames.push(Frame::External(Box::new(frame)));
        Ok(())
    }

    /// One entry of uninstrumented code.
    pub fn external_step(&mut self, t: usize) -> Result<(), Stop> {
        let next = self.threads[t].peek()?;
        if self.threads[t].external_call().is_some_and(|call| call.tail)
            && self.tail_call_is_over(t, next)
        {
            return self.return_from_tail_call(t);
        }
        if self.denies_return(t, next) {
            return contradiction("a lock given back in the call that takes it");
        }
        match next {
            None => self.return_unlogged(t),
            Some(Entry::Runtime(event)) => self.runtime(t, event),
            Some(Entry::Enter(number)) => {
                self.cancelled_inside(t);
                self.enter_from_outside(t, number)
            }
            Some(Entry::Called(number)) => self.enter_called(t, number),
            Some(Entry::Return) if self.threads[t].non_local || self.cancelled(t) => self.jump(t),
            Some(Entry::Return) if self.jumped_here(t) => self.jump(t),
            Some(Entry::Return) => self.return_from_outside(t),
            Some(Entry::CameBack) => self.return_from_walked(t),
            Some(Entry::Block(_)) => {
                self.cancelled(t);
                self.threads[t].cancelled_in = None;
                self.unwind(t, false)
            }
            Some(Entry::Choice) => contradiction("a choice inside a call"),
        }
    }

    /// Was the thread cancelled in this call? Nothing in the log says so; what the walk of a former survey came to
    /// behind the call does.
    fn jumped_here(&mut self, t: usize) -> bool {
        let thread = &mut self.threads[t];
        let waits = matches!(thread.frames.last(), Some(Frame::External(frame))
            if frame.call.as_ref().is_some_and(|call| !call.walked && call.assembly.is_none()));
        if !waits || thread.cleanup_buffers.is_empty() {
            return false;
        }
        thread.doubtful_return = Some(thread.path_at);
        self.learned.jumps.get(&t) == Some(&Some(thread.path_at))
    }

    /// Has a `musttail` call ended? It has when its callee was walked, or when an entry comes that
    /// is not the callee's: then that was not instrumented.
    fn tail_call_is_over(&mut self, t: usize, next: Option<Entry>) -> bool {
        let image = self.image;
        let Some(call) = self.threads[t].external_call() else { return false };
        if call.walked {
            return call.walked_result.is_some();
        }
        match next {
            Some(
                Entry::Block(_)
                | Entry::Called(_)
                | Entry::Return
                | Entry::CameBack
                | Entry::Choice,
            ) => true,
            Some(Entry::Enter(number)) => !image.by_number(number).is_some_and(|(m, f)| {
                call.address.is_some_and(|address| address == image.function_address(m, f))
                    || image.info(m, f).is_some_and(|info| info.function.name == call.name)
            }),
            Some(Entry::Runtime(_)) | None => false,
        }
    }

    fn return_from_tail_call(&mut self, t: usize) -> Result<(), Stop> {
        let Some(Frame::External(frame)) = self.threads[t].frames.pop() else {
            return contradiction("return without a call");
        };
        let Some(call) = frame.call else { return contradiction("return without a call") };
        let value = match call.walked_result {
            Some(value) => value,
            None if ir::plan::logged_bytes(self.module(t), call.result) == 0 => Value::Absent,
            None => self.fresh(t, call.result, Some(GapKind::External(call.name.to_owned()))),
        };
        self.finish(t, value)
    }

    /// Instrumented code is entered: the callee itself, or a callback.
    fn enter_from_outside(&mut self, t: usize, number: u32) -> Result<(), Stop> {
        let Some((m, f)) = self.image.by_number(number) else {
            return contradiction(format!("entry of unknown function {number}"));
        };
        let Some(info) = self.image.info(m, f) else {
            return contradiction(format!("entry of {number}, which has no body"));
        };
        self.idle.effect();
        self.threads[t].advance();
        let entered = self.image.function_address(m, f);
        let arguments;
        if let Some(call) = self.threads[t].external_call()
            && !call.walked
            && (call.name == info.function.name || call.address == Some(entered))
        {
            call.walked = true;
            arguments = call.arguments.clone();
        } else {
            self.forget_sorted(t);
            arguments = self.registered_arguments(t, entered);
            self.push_function(t, info, arguments, Logged::All)?;
            self.called_back(t);
            return Ok(());
        }
        self.push_function(t, info, arguments, Logged::All)
    }

    /// The callee is instrumented, and has its arguments from the caller.
    fn enter_called(&mut self, t: usize, number: u32) -> Result<(), Stop> {
        let entered = self.image.by_number(number);
        let found = entered.and_then(|(m, f)| Some((m, f, self.image.info(m, f)?)));
        let Some((m, f, info)) = found else {
            return contradiction(format!("entry of {number}, which has no body"));
        };
        let instruction = self.threads[t].innermost_code().and_then(|frame| {
            let instruction = frame.info.function.instructions.get(frame.next.index())?;
            instruction.kind.as_call()
        });
        let name = &info.function.name;
        let Some(site) = instruction else {
            return contradiction(format!("{name} says that it was called where no call is"));
        };
        self.check_called(t, site, info)?;
        let Some(call) = self.threads[t].external_call().filter(|call| !call.walked) else {
            return contradiction(format!("{name} says that it was called where nothing is"));
        };
        let (called, address) = (call.name, call.address);
        // Another function of the same name may stand before the callee in the program's tables.
        let other = address.and_then(|address| self.image.by_address(address));
        let entered = self.image.function_address(m, f);
        if !(called == name || address == Some(entered) || other.is_none()) {
            return contradiction(format!("{name} says that it was called where {called} is"));
        }
        call.walked = true;
        let arguments = call.arguments.clone();
        self.threads[t].advance();
        self.push_function(t, info, arguments, Logged::Some)
    }

    /// Remembers what the destructor of a thread-local object is to be called with. The log has the
    /// object's real address, but its contents are kept where no other thread can have it.
    fn note_thread_exit(&mut self, t: usize, name: &str, arguments: &[Value]) {
        if !matches!(name, "__cxa_thread_atexit" | "__cxa_thread_atexit_impl") {
            return;
        }
        let destructor = arguments.first().and_then(Value::scalar).and_then(Scalar::as_const);
        if let (Some(destructor), Some(object)) = (destructor, arguments.get(1)) {
            self.threads[t].destructors.push((destructor as u64, object.clone()));
        }
    }

    /// The arguments of a callback that was registered with them: the last one first.
    fn registered_arguments(&mut self, t: usize, entered: u64) -> Vec<Value> {
        let destructors = &mut self.threads[t].destructors;
        match destructors.last() {
            Some((destructor, _)) if *destructor == entered => {
                destructors.pop().map(|(_, object)| object).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// A comparison called by `qsort`, which moves the elements unseen until it returns.
    fn forget_sorted(&mut self, t: usize) {
        let Some(call) = self.threads[t].external_call() else { return };
        if !matches!(call.name, "qsort" | "qsort_r") {
            return;
        }
        let number = |i: usize| {
            let scalar = call.arguments.get(i).and_then(Value::scalar);
            scalar.and_then(Scalar::as_const).map(|value| value as u64)
        };
        let (Some(base), Some(count), Some(size)) = (number(0), number(1), number(2)) else {
            return;
        };
        if let Some(start) = self.lookup(t, base) {
            self.forget(start, count.saturating_mul(size).min(1 << 24));
        }
    }

    /// Is the thread in a callback of uninstrumented code that has not returned? It may have
    /// written memory, which the log tells only afterwards.
    pub fn in_callback(&self, t: usize) -> bool {
        self.threads[t].frames.iter().any(|frame| match frame {
            Frame::External(frame) => frame.call.as_ref().is_some_and(|call| !call.walked),
            Frame::Code(_) => false,
        })
    }

    /// A call's `RETURN` and result.
    fn return_from_outside(&mut self, t: usize) -> Result<(), Stop> {
        let Some(Frame::External(frame)) = self.threads[t].frames.last() else {
            return contradiction("return without a call");
        };
        let Some(call) = &frame.call else { return contradiction("return without a call") };
        let (result, walked) = (call.result, call.walked);
        let bytes = ir::plan::logged_bytes(self.module(t), result);
        if self.threads[t].peek_bytes(bytes).is_none() {
            return Err(Stop::EndOfLog);
        }
        self.threads[t].advance();
        let logged = self.take_value(t, result)?;
        let number = logged.scalar().and_then(Scalar::as_const).map_or(0, |value| value as u64);
        self.read_described(t, Some(number));
        let Some(Frame::External(frame)) = self.threads[t].frames.pop() else {
            return contradiction("return without a call");
        };
        let Some(call) = frame.call else { return contradiction("return without a call") };
        let value = match (walked, call.walked_result.clone()) {
            (true, Some(value)) => self.merge(t, &value, &logged, "call"),
            (true, None) => logged,
            (false, _) => {
                if !is_harmless(call.name) {
                    self.idle.effect();
                }
                self.collect_input(t, &call, &logged);
                self.count_call(&call);
                self.change_errno(t, &call, Some(number));
                self.threads[t].call_time = Some(self.time_of(t, &call));
                self.use_channels(t, &call, &logged);
                self.note_result(t, &call, &logged);
                let logged = self.use_descriptors(t, &call, logged);
                let logged = self.use_files(t, &call, logged);
                self.use_contents(t, &call, &logged);
                self.note_initialisation(t, &call);
                let value = self.model_external(t, &call, logged)?;
                if let Some(declaration) = ir::effects::effect(call.name) {
                    self.leave_described(t, &call, declaration);
                }
                self.threads[t].call_time = None;
                value
            }
        };
        self.pending_reads.clear();
        self.finish(t, value)
    }

    /// The instrumented callee has returned to a caller that it had been named by; its result is known,
    /// unless it is of a type that is logged all the same.
    fn return_from_walked(&mut self, t: usize) -> Result<(), Stop> {
        let Some(Frame::External(frame)) = self.threads[t].frames.last() else {
            return contradiction("return without a call");
        };
        let result =
            frame.call.as_ref().and_then(|call| Some((call.result, call.walked_result.clone()?)));
        let (info, id) = match (self.threads[t].innermost_code(), &result) {
            (Some(code), Some(_)) => (code.info, code.next),
            _ => return contradiction("a function came back that did not return"),
        };
        let Some((ty, mut value)) = result.filter(|_| info.plan.returns.contains(&id)) else {
            return contradiction("a function came back to where no call is");
        };
        let module = self.module(t);
        let logged = !is_left_out(module, ty);
        let bytes = if logged { ir::plan::logged_bytes(module, ty) } else { 0 };
        if self.threads[t].peek_bytes(bytes).is_none() {
            return Err(Stop::EndOfLog);
        }
        self.threads[t].advance();
        if logged {
            let there = self.take_value(t, ty)?;
            value = self.merge(t, &value, &there, "call");
        }
        self.threads[t].frames.pop();
        self.pending_reads.clear();
        self.finish(t, value)
    }

    /// Remembers where `setjmp` was called, for a `longjmp` to come.
    fn note_setjmp(&mut self, t: usize, id: InstId, name: &str, arguments: &[Value]) {
        let buffer = arguments.first().and_then(Value::scalar).and_then(Scalar::as_const);
        match name {
            "setjmp" | "_setjmp" | "__sigsetjmp" | "sigsetjmp" => {}
            "__pthread_register_cancel" => {
                self.threads[t].cleanup_buffers.extend(buffer.map(|buffer| buffer as u64));
                return;
            }
            "__pthread_unregister_cancel" => {
                self.threads[t].cleanup_buffers.pop();
                return;
            }
            _ => return,
        }
        let serial = self.threads[t].code().map(|frame| frame.serial);
        if let (Some(buffer), Some(serial)) = (buffer, serial) {
            self.threads[t].jump_buffers.insert(buffer as u64, (serial, id));
        }
    }

    /// `longjmp`: the `RETURN` belongs to the `setjmp` whose buffer the call names. A thread that
    /// ends comes to its innermost cleanup handler.
    fn jump(&mut self, t: usize) -> Result<(), Stop> {
        self.idle.effect();
        self.threads[t].non_local = false;
        self.threads[t].cancelled_in = None;
        let named = self.threads[t].external_call().and_then(|call| {
            let jumps = call.name.contains("longjmp");
            let buffer = call.arguments.first().filter(|_| jumps).and_then(Value::scalar);
            buffer.and_then(Scalar::as_const).map(|buffer| buffer as u64)
        });
        let buffer = named.or_else(|| self.threads[t].cleanup_buffers.pop());
        let target = buffer.and_then(|b| self.threads[t].jump_buffers.get(&b).copied());
        let Some((serial, id)) = target else {
            return contradiction("jump to an unknown place");
        };
        loop {
            match self.threads[t].frames.last() {
                Some(Frame::Code(frame)) if frame.serial == serial => break,
                Some(Frame::Code(_)) => self.pop_code(t),
                Some(Frame::External(_)) => {
                    self.threads[t].frames.pop();
                }
                None => return contradiction("jump into a function that has returned"),
            }
        }
        let ty = self.resume_at(t, id);
        self.threads[t].advance();
        let value = self.take_value(t, ty)?;
        self.finish(t, value)
    }

    /// Puts the top frame back to an instruction; gives the instruction's type.
    fn resume_at(&mut self, t: usize, id: InstId) -> TypeId {
        self.threads[t].leave_region();
        let Some(frame) = self.threads[t].code_mut() else { return TypeId(0) };
        frame.next = id;
        let function = frame.info.function;
        if let Some(block) = function.block_of(id) {
            frame.block = block;
        }
        function.instructions.get(id.index()).map_or(TypeId(0), |inst| inst.ty)
    }

    /// The type of an operand of the current function.
    pub fn operand_type(&self, t: usize, operand: Operand) -> Option<TypeId> {
        let frame = self.threads[t].code()?;
        ir::name::operand_type(frame.module, frame.info.function, operand)
    }

    /// The next logged value, which stays.
    pub fn peek_value(&mut self, t: usize, ty: TypeId) -> Option<Value> {
        let module = self.module(t);
        let bytes = self.threads[t].peek_bytes(ir::plan::logged_bytes(module, ty))?;
        Some(crate::engine::decode_logged(module, ty, bytes))
    }
}
