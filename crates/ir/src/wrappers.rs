//! Functions that do nothing but take or give back a lock, or wait for or announce something, which
//! their caller names: `my_lock(struct my_mutex *m)`, `Mutex::Lock`, `apr_thread_mutex_lock`. All of a
//! program's locks are taken on one line there and have one name, so people look at the calls.

use crate::effects;
use crate::types::{
    Call, Callee, CastOp, FuncId, Function, InstId, InstKind, LocId, LocalVariable, Module,
    Operand, Scope, ScopeId,
};

/// Longer functions do more than that.
const LONGEST: usize = 400;
/// Wrappers of wrappers are followed this far.
const DEEPEST: usize = 4;
/// Inlined calls are followed this far.
const DEEPEST_INLINED: usize = 64;
/// Addresses are followed through so many instructions.
const LONGEST_CHAIN: usize = 24;

/// What a wrapper does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Takes,
    Gives,
    Waits,
    Tells,
    /// Calls a virtual function of the object, which may do one of these.
    Virtual,
}

/// Where a wrapper has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The parameter that leads there, 0 being the first.
    pub parameter: usize,
    /// The place in bytes behind where the parameter points to.
    pub offset: i64,
    /// A pointer to the object lies there, and not the object itself.
    pub pointer: bool,
}

/// What a wrapper is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// The lock, or what is waited for or announced.
    pub object: Origin,
    /// The lock that a wait gives back, where that is its caller's, too.
    pub lock: Option<Origin>,
    /// Of the object a virtual function is called: what that is about lies behind, and it knows where.
    pub is_virtual: bool,
}

/// Where the functions are that a module only declares: the other modules of the program.
pub trait Bodies {
    /// The module that has the function's body, and the function there.
    fn body<'m>(&'m self, module: &'m Module, id: FuncId) -> Option<(&'m Module, &'m Function)>;
}

/// No other modules.
#[derive(Clone, Copy, Debug)]
pub struct NoBodies;

impl Bodies for NoBodies {
    fn body<'m>(&'m self, _: &'m Module, _: FuncId) -> Option<(&'m Module, &'m Function)> {
        None
    }
}

/// Where a wrapper has its object, if the function is one.
#[must_use]
pub fn wrapper(module: &Module, function: &Function, bodies: &dyn Bodies) -> Option<Wrapper> {
    wrapped(module, function, bodies, DEEPEST).map(|(_, object)| object)
}

fn wrapped(
    module: &Module,
    function: &Function,
    bodies: &dyn Bodies,
    depth: usize,
) -> Option<(Kind, Wrapper)> {
    let depth = depth.checked_sub(1)?;
    if function.instructions.len() > LONGEST || function.name == "main" {
        return None;
    }
    let mut found: Option<(Kind, Wrapper)> = None;
    let calls = function.instructions.iter().filter_map(|it| Some((it.kind.as_call()?, it.loc)));
    for (call, loc) in calls {
        let Callee::Direct(id) = call.callee else {
            if matches!(call.callee, Callee::Asm(..)) {
                continue;
            }
            let object = virtual_object(function, call)?;
            let one = (Kind::Virtual, Wrapper { object, lock: None, is_virtual: true });
            match found {
                None => found = Some(one),
                Some(known) if known == one => {}
                Some(_) => return None,
            }
            continue;
        };
        let callee = module.functions.get(id.index())?;
        // The lock that a condition variable for any kind of lock has for itself.
        let is_own_lock = is_for_any_lock(module, loc);
        let one = match (kind(&callee.name), body(module, id, bodies)) {
            (Some(Kind::Takes | Kind::Gives), _) if is_own_lock => continue,
            (Some(kind), _) => {
                let object = origin(function, *call.args.first()?)?;
                // A `unique_lock` is not the lock.
                let has_lock = kind == Kind::Waits && !callee.name.starts_with("_Z");
                let lock = call.args.get(1).filter(|_| has_lock);
                let lock = lock.and_then(|lock| origin(function, *lock));
                (kind, Wrapper { object, lock, is_virtual: false })
            }
            (None, None) => {
                // Of what nobody described it is not known whether it takes locks.
                let described = callee.intrinsic || effects::effect(&callee.name).is_some();
                if described && !is_of_threads(&callee.name) {
                    continue;
                }
                return None;
            }
            (None, Some((module, callee))) => match wrapped(module, callee, bodies, depth) {
                Some((Kind::Takes | Kind::Gives, _)) if is_own_lock => continue,
                Some((kind, inner)) => {
                    let object = passed(function, call, inner.object)?;
                    let lock = inner.lock.and_then(|lock| passed(function, call, lock));
                    (kind, Wrapper { object, lock, is_virtual: inner.is_virtual })
                }
                None if is_own_lock => continue,
                None if synchronises(module, callee, bodies, depth) => return None,
                None => continue,
            },
        };
        found = match found {
            None => Some(one),
            Some((kind, known)) if (kind, known.object) == (one.0, one.1.object) => {
                let lock = known.lock.filter(|lock| one.1.lock == Some(*lock));
                Some((kind, Wrapper { lock, ..known }))
            }
            Some(_) => return None,
        };
    }
    found.filter(|(kind, _)| *kind != Kind::Tells || !writes(function, None, |_| true))
}

/// Does it begin a thread, or wait for the end of one?
fn is_of_threads(name: &str) -> bool {
    const OWN: [&str; 5] =
        ["pthread_create", "pthread_join", "pthread_timedjoin_np", "thrd_create", "thrd_join"];
    OWN.contains(&name)
        || ["_ZNSt6thread", "_ZNSt3__16thread"].iter().any(|class| name.starts_with(class))
}

/// Does a function, where it is asked for, write to what is not its own? Who writes before it tells of it does more than
/// to tell. A local variable with the `object` in it is its own only where that is.
fn writes(
    function: &Function,
    object: Option<Operand>,
    within: impl Fn(Option<LocId>) -> bool,
) -> bool {
    let shared = object.and_then(|object| local(function, object));
    function.instructions.iter().any(|it| {
        let address = match it.kind {
            InstKind::Store { address, .. }
            | InstKind::AtomicRmw { address, .. }
            | InstKind::CmpXchg { address, .. } => address,
            _ => return false,
        };
        let local = local(function, address);
        within(it.loc) && (local.is_none() || local == shared)
    })
}

/// The local variable that an address lies in.
fn local(function: &Function, address: Operand) -> Option<InstId> {
    let mut address = address;
    for _ in 0..LONGEST_CHAIN {
        let Operand::Inst(id) = address else { return None };
        address = match &function.instructions.get(id.index())?.kind {
            InstKind::Alloca { .. } => return Some(id),
            InstKind::Gep { base, .. } => *base,
            InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, inner) => *inner,
            _ => return None,
        };
    }
    None
}

/// Is it in the code of libstdc++'s `condition_variable_any`, wherever that was inlined?
fn is_for_any_lock(module: &Module, loc: Option<LocId>) -> bool {
    let mut next = loc;
    for _ in 0..DEEPEST_INLINED {
        let location = next.and_then(|loc| module.debug.locations.get(loc.index()));
        let Some(location) = location else { return false };
        let scope = module.debug.scopes.get(location.scope.index());
        if scope.is_some_and(|scope| scope.file.ends_with("/condition_variable")) {
            return true;
        }
        next = location.inlined_at;
    }
    false
}

/// How many of the functions that were inlined around a call, innermost first, do nothing but what the call does:
/// wrappers, too, which the compiler put into their callers.
#[must_use]
pub fn inlined(module: &Module, function: &Function, call: InstId, bodies: &dyn Bodies) -> usize {
    let Some(instruction) = function.instructions.get(call.index()) else { return 0 };
    let Some(own) = instruction.kind.as_call() else { return 0 };
    // The lock that a condition variable for any kind of lock has for itself.
    let is_own_lock =
        |call: &Call, loc| !tells_or_waits(module, call) && is_for_any_lock(module, loc);
    if is_own_lock(own, instruction.loc) {
        return 0;
    }
    let Some(object) = object_of(module, own, bodies) else { return 0 };
    let levels = std::iter::successors(instruction.loc, |loc| called_at(module, Some(*loc)));
    let tells = does(module, own, bodies) == Some(Kind::Tells);
    let does_no_more = |loc: &LocId| {
        let Some(at) = called_at(module, Some(*loc)) else { return false };
        let mut calls =
            function.instructions.iter().filter_map(|it| Some((it.kind.as_call()?, it.loc)));
        is_given(module, function, *loc, object)
            && !(tells && writes(function, Some(object), |loc| is_within(module, loc, at)))
            && calls.all(|(other, loc)| {
                std::ptr::eq(own, other)
                    || !is_within(module, loc, at)
                    || is_own_lock(other, loc)
                    || is_no_more(module, own, other, bodies)
            })
    };
    levels.take(DEEPEST_INLINED).take_while(does_no_more).count()
}

/// What a call does with a lock and the like.
fn does(module: &Module, call: &Call, bodies: &dyn Bodies) -> Option<Kind> {
    let Callee::Direct(id) = call.callee else { return None };
    match body(module, id, bodies) {
        Some((module, callee)) => Some(wrapped(module, callee, bodies, DEEPEST)?.0),
        None => kind(&module.functions.get(id.index())?.name),
    }
}

/// What a call is about that takes a lock and the like.
fn object_of(module: &Module, call: &Call, bodies: &dyn Bodies) -> Option<Operand> {
    let parameter = match call.callee {
        Callee::Direct(id) => match body(module, id, bodies) {
            Some((module, callee)) => wrapped(module, callee, bodies, DEEPEST)?.1.object.parameter,
            None => 0,
        },
        Callee::Indirect(_) => 0,
        Callee::Asm(..) => return None,
    };
    call.args.get(parameter).copied()
}

/// Has the function that was inlined at a place a variable that leads to the object? Otherwise it knows that by itself,
/// and its caller has no name for it.
fn is_given(module: &Module, function: &Function, loc: LocId, object: Operand) -> bool {
    let scope_of = |id: ScopeId| module.debug.scopes.get(id.index());
    let Some(scope) =
        module.debug.locations.get(loc.index()).and_then(|location| scope_of(location.scope))
    else {
        return false;
    };
    let of_function = |other: &Scope| {
        (&other.file, &other.function, other.line) == (&scope.file, &scope.function, scope.line)
    };
    let mut way = vec![object];
    while let Some(&Operand::Inst(id)) = way.last()
        && way.len() < LONGEST_CHAIN
        && let Some(instruction) = function.instructions.get(id.index())
    {
        match &instruction.kind {
            InstKind::Gep { base: inner, .. }
            | InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, inner)
            | InstKind::Freeze(inner)
            | InstKind::Load { address: inner, .. } => way.push(*inner),
            _ => break,
        }
    }
    let leads = |variable: &LocalVariable| way.contains(&variable.value);
    let mut variables = function.variables.iter();
    variables.any(|it| it.scope.and_then(scope_of).is_some_and(of_function) && leads(it))
}

/// Is it a call that is about a condition variable?
fn tells_or_waits(module: &Module, call: &Call) -> bool {
    let Callee::Direct(id) = call.callee else { return false };
    let name = module.functions.get(id.index()).map(|callee| &callee.name);
    name.is_some_and(|name| matches!(kind(name), Some(Kind::Tells | Kind::Waits)))
}

/// Where the function was called that a place is in, if it was inlined there.
fn called_at(module: &Module, loc: Option<LocId>) -> Option<LocId> {
    module.debug.locations.get(loc?.index())?.inlined_at
}

/// Is a place in what was inlined at another one?
fn is_within(module: &Module, loc: Option<LocId>, at: LocId) -> bool {
    let outwards =
        std::iter::successors(called_at(module, loc), |loc| called_at(module, Some(*loc)));
    outwards.take(DEEPEST_INLINED).any(|outer| outer == at)
}

/// Has a call that stands beside one that takes a lock and the like nothing to do with locks, or is it about the same one?
fn is_no_more(module: &Module, own: &Call, other: &Call, bodies: &dyn Bodies) -> bool {
    let same_object = own.args.first() == other.args.first();
    let id = match &other.callee {
        Callee::Asm(..) => return true,
        Callee::Direct(id) => *id,
        _ => return same_object && !matches!(own.callee, Callee::Direct(_) | Callee::Asm(..)),
    };
    let Some(callee) = module.functions.get(id.index()) else { return false };
    let same_call = || matches!(own.callee, Callee::Direct(other) if other == id);
    match (kind(&callee.name), body(module, id, bodies)) {
        (Some(does), _) => {
            let own = match own.callee {
                Callee::Direct(id) => module.functions.get(id.index()),
                _ => None,
            };
            same_object && own.and_then(|own| kind(&own.name)) == Some(does)
        }
        (None, None) => {
            let described = callee.intrinsic || effects::effect(&callee.name).is_some();
            described && !is_of_threads(&callee.name)
        }
        (None, Some((module, callee))) => match wrapped(module, callee, bodies, DEEPEST) {
            Some(_) => same_call() && own.args == other.args,
            None => !synchronises(module, callee, bodies, DEEPEST),
        },
    }
}

/// The body of what a module calls, wherever it is.
fn body<'m>(
    module: &'m Module,
    id: FuncId,
    bodies: &'m dyn Bodies,
) -> Option<(&'m Module, &'m Function)> {
    let here = module.functions.get(id.index())?;
    match here.is_declaration() {
        // The compiler's own have none, and what the tables say of a library's holds for all of them.
        true if here.intrinsic || effects::effect(&here.name).is_some() => None,
        true => bodies.body(module, id),
        false => Some((module, here)),
    }
}

/// Where the outermost of some wrappers that call each other has the object of the innermost one, which comes first:
/// what a virtual function is about is told by the function that was called.
#[must_use]
pub fn behind(wrappers: &[Wrapper]) -> Option<Origin> {
    let mut found: Option<Origin> = None;
    for wrapper in wrappers {
        found = Some(match found {
            Some(inner) if wrapper.is_virtual => further(wrapper.object, inner)?,
            _ => wrapper.object,
        });
    }
    found
}

/// Where a function that calls a wrapper has the wrapper's object.
fn passed(function: &Function, call: &Call, inner: Origin) -> Option<Origin> {
    further(origin(function, *call.args.get(inner.parameter)?)?, inner)
}

/// What lies at a place of what another place leads to.
fn further(outer: Origin, inner: Origin) -> Option<Origin> {
    match (outer.pointer, inner.pointer) {
        (true, true) => None,
        (true, false) => Some(outer),
        (false, pointer) => {
            Some(Origin { offset: outer.offset.checked_add(inner.offset)?, pointer, ..outer })
        }
    }
}

/// Does a function have to do with locks, as far as is known?
fn synchronises(module: &Module, function: &Function, bodies: &dyn Bodies, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    function.instructions.iter().filter_map(|it| it.kind.as_call()).any(|call| {
        let Callee::Direct(id) = call.callee else {
            return !matches!(call.callee, Callee::Asm(..));
        };
        let Some(callee) = module.functions.get(id.index()) else { return true };
        match body(module, id, bodies) {
            None => {
                let known = callee.intrinsic || effects::effect(&callee.name).is_some();
                kind(&callee.name).is_some() || !known
            }
            Some((module, callee)) => synchronises(module, callee, bodies, depth),
        }
    })
}

/// The object of which a call calls a virtual function: the table that the object points to says which.
fn virtual_object(function: &Function, call: &Call) -> Option<Origin> {
    let Callee::Indirect(callee) = call.callee else { return None };
    let object = origin(function, *call.args.first()?)?;
    let loaded = |operand: Operand| {
        let mut operand = operand;
        for _ in 0..LONGEST_CHAIN {
            let Operand::Inst(id) = operand else { return None };
            operand = match &function.instructions.get(id.index())?.kind {
                InstKind::Load { address, .. } => return Some(*address),
                InstKind::Gep { base, .. } => *base,
                InstKind::Cast(CastOp::BitCast, inner) => *inner,
                _ => return None,
            };
        }
        None
    };
    let table = loaded(loaded(callee)?)?;
    (origin(function, table) == Some(object)).then_some(object)
}

/// The parameter that an address comes from.
fn origin(function: &Function, address: Operand) -> Option<Origin> {
    traced(function, address, &|address| {
        kept_in(function, address).or_else(|| kept_behind(function, address))
    })
}

/// The same, with what is known of the value that a load finds.
fn traced(
    function: &Function,
    address: Operand,
    kept: &dyn Fn(Operand) -> Option<Operand>,
) -> Option<Origin> {
    let mut address = address;
    let mut found = Origin { parameter: 0, offset: 0, pointer: false };
    for _ in 0..LONGEST_CHAIN {
        let id = match address {
            Operand::Param(parameter) => {
                return Some(Origin { parameter: usize::try_from(parameter).ok()?, ..found });
            }
            Operand::Inst(id) => id,
            Operand::Const(_) | Operand::Other => return None,
        };
        address = match &function.instructions.get(id.index())?.kind {
            InstKind::Gep { base, offset, terms, .. } if terms.is_empty() => {
                found.offset = found.offset.checked_add(*offset)?;
                *base
            }
            InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, inner)
            | InstKind::Freeze(inner) => *inner,
            InstKind::Load { address, .. } => match kept(*address) {
                Some(value) => value,
                None if found.pointer => return None,
                None => {
                    found = Origin { offset: 0, pointer: true, ..found };
                    *address
                }
            },
            _ => return None,
        };
    }
    None
}

/// What is kept in a local variable that is written once.
fn kept_in(function: &Function, address: Operand) -> Option<Operand> {
    let Operand::Inst(id) = address else { return None };
    let local = function.instructions.get(id.index())?;
    if !matches!(local.kind, InstKind::Alloca { .. }) {
        return None;
    }
    let mut values = function.instructions.iter().filter_map(|it| match it.kind {
        InstKind::Store { address: to, value, .. } if to == address => Some(value),
        _ => None,
    });
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// What is kept in a member that is written once, as a guard's constructor does with the lock that it takes then.
fn kept_behind(function: &Function, address: Operand) -> Option<Operand> {
    let place = |address| traced(function, address, &|address| kept_in(function, address));
    let member = place(address)?;
    let mut values = function.instructions.iter().filter_map(|it| match it.kind {
        InstKind::Store { address: to, value, .. } if place(to) == Some(member) => Some(value),
        _ => None,
    });
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// What a function of the C or C++ library does with the object that its first argument points to.
fn kind(name: &str) -> Option<Kind> {
    if name.contains("condition_variable") {
        return of_condition_variable(name);
    }
    const LOCKS: [&str; 4] = ["pthread_mutex_", "pthread_rwlock_", "pthread_spin_", "mtx_"];
    const CONDITIONS: [&str; 2] = ["pthread_cond_", "cnd_"];
    let behind = |heads: &[&str]| heads.iter().find_map(|head| name.strip_prefix(head));
    match name {
        "sem_wait" | "sem_trywait" | "sem_timedwait" | "sem_clockwait" => return Some(Kind::Takes),
        "sem_post" => return Some(Kind::Gives),
        _ => {}
    }
    match (behind(&LOCKS), behind(&CONDITIONS)) {
        (Some(rest), _) if rest.ends_with("unlock") => Some(Kind::Gives),
        (Some(rest), _) if rest.ends_with("lock") => Some(Kind::Takes),
        (_, Some(rest)) if rest.ends_with("wait") => Some(Kind::Waits),
        (_, Some("signal" | "broadcast")) => Some(Kind::Tells),
        _ => None,
    }
}

/// The same of the C++ library's condition variables.
fn of_condition_variable(name: &str) -> Option<Kind> {
    let readable = effects::readable(name)?;
    let (class, member) = readable.rsplit_once("::")?;
    match (class, member) {
        ("std::condition_variable" | "std::__1::condition_variable", "wait") => Some(Kind::Waits),
        (
            "std::condition_variable" | "std::__1::condition_variable",
            "notify_one" | "notify_all",
        ) => Some(Kind::Tells),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_what_they_do() {
        assert_eq!(kind("pthread_mutex_timedlock"), Some(Kind::Takes));
        assert_eq!(kind("pthread_rwlock_wrlock"), Some(Kind::Takes));
        assert_eq!(kind("pthread_spin_unlock"), Some(Kind::Gives));
        assert_eq!(kind("cnd_timedwait"), Some(Kind::Waits));
        assert_eq!(kind("pthread_cond_broadcast"), Some(Kind::Tells));
        for other in ["pthread_mutex_init", "pthread_cond_destroy", "sem_init", "flock"] {
            assert_eq!(kind(other), None, "{other}");
        }
    }
}
