//! The recorded process's modules: who is at which address, what globals hold at the start, and
//! the logging plan of each function.

use crate::continued::{self, NO_BRANCH};
use crate::eval;
use crate::memory::MemoryByte;
use crate::plain::{self, Marks};
use crate::recording::{RecordedModule, Recording};
use crate::report::SymexError;
use crate::tight::Tight;
use crate::value::Value;
use ir::loops::Loops;
use ir::plan::FunctionPlan;
use ir::types::{
    BlockId, ConstId, ConstantKind, FuncId, Function, GlobalId, InstId, InstKind, Module, Operand,
    Type, TypeId,
};
use ir::wrappers::{self, Bodies, Wrapper};
use model::ExprPool;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Code addresses that were not recorded, and block addresses, get made-up ones from here up.
pub(crate) const FAKE_CODE: u64 = 0x5f00_0000_0000_0000;
/// One past the last made-up code address.
pub(crate) const FAKE_CODE_END: u64 = 0x5f80_0000_0000_0000;

/// A function with a body, and its plan.
pub(crate) struct FunctionInfo<'r> {
    pub module: usize,
    pub id: FuncId,
    pub function: &'r Function,
    pub plan: FunctionPlan,
    /// Per instruction: what it may be.
    marks: Vec<Marks>,
    /// Per block: in how many inlined calls the branch stands that ends it.
    branch_levels: Vec<u16>,
    /// Per instruction: the site of the gate before it.
    gates: Vec<Option<Box<str>>>,
    loops: OnceCell<Loops>,
    /// By block.
    tight: OnceCell<Vec<OnceCell<Option<Box<Tight>>>>>,
    wrapper: OnceCell<Option<Wrapper>>,
}

impl FunctionInfo<'_> {
    /// Where the object is of a function that does nothing but take a lock and the like.
    pub fn wrapper(&self, module: &Module, image: &Image<'_>) -> Option<Wrapper> {
        *self.wrapper.get_or_init(|| wrappers::wrapper(module, self.function, image))
    }

    /// The site of the gate before an instruction.
    pub fn gate(&self, id: InstId) -> Option<&str> {
        self.gates.get(id.index())?.as_deref()
    }

    /// What an instruction may be.
    pub fn marks(&self, id: InstId) -> Marks {
        self.marks.get(id.index()).copied().unwrap_or_default()
    }

    /// In how many inlined calls the branch stands that ends a block.
    pub fn branch_level(&self, block: BlockId) -> u16 {
        self.branch_levels.get(block.index()).copied().unwrap_or(NO_BRANCH)
    }

    /// The function's loops.
    pub fn loops(&self) -> &Loops {
        self.loops.get_or_init(|| Loops::of(self.function))
    }

    /// How to walk the loop that begins at a block in one piece.
    pub fn tight(&self, module: &Module, header: BlockId) -> Option<&Tight> {
        let body = self.loops().at(header)?;
        let count = self.function.blocks.len();
        let all = self.tight.get_or_init(|| (0..count).map(|_| OnceCell::new()).collect());
        let made = all.get(header.index())?;
        made.get_or_init(|| Tight::of(module, self, body).map(Box::new)).as_deref()
    }
}

/// The values of constants that were asked for, by module.
#[derive(Default)]
pub(crate) struct Constants {
    modules: Vec<Vec<Option<Value>>>,
}

impl Constants {
    /// The value of a constant of a module.
    pub fn value(&mut self, image: &Image<'_>, module: usize, id: ConstId) -> Value {
        let modules = &mut self.modules;
        if modules.len() <= module {
            modules.resize_with(module + 1, Vec::new);
        }
        let values = &mut modules[module];
        if values.len() <= id.index() {
            values.resize(id.index() + 1, None);
        }
        let value = &mut values[id.index()];
        let new = || image.constant_value(&mut ExprPool::default(), module, id);
        value.get_or_insert_with(new).clone()
    }
}

/// A byte of libc that is not 0 until the first thread is created. libstdc++ counts references
/// without atomic instructions until then.
const SINGLE_THREADED: &str = "__libc_single_threaded";

/// A global variable that has an initial value here.
struct InitialRegion {
    start: u64,
    size: u64,
    module: usize,
    global: GlobalId,
    bytes: OnceCell<Option<Vec<Option<u8>>>>,
}

/// See the module.
pub(crate) struct Image<'r> {
    recording: &'r Recording,
    functions: Vec<Vec<OnceCell<FunctionInfo<'r>>>>,
    by_address: FxHashMap<u64, (usize, FuncId)>,
    /// First function number to module.
    numbers: BTreeMap<u32, usize>,
    /// Sorted by start.
    globals: Vec<InitialRegion>,
    /// Where globals are that some module declares: start to size.
    declared: BTreeMap<u64, u64>,
    /// The same by name.
    declared_names: FxHashMap<&'r str, (u64, u64)>,
    /// Lowest and one past highest address of a recorded global.
    span: (u64, u64),
}

impl Bodies for Image<'_> {
    fn body<'m>(&'m self, module: &'m Module, id: FuncId) -> Option<(&'m Module, &'m Function)> {
        let mut modules = self.recording.modules.iter();
        let index = modules.position(|recorded| std::ptr::eq(&raw const recorded.ir, module))?;
        let (index, id) = self.by_address(self.function_address(index, id))?;
        let module = self.module(index);
        let function = module.functions.get(id.index())?;
        (!function.is_declaration()).then_some((module, function))
    }
}

impl<'r> Image<'r> {
    pub fn new(recording: &'r Recording) -> Result<Self, SymexError> {
        if recording.modules.is_empty() {
            return Err(SymexError::NoModules);
        }
        let mut image = Self {
            recording,
            functions: Vec::new(),
            by_address: FxHashMap::default(),
            numbers: BTreeMap::new(),
            globals: Vec::new(),
            declared: BTreeMap::new(),
            declared_names: FxHashMap::default(),
            span: (u64::MAX, 0),
        };
        for (index, module) in recording.modules.iter().enumerate() {
            image.add(index, module);
        }
        image.globals.sort_by_key(|region| (region.start, region.module));
        image.globals.dedup_by_key(|region| region.start);
        Ok(image)
    }

    fn add(&mut self, index: usize, module: &'r RecordedModule) {
        self.numbers.insert(module.base, index);
        let cells = module.ir.functions.iter().map(|_| OnceCell::new()).collect();
        self.functions.push(cells);
        for (i, function) in module.ir.functions.iter().enumerate() {
            let address = module.functions.get(i).copied().unwrap_or(0);
            if address == 0 {
                continue;
            }
            let id = FuncId(i as u32);
            let known = self.by_address.contains_key(&address);
            if !known || !function.is_declaration() {
                self.by_address.insert(address, (index, id));
            }
        }
        for (i, global) in module.ir.globals.iter().enumerate() {
            let start = module.globals.get(i).copied().unwrap_or(0);
            if start == 0 || global.size == 0 {
                continue;
            }
            if global.init.is_none() {
                self.declared.insert(start, global.size);
                self.declared_names.insert(&global.name, (start, global.size));
                continue;
            }
            self.span.0 = self.span.0.min(start);
            self.span.1 = self.span.1.max(start.saturating_add(global.size));
            self.globals.push(InitialRegion {
                start,
                size: global.size,
                module: index,
                global: GlobalId(i as u32),
                bytes: OnceCell::new(),
            });
        }
    }

    pub fn module(&self, index: usize) -> &'r Module {
        &self.recording.modules[index].ir
    }

    /// The function with a process-wide number.
    pub fn by_number(&self, number: u32) -> Option<(usize, FuncId)> {
        let (&base, &module) = self.numbers.range(..=number).next_back()?;
        let id = FuncId(number - base);
        self.module(module).functions.get(id.index())?;
        Some((module, id))
    }

    /// The function at an address, preferably one with a body.
    pub fn by_address(&self, address: u64) -> Option<(usize, FuncId)> {
        self.by_address.get(&address).copied()
    }

    /// The address of a function; made up when it was not recorded. A weak function that nobody
    /// defines has none: 0.
    pub fn function_address(&self, module: usize, id: FuncId) -> u64 {
        let recorded = self.recording.modules[module].functions.get(id.index()).copied();
        let function = self.module(module).functions.get(id.index());
        match recorded {
            Some(address) if address != 0 => address,
            Some(_) if function.is_some_and(|f| f.is_declaration() && !f.intrinsic) => 0,
            _ => FAKE_CODE + ((module as u64) << 40) + (u64::from(id.0) << 20),
        }
    }

    /// A made-up address for a block.
    pub fn block_address(module: usize, id: FuncId, block: u32) -> u64 {
        FAKE_CODE + ((module as u64) << 40) + (u64::from(id.0) << 20) + u64::from(block) + 1
    }

    /// Where libc's `__libc_single_threaded` is, if a module uses it.
    pub fn single_threaded(&self) -> Option<u64> {
        self.variable(SINGLE_THREADED).map(|(start, _)| start)
    }

    /// The recorded address of a global variable; 0 where unknown.
    pub fn global_address(&self, module: usize, id: GlobalId) -> u64 {
        self.recording.modules[module].globals.get(id.index()).copied().unwrap_or(0)
    }

    /// The body of a function; `None` for a declaration.
    pub fn info(&self, module: usize, id: FuncId) -> Option<&FunctionInfo<'r>> {
        let function = self.module(module).functions.get(id.index())?;
        if function.is_declaration() {
            return None;
        }
        let cell = self.functions.get(module)?.get(id.index())?;
        Some(cell.get_or_init(|| {
            let plan = ir::plan::plan(self.module(module), function);
            let mut gates = vec![None; function.instructions.len()];
            for gate in ir::gates::gates(self.module(module), function) {
                if let Some(slot) = gates.get_mut(gate.instruction.index()) {
                    *slot = Some(gate.site.into_boxed_str());
                }
            }
            let has_gate = |id: InstId| gates.get(id.index()).is_some_and(Option::is_some);
            let marks = plain::marks(self.module(module), function, &plan, has_gate);
            let (loops, tight, wrapper) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
            let branch_levels = continued::branch_levels(self.module(module), function);
            FunctionInfo {
                module,
                id,
                function,
                plan,
                marks,
                branch_levels,
                gates,
                loops,
                tight,
                wrapper,
            }
        }))
    }

    /// The global variable that holds an address, and the offset in it.
    pub fn global_at(&self, address: u64) -> Option<(usize, GlobalId, u64)> {
        if address < self.span.0 || address >= self.span.1 {
            return None;
        }
        let end = self.globals.partition_point(|region| region.start <= address);
        let region = self.globals.get(end.checked_sub(1)?)?;
        let offset = address - region.start;
        (offset < region.size).then_some((region.module, region.global, offset))
    }

    /// Where a variable lies that no instrumented module defines, and its size.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let found = self.declared_names.get(name).copied();
        found.filter(|&(address, _)| self.global_at(address).is_none())
    }

    /// Does the address lie in a global variable that no instrumented module defines?
    pub fn is_foreign_global(&self, address: u64) -> bool {
        let found = self.declared.range(..=address).next_back();
        found.is_some_and(|(start, size)| address - start < *size)
            && self.global_at(address).is_none()
    }

    /// Is the address within the span of the recorded globals?
    pub fn in_globals(&self, address: u64) -> bool {
        address >= self.span.0 && address < self.span.1
    }

    /// The address ranges of the globals, sorted.
    pub fn global_ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.globals.iter().map(|region| (region.start, region.start + region.size))
    }

    /// Calls `set` with the offset from `base`, and the value, of every byte of
    /// `base..base + length` that a global's initialiser defines.
    pub fn initial_bytes(&self, base: u64, length: u64, set: &mut dyn FnMut(u64, MemoryByte)) {
        let end = base.saturating_add(length);
        if end <= self.span.0 || base >= self.span.1 {
            return;
        }
        let first = self.globals.partition_point(|region| region.start + region.size <= base);
        for region in self.globals[first..].iter().take_while(|region| region.start < end) {
            let from = base.max(region.start);
            let to = end.min(region.start + region.size);
            let bytes = region.bytes.get_or_init(|| self.render(region));
            for address in from..to {
                let byte = match bytes {
                    None => MemoryByte::Const(0),
                    Some(bytes) => match bytes.get((address - region.start) as usize) {
                        Some(Some(byte)) => MemoryByte::Const(*byte),
                        Some(None) => MemoryByte::Unknown,
                        None => MemoryByte::Const(0),
                    },
                };
                set(address - base, byte);
            }
        }
    }

    /// The bytes of an initialiser; `None` for all zero.
    fn render(&self, region: &InitialRegion) -> Option<Vec<Option<u8>>> {
        let module = self.module(region.module);
        let init = module.globals.get(region.global.index())?.init?;
        self.render_constant(region.module, init, region.size)
    }

    /// The bytes of a constant, cut or padded with zeros to `size`; `None` for all zero.
    pub fn render_constant(
        &self,
        module: usize,
        init: ConstId,
        size: u64,
    ) -> Option<Vec<Option<u8>>> {
        let kind = &self.module(module).constants.get(init.index())?.kind;
        if matches!(kind, ConstantKind::Zero | ConstantKind::Null | ConstantKind::Undef) {
            return None;
        }
        let mut bytes = vec![Some(0); usize::try_from(size).unwrap_or(0)];
        self.render_into(module, init, 0, &mut bytes);
        Some(bytes)
    }

    fn render_into(&self, m: usize, id: ConstId, at: u64, out: &mut [Option<u8>]) {
        let module = self.module(m);
        let Some(constant) = module.constants.get(id.index()) else { return };
        let mut put = |at: u64, byte: Option<u8>| {
            if let Some(slot) = usize::try_from(at).ok().and_then(|at| out.get_mut(at)) {
                *slot = byte;
            }
        };
        match &constant.kind {
            ConstantKind::Zero | ConstantKind::Null | ConstantKind::Undef => {}
            ConstantKind::Bytes(bytes) => {
                for (i, &byte) in bytes.iter().enumerate() {
                    put(at + i as u64, Some(byte));
                }
            }
            ConstantKind::Int(words) | ConstantKind::Float(words) => {
                let bytes = words.iter().flat_map(|word| word.to_le_bytes());
                for (i, byte) in bytes.take(module.store_size(constant.ty) as usize).enumerate() {
                    put(at + i as u64, Some(byte));
                }
            }
            ConstantKind::Aggregate(elements) => {
                let offsets = element_offsets(module, constant.ty, elements.len());
                for (&element, offset) in elements.iter().zip(offsets) {
                    self.render_into(m, element, at + offset, out);
                }
            }
            _ => {
                let mut pool = ExprPool::default();
                let value = self.constant_value(&mut pool, m, id);
                let word = value.scalar().and_then(|scalar| scalar.as_const());
                for i in 0..module.store_size(constant.ty).min(16) {
                    put(at + i, word.map(|word| (word >> (8 * i)) as u8));
                }
            }
        }
    }

    /// The value of a constant. Thread-local globals have no one address: 0 here.
    pub fn constant_value(&self, pool: &mut ExprPool, m: usize, id: ConstId) -> Value {
        let module = self.module(m);
        let Some(constant) = module.constants.get(id.index()) else { return Value::Absent };
        match &constant.kind {
            ConstantKind::Int(words) | ConstantKind::Float(words) => {
                match module.scalar_bits(constant.ty) {
                    Some(bits @ 1..=128) => Value::constant(bits, join_words(words)),
                    _ => Value::Absent,
                }
            }
            ConstantKind::Null | ConstantKind::Zero => eval::zero(module, constant.ty),
            // What the machine had there only the log knows.
            ConstantKind::Undef => eval::undefined(module, constant.ty),
            ConstantKind::Aggregate(elements) => Value::aggregate(
                elements.iter().map(|&id| self.constant_value(pool, m, id)).collect(),
            ),
            ConstantKind::Bytes(bytes) => bytes_value(module, constant.ty, bytes),
            ConstantKind::Global(id, offset) => {
                let address = match self.global_address(m, *id) {
                    0 => 0,
                    address => address.wrapping_add_signed(*offset),
                };
                Value::constant(64, u128::from(address))
            }
            ConstantKind::Function(id, offset) => {
                let address = self.function_address(m, *id).wrapping_add_signed(*offset);
                Value::constant(64, u128::from(address))
            }
            ConstantKind::BlockAddress(id, block) => {
                Value::constant(64, u128::from(Self::block_address(m, *id, block.0)))
            }
            ConstantKind::Expression(kind) => self.expression(pool, m, kind, constant.ty),
            ConstantKind::Unknown(_) => Value::Absent,
        }
    }

    fn expression(&self, pool: &mut ExprPool, m: usize, kind: &InstKind, ty: TypeId) -> Value {
        let module = self.module(m);
        let mut scratch = ExprPool::default();
        let mut get = |operand| match operand {
            Operand::Const(id) => self.constant_value(&mut scratch, m, id),
            _ => Value::Absent,
        };
        eval::evaluate(pool, module, kind, ty, &mut get).unwrap_or_default()
    }
}

fn join_words(words: &[u64]) -> u128 {
    words.iter().take(2).rev().fold(0, |value, &word| (value << 64) | u128::from(word))
}

/// An array or vector constant that is stored as bytes.
fn bytes_value(module: &Module, ty: TypeId, bytes: &[u8]) -> Value {
    let (Type::Array { element, .. } | Type::Vector { element, .. }) = module.ty(ty) else {
        return Value::Absent;
    };
    let (size, bits) = (module.size_of(*element), module.scalar_bits(*element));
    let (Ok(size @ 1..), Some(bits @ 1..=128)) = (usize::try_from(size), bits) else {
        return Value::Absent;
    };
    let element = |chunk: &[u8]| {
        let value = chunk.iter().rev().fold(0u128, |value, &b| (value << 8) | u128::from(b));
        Value::constant(bits, value)
    };
    Value::aggregate(bytes.chunks(size).map(element).collect())
}

/// The offsets of the first `count` elements of a struct, array or vector.
pub(crate) fn element_offsets(module: &Module, ty: TypeId, count: usize) -> Vec<u64> {
    match module.ty(ty) {
        Type::Struct { offsets, .. } => offsets.clone(),
        Type::Array { element, .. } | Type::Vector { element, .. } => {
            let size = module.size_of(*element);
            (0..count as u64).map(|i| i * size).collect()
        }
        _ => Vec::new(),
    }
}
