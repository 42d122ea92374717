//! Which lines of a function use what others of its lines computed, by way of values and variables that no other
//! thread sees. The events of a run do not tell: they are about what threads share.

use crate::guards;
use crate::name;
use crate::stack::{StackObjects, copy_ends};
use crate::types::{
    Call, Callee, Function, InstId, InstKind, LocId, LocalVariable, Module, Operand,
};
use std::collections::BTreeSet;

/// Lines of one file, first and last, in the function that a person reads there.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The file, as the debug information names it.
    pub file: &'a str,
    /// The first line.
    pub first: u32,
    /// The last one.
    pub last: u32,
}

/// One line uses what another computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// Where it is computed.
    pub from: u32,
    /// Where it is used.
    pub to: u32,
    /// How.
    pub how: How,
}

/// How one line uses another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// By a value.
    Value,
    /// By a local variable that a call got the address of as its first argument: what `pthread_create` and the
    /// constructor of `std::thread` make is left there. Whether a call leaves anything depends on the call.
    Made,
    /// By a branch in the one that decides whether the other is reached.
    Decided,
}

/// The uses between different ones of these lines.
#[must_use]
pub fn uses(module: &Module, lines: Lines<'_>) -> Vec<Use> {
    let mut found = BTreeSet::new();
    for function in &module.functions {
        let places = Places::of(module, function, lines);
        if !places.is_on_one_line() {
            let stack = StackObjects::of(module, function);
            places.values(&mut found);
            places.variables(module, &stack, &mut found);
            places.branches(&mut found);
        }
    }
    found.into_iter().collect()
}

/// A function's line as it stands in the code of one instruction, and the call that it was inlined at.
type Place = (Option<LocId>, u32);

/// Which of the lines write what more than their function may see, or call something?
#[must_use]
pub fn acts(module: &Module, lines: Lines<'_>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    if lines.first > lines.last {
        return found;
    }
    for function in &module.functions {
        let places = Places::of(module, function, lines);
        let mut own = places.instructions().filter(|(id, _)| places.has_line(*id)).peekable();
        if own.peek().is_none() {
            continue;
        }
        let stack = StackObjects::of(module, function);
        let acts = |kind: &InstKind| match kind {
            InstKind::Store { address, .. } => stack.private_root(*address).is_none(),
            InstKind::AtomicRmw { .. } | InstKind::CmpXchg { .. } => true,
            _ => match copy_ends(module, kind) {
                Some((to, _)) => stack.private_root(to).is_none(),
                None => kind.as_call().is_some_and(|call| !is_intrinsic(module, call)),
            },
        };
        let own =
            own.filter(|(_, kind)| acts(kind)).filter_map(|(id, _)| places.of.get(id.index()));
        found.extend(own.flatten().map(|(_, line)| *line));
    }
    found
}

/// A line that uses what lines before it wrote to memory that more than their function may see, and that no variable of the
/// source holds: in the source it reads that memory again, and the compiler has kept the value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Again {
    /// The line.
    pub line: u32,
    /// What it reads, as the lines call it that wrote it.
    pub name: String,
}

/// The lines behind these that read again what these wrote.
#[must_use]
pub fn read_again(module: &Module, lines: Lines<'_>) -> BTreeSet<Again> {
    let mut found = BTreeSet::new();
    for function in &module.functions {
        let places = Places::of(module, function, Lines { last: u32::MAX, ..lines });
        let computed = |id: InstId| {
            let own = places.of.get(id.index()).into_iter().flatten();
            own.filter(|(_, line)| *line <= lines.last).map(|(at, _)| *at).collect::<BTreeSet<_>>()
        };
        let held = |id: InstId| {
            function.variables.iter().any(|variable| variable.value == Operand::Inst(id))
        };
        let mut stack = None;
        for (id, kind) in places.instructions() {
            let InstKind::Store { address, value: Operand::Inst(value), .. } = kind else {
                continue;
            };
            let calls = computed(*value);
            if calls.is_empty() || held(*value) {
                continue;
            }
            let stack = stack.get_or_insert_with(|| StackObjects::of(module, function));
            if stack.private_root(*address).is_some() {
                continue;
            }
            let Some(name) = name::access_path(module, function, id) else { continue };
            for user in places.users(*value, &held) {
                let own = places.of.get(user.index()).into_iter().flatten();
                let behind = own.filter(|(at, line)| *line > lines.last && calls.contains(at));
                found.extend(behind.map(|(_, line)| Again { line: *line, name: name.clone() }));
            }
        }
    }
    found
}

struct Places<'m> {
    function: &'m Function,
    /// By instruction: its lines among those asked for, one for each function inlined into another.
    of: Vec<Vec<Place>>,
}

impl<'m> Places<'m> {
    fn of(module: &Module, function: &'m Function, lines: Lines<'_>) -> Self {
        let of = function.instructions.iter().map(|instruction| {
            let mut found = Vec::new();
            let mut next = instruction.loc;
            while let Some(location) = next.and_then(|id| module.debug.locations.get(id.index())) {
                let scope = module.debug.scopes.get(location.scope.index());
                if scope.is_some_and(|scope| scope.file == lines.file)
                    && (lines.first..=lines.last).contains(&location.line)
                {
                    found.push((location.inlined_at, location.line));
                }
                next = location.inlined_at;
            }
            found
        });
        Self { function, of: of.collect() }
    }

    /// The instructions that use a value, also by way of what only passes it on; what a variable of the source holds is
    /// followed no further.
    fn users(&self, value: InstId, held: &dyn Fn(InstId) -> bool) -> BTreeSet<InstId> {
        let mut found = BTreeSet::new();
        let mut next = vec![value];
        while let Some(value) = next.pop() {
            for (id, kind) in self.instructions() {
                let mut uses = false;
                kind.for_each_operand(&mut |operand| uses |= operand == Operand::Inst(value));
                let passes = matches!(kind, InstKind::Phi { .. } | InstKind::Cast(..));
                if !uses || passes && held(id) {
                    continue;
                }
                if found.insert(id) && passes {
                    next.push(id);
                }
            }
        }
        found
    }

    fn has_line(&self, id: InstId) -> bool {
        self.of.get(id.index()).is_some_and(|of| !of.is_empty())
    }

    fn is_on_one_line(&self) -> bool {
        let mut all = self.of.iter().flatten();
        all.next().is_none_or(|first| all.all(|other| other == first))
    }

    /// Notes a use, where both instructions stand in one activation of a function.
    fn note(&self, from: InstId, to: InstId, how: How, found: &mut BTreeSet<Use>) {
        let lines = |id: InstId| self.of.get(id.index()).into_iter().flatten();
        for (one, from) in lines(from) {
            for (other, to) in lines(to) {
                if one == other && from != to {
                    found.insert(Use { from: *from, to: *to, how });
                }
            }
        }
    }

    fn instructions(&self) -> impl Iterator<Item = (InstId, &'m InstKind)> + use<'m> {
        let all = self.function.instructions.iter();
        all.zip((0..).map(InstId)).map(|(instruction, id)| (id, &instruction.kind))
    }

    fn values(&self, found: &mut BTreeSet<Use>) {
        for (id, kind) in self.instructions() {
            kind.for_each_operand(&mut |operand| {
                if let Operand::Inst(source) = operand
                    && !self.is_alloca(source)
                    && !self.is_shared_by_compiler(source)
                {
                    self.note(source, id, How::Value, found);
                }
            });
        }
    }

    /// Is it a load, or an address, that no variable of the source holds? Two lines that each say so have one in common
    /// where the compiler sees that it is the same. `this`, and where a member of an object lies, is no line's.
    fn is_shared_by_compiler(&self, id: InstId) -> bool {
        let instruction = self.function.instructions.get(id.index());
        let again = instruction.is_some_and(|one| {
            matches!(one.kind, InstKind::Load { .. } | InstKind::Gep { .. } | InstKind::Cast(..))
        });
        let mut variables = self.function.variables.iter();
        let holds = |variable: &LocalVariable| {
            variable.value == Operand::Inst(id) && variable.name != "this"
        };
        let member = instruction.is_some_and(
            |one| matches!(&one.kind, InstKind::Gep { terms, .. } if terms.is_empty()),
        );
        member || again && !variables.any(holds)
    }

    fn is_first_block(&self, id: InstId) -> bool {
        self.function.blocks.first().is_some_and(|block| (block.first..block.end).contains(&id))
    }

    fn is_alloca(&self, id: InstId) -> bool {
        let instruction = self.function.instructions.get(id.index());
        instruction.is_some_and(|one| matches!(one.kind, InstKind::Alloca { .. }))
    }

    fn variables(&self, module: &Module, stack: &StackObjects, found: &mut BTreeSet<Use>) {
        let mut written: Vec<(InstId, InstId)> = Vec::new();
        let mut read: Vec<(InstId, InstId)> = Vec::new();
        let mut made: Vec<(InstId, InstId)> = Vec::new();
        let mut touched: Vec<(InstId, InstId)> = Vec::new();
        for (id, kind) in self.instructions() {
            let private = |address| Some((stack.private_root(address)?, id));
            if let Some((to, from)) = copy_ends(module, kind) {
                written.extend(private(to));
                read.extend(private(from));
                touched.extend(stack.root(from).map(|alloca| (alloca, id)));
                continue;
            }
            match kind {
                // A parameter is put into its place by the compiler, before the first line.
                InstKind::Store { value: Operand::Param(_), .. } if self.is_first_block(id) => {}
                InstKind::Store { address, .. } => written.extend(private(*address)),
                InstKind::Load { address, .. } => {
                    read.extend(private(*address));
                    touched.extend(stack.root(*address).map(|alloca| (alloca, id)));
                }
                InstKind::AtomicRmw { address, .. } | InstKind::CmpXchg { address, .. } => {
                    written.extend(private(*address));
                    read.extend(private(*address));
                }
                _ => {
                    let Some(call) = kind.as_call().filter(|call| !is_intrinsic(module, call))
                    else {
                        continue;
                    };
                    let roots = || call.args.iter().map(|argument| stack.root(*argument));
                    made.extend(roots().next().flatten().map(|alloca| (alloca, id)));
                    touched.extend(roots().flatten().map(|alloca| (alloca, id)));
                }
            }
        }
        let mut pairs = |from: &[(InstId, InstId)], to: &[(InstId, InstId)], how: How| {
            for (alloca, source) in from {
                for (_, target) in to.iter().filter(|(other, _)| other == alloca) {
                    self.note(*source, *target, how, found);
                }
            }
        };
        pairs(&written, &read, How::Value);
        pairs(&made, &touched, How::Made);
    }

    /// What branches decide.
    fn branches(&self, found: &mut BTreeSet<Use>) {
        for (branch, decided) in guards::decided(self.function, &|id| self.has_line(*id)) {
            let blocks = decided.iter().filter_map(|block| self.function.blocks.get(block.index()));
            for id in blocks.flat_map(|block| block.instructions()) {
                self.note(branch, id, How::Decided, found);
            }
        }
    }
}

/// Marks where variables begin and end are calls as well.
fn is_intrinsic(module: &Module, call: &Call) -> bool {
    let Callee::Direct(id) = call.callee else { return false };
    module.functions.get(id.index()).is_some_and(|callee| callee.intrinsic)
}
