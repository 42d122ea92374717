//! What is logged, for the flows that decide it.

use crate::common::{c, cpp, function, instructions, loads};
use ir::plan::{FunctionPlan, logged_bytes, plan};
use ir::regions::{REGION_BITS, choice, ends_region};
use ir::types::{Function, InstId, InstKind, Module, Ordering, Type, TypeId};
use std::collections::BTreeSet;

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

fn planned(module: &Module, name: &str) -> FunctionPlan {
    plan(module, function(module, name))
}

/// The logged loads, as text, so that a failure says what was logged.
fn logged_loads(module: &Module, name: &str) -> Vec<String> {
    let function = function(module, name);
    let plan = plan(module, function);
    loads(function)
        .into_iter()
        .filter(|id| plan.values.contains(id))
        .map(|id| ir::dump::dump_instruction(module, id, &function.instructions[id.index()]))
        .map(|line| line.split_once(": ").expect("numbered").1.to_owned())
        .map(|line| line.split(" ;").next().expect("some").to_owned())
        .collect()
}

fn calls_of(module: &Module, function: &Function, name: &str) -> BTreeSet<InstId> {
    instructions(function, |kind| {
        kind.as_call().and_then(|call| call.target(module)).is_some_and(|f| f.name == name)
    })
    .into_iter()
    .collect()
}

#[test]
fn an_index_is_logged_and_a_value_that_is_only_computed_with_is_not() {
    let source = "int where, value, table[8]; int out;
        void f(void) { table[where] = value; out = value * 2; }";
    for level in LEVELS {
        let module = c(level, source);
        assert_eq!(logged_loads(&module, "f"), ["i32 = load @where"], "{level}");
    }
}

#[test]
fn values_flow_to_addresses_through_locals_arithmetic_and_choices() {
    let source = "int a, b, c, more, table[64];
        int sink;
        void f(void) {
            int i = a; int j = b & 7; int k = i > 3 ? j + 1 : j;
            if (more) k += 2;
            int copy = k; table[copy] = 1; sink = c;
        }";
    for level in LEVELS {
        let module = c(level, source);
        let logged: BTreeSet<String> = logged_loads(&module, "f").into_iter().collect();
        // At -O0 the conditions are branches, which the path stream tells; above, they select
        // between values, and then they are part of the address.
        let expected: &[&str] = match level {
            "-O0" => &["i32 = load @b"],
            _ => &["i32 = load @a", "i32 = load @b", "i32 = load @more"],
        };
        let expected = expected.iter().map(|&load| load.to_owned()).collect();
        assert_eq!(logged, expected, "{level}\n{}", ir::dump::dump(&module));
    }
}

#[test]
fn pointers_are_always_logged_and_floats_that_are_copied_never() {
    let source = "int *p; double d; int *q; double e;
        void f(void) { q = p; e = d; }";
    for level in LEVELS {
        let module = c(level, source);
        assert_eq!(logged_loads(&module, "f"), ["ptr = load @p"], "{level}");
    }
}

/// A number of which an index or an argument is made is needed as an integer would be; one that is passed on as it is, is
/// logged where it arrives, and one that only decides a branch follows from the path.
#[test]
fn floats_are_logged_where_integers_that_feed_are_made_of_them() {
    let source = "double where, sum, passed, limit; float scale; int table[64], out; void take(long, double);
        void f(void) {
            double half = where / 2; table[(int)(half * scale)] = 1; take((long)sum, passed);
            if (limit > 1) out = 1;
        }";
    for level in LEVELS {
        let module = c(level, source);
        let logged: BTreeSet<String> = logged_loads(&module, "f").into_iter().collect();
        let expected = ["double = load @where", "single = load @scale", "double = load @sum"];
        assert_eq!(logged, expected.map(str::to_owned).into(), "{level}");
    }
}

#[test]
fn lengths_arguments_and_results_are_logged() {
    let source = "#include <string.h>
        void take(int); unsigned long length; int argument, result; char from[64], to[64];
        int f(void) { memcpy(to, from, length); take(argument); return result; }";
    for level in LEVELS {
        let module = c(level, source);
        let expected = ["i64 = load @length", "i32 = load @argument", "i32 = load @result"];
        assert_eq!(logged_loads(&module, "f"), expected, "{level}");
    }
}

#[test]
fn loads_from_private_stack_objects_are_not_logged_and_from_escaping_ones_are() {
    let source = "void take(int *); int table[8];
        void f(int i) { int kept = i, given = i; take(&given); table[kept] = 1; table[given] = 2; }";
    let module = c("-O0", source);
    let f = function(&module, "f");
    let plan = plan(&module, f);
    let allocas = instructions(f, |kind| matches!(kind, InstKind::Alloca { .. }));
    let name = |id: &InstId| {
        f.variables
            .iter()
            .find(|variable| variable.value == ir::types::Operand::Inst(*id))
            .map(|variable| variable.name.as_str())
    };
    let logged: Vec<_> = allocas.iter().filter(|id| plan.values.contains(id)).map(name).collect();
    assert_eq!(logged, [Some("given")]);
    let given = allocas.iter().find(|id| name(id) == Some("given")).expect("given");
    assert_eq!(logged_loads(&module, "f"), [format!("i32 = load {given}")]);
}

#[test]
fn stack_objects_with_variable_indices_or_copies_log_their_address() {
    let source = "#include <string.h>
        struct s { int index; int rest[20]; }; struct s shared; int table[8];
        int f(int i) { int local[8]; for (int k = 0; k < 8; k++) local[k] = k; return local[i]; }
        void g(void) { struct s copy = shared; table[copy.index] = 1; }
        int h(void) { int local[2]; local[0] = 1; local[1] = 2; return local[0]; }";
    let module = c("-O0", source);
    let logged = |name: &str| {
        let f = function(&module, name);
        let plan = plan(&module, f);
        let allocas = instructions(f, |kind| match kind {
            InstKind::Alloca { size, .. } => *size > 4,
            _ => false,
        });
        allocas.iter().all(|id| plan.values.contains(id))
    };
    assert!(logged("f") && logged("g") && !logged("h"));
    // The copied bytes are not in the log, so the index is.
    assert_eq!(logged_loads(&module, "g").len(), 1);
}

#[test]
fn atomics_that_others_see_are_logged_and_followed_by_a_reading() {
    let source = "#include <stdatomic.h>
        atomic_int ticket, counter; int table[8]; _Atomic(int *) head; _Atomic double sum;
        void f(void) { table[atomic_fetch_add(&ticket, 1)] = 1; atomic_fetch_add(&counter, 1); }
        int g(int want) { return atomic_compare_exchange_strong(&ticket, &want, 3); }
        void h(void) { *atomic_exchange(&head, 0) = 1; }
        int own(void) { atomic_int here = 0; return atomic_fetch_add(&here, 1); }
        void stores(int x) { ticket = x; atomic_store_explicit(&counter, x, memory_order_release); }";
    for level in LEVELS {
        let module = c(level, source);
        let atomics = |name: &str| {
            let f = function(&module, name);
            let plan = planned(&module, name);
            instructions(f, |kind| {
                matches!(kind, InstKind::AtomicRmw { .. } | InstKind::CmpXchg { .. })
            })
            .iter()
            .map(|id| (plan.readings.contains(id), plan.values.contains(id)))
            .collect::<Vec<_>>()
        };
        assert_eq!(atomics("f"), [(true, true), (true, true)], "{level}");
        assert_eq!(atomics("g"), [(true, true)], "{level}");
        assert_eq!(atomics("h"), [(true, true)], "{level}");
        // What nobody else can see tells nothing of the order, unless it is removed altogether.
        assert!(atomics("own").iter().all(|&(reading, _)| !reading), "{level}");
        let plan = planned(&module, "stores");
        let stores = instructions(function(&module, "stores"), |kind| match kind {
            InstKind::Store { ordering, .. } => *ordering != Ordering::NotAtomic,
            _ => false,
        });
        let readings: Vec<bool> = stores.iter().map(|id| plan.readings.contains(id)).collect();
        assert_eq!(readings, [true, false], "{level}");
    }
}

#[test]
fn entries_are_logged_where_code_elsewhere_can_enter() {
    let source = "struct big { int a[10]; }; typedef int (*fn)(int); fn table;
        __attribute__((noinline)) static int plain(int x) { return x + 1; }
        __attribute__((noinline)) static int taken(int x) { return x + 2; }
        __attribute__((noinline)) static int copied(struct big b) { return b.a[3]; }
        int outside(struct big *b) { table = taken; return plain(1) + copied(*b); }";
    let module = c("-O0", source);
    let entry = |name: &str| planned(&module, name).entry;
    assert!(!entry("plain"));
    assert!(entry("taken") && entry("copied") && entry("outside"));
}

#[test]
fn choices_and_returns_after_unseen_code_are_logged() {
    let source = "int unseen(int); __attribute__((noinline)) static int seen(int x) { return x; }
        int f(int x, int (*p)(int)) {
            if (x) x = unseen(x); else x = seen(x);
            __asm__ volatile(\"nop\");
            return p(x) + __builtin_popcount(x);
        }";
    let module = c("-O0", source);
    let f = function(&module, "f");
    let plan = planned(&module, "f");
    // Entry, then, else, join.
    assert_eq!(plan.blocks, [false; 4]);
    assert_eq!(plan.regions.filled, [false, true, true, false], "calls end the regions");
    let mut expected = calls_of(&module, f, "unseen");
    expected.extend(instructions(f, |kind| {
        kind.as_call().is_some_and(|call| matches!(call.callee, ir::types::Callee::Indirect(_)))
    }));
    assert_eq!(expected.len(), 2);
    assert_eq!(plan.returns, expected);
}

#[test]
fn assembly_returns_when_it_has_effects() {
    let source = "int f(int x, int *p, struct big { int a[9]; } *q) {
            int low, high;
            __asm__ volatile(\"\" ::: \"memory\");
            __asm__ volatile(\"mfence\" ::: \"memory\");
            __asm__ volatile(\"rep; nop\");
            __asm__(\"\" : \"+r\"(x));
            __asm__ volatile(\"rdtsc\" : \"=a\"(low), \"=d\"(high));
            __asm__ volatile(\"lock; incl %0\" : \"+m\"(*p));
            __asm__ volatile(\"fnstenv %0\" : \"=m\"(*q));
            __asm__ volatile(\"clflush (%0)\" : : \"r\"(p) : \"memory\");
            return x + low + high;
        }";
    for level in ["-O0", "-O2"] {
        let module = c(level, source);
        let f = function(&module, "f");
        let effects = |text: &str| {
            ["rdtsc", "lock", "fnstenv", "clflush"].iter().any(|e| text.starts_with(e))
        };
        let expected: BTreeSet<InstId> = instructions(f, |kind| {
            kind.as_call().is_some_and(|call| match &call.callee {
                ir::types::Callee::Asm(text, _) => effects(text),
                _ => false,
            })
        })
        .into_iter()
        .collect();
        assert_eq!(expected.len(), 4, "{level}");
        assert_eq!(planned(&module, "f").returns, expected, "{level}");
        let gates = ir::gates::gates(&module, f);
        let sites = gates.iter().filter(|gate| gate.site.contains(":call:asm"));
        assert_eq!(sites.map(|gate| gate.instruction).collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn a_branch_to_one_place_is_no_choice() {
    let source = "int f(int x) { switch (x) { case 1: case 2: break; } return x; }";
    let module = c("-O0", source);
    let f = function(&module, "f");
    let plan = planned(&module, "f");
    for block in &f.blocks {
        let successors = f.instructions[block.terminator().index()].kind.successors();
        let distinct: BTreeSet<_> = successors.iter().collect();
        let choice = choice(&f.instructions[block.terminator().index()].kind);
        assert_eq!(choice.is_some(), distinct.len() > 1);
    }
    assert!(!plan.blocks[0]);
}

#[test]
fn computed_jumps_and_landing_pads_are_recorded() {
    let jumps = c(
        "-O0",
        "int f(int x) { static void *l[] = {&&a, &&b}; goto *l[x]; a: return 1; b: return 2; }",
    );
    let f = function(&jumps, "f");
    let plan = plan(&jumps, f);
    for instruction in &f.instructions {
        if let InstKind::IndirectBr(_, targets) = &instruction.kind {
            assert_eq!(targets.len(), 2);
            assert!(targets.iter().all(|target| plan.blocks[target.index()]));
        }
    }
    let pads =
        cpp("-O1", "void g(); int f() { try { g(); } catch (int e) { return e; } return 0; }");
    let f = function(&pads, "_Z1fv");
    let plan = ir::plan::plan(&pads, f);
    let invoke = f
        .instructions
        .iter()
        .find_map(|instruction| match instruction.kind {
            InstKind::Invoke { normal, unwind, .. } => Some((normal, unwind)),
            _ => None,
        })
        .expect("an invoke");
    assert!(!plan.blocks[invoke.0.index()] && plan.blocks[invoke.1.index()]);
}

#[test]
fn a_wide_switch_records_its_targets() {
    let cases = |count: u32| {
        let cases: String = (0..count).map(|n| format!("case {n}: g({}); break;", n * n)).collect();
        c("-O0", &format!("void g(int); void f(int x) {{ switch (x) {{ {cases} }} }}"))
    };
    for (count, bits) in [(1, Some(1)), (3, Some(2)), (4, Some(3)), (63, Some(6)), (64, None)] {
        let module = cases(count);
        let f = function(&module, "f");
        let switch = &f.instructions[f.blocks[0].terminator().index()].kind;
        assert_eq!(choice(switch).map(|choice| choice.bits), bits, "{count}");
        let recorded = plan(&module, f).blocks.iter().filter(|recorded| **recorded).count();
        let targets = if bits.is_some() { 0 } else { count as usize + 1 };
        assert_eq!(recorded, targets, "{count}");
    }
}

/// Whatever way a function takes, its choices fit into their tokens.
#[test]
fn no_region_gets_too_long() {
    let source = "int g(int);
        static int many(int a, int b, int c) {
            int r = 0;
            for (int i = 0; i < a; i++) {
                if (a & i) r++; if (b & i) r += 2; if (c & i) r += 3; if (r & 8) r ^= b;
                if (r & 16) r ^= c; if (r & 32) r ^= a; if (r & 64) continue;
                switch (r & 15) { case 1: r++; break; case 3: r--; case 5: r += b; break;
                    case 9: r = g(r); break; case 12: return r; default: break; }
                while (r > 100) { r /= 2; do { r -= i; if (r == b) break; } while (r > 50); }
            }
            return r;
        }
        struct s { int i, j, *p; };
        int table[64];
        int loads(struct s *s, int n) {
            int r = 0;
            while (n--) {
                r += table[s->i]; if (r & 1) s->p[s->j]++; r ^= s->p[s->i] + s->p[s->j];
                if (r & 4) table[s->j] = s->p[s->i]; if (r & 8) { r += g(s->j); r += s->p[s->j]; }
            }
            return r;
        }
        int f(int a, int b, int c) {
          again:
            if (a && b && c) { if (many(a, b, c) > 3 || (a > b && b > c && a > 9)) return 1; }
            if (--a > 0) goto again;
            return g(a) ? 2 : 3;
        }";
    for level in ["-O0", "-O1", "-O2"] {
        let module = c(level, source);
        let (mut longest, mut checked) = (0, 0);
        for f in module.functions.iter().filter(|f| !f.is_declaration()) {
            let plan = plan(&module, f);
            for seed in 1..400 {
                let (bits, checks) = wander(&module, f, &plan, seed);
                longest = longest.max(bits);
                checked += checks;
            }
        }
        assert!(longest > REGION_BITS / 2, "{level}: tokens get long: {longest}");
        assert!(checked > 0, "{level}: loops end their regions");
    }
}

/// Walks a function at random; gives the longest region, and how many ended at a check.
fn wander(module: &Module, f: &Function, plan: &FunctionPlan, seed: u64) -> (u32, usize) {
    let (mut block, mut bits, mut longest, mut checks) = (0, 0, 0, 0);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2000 {
        assert!(bits == 0 || plan.regions.filled[block], "block {block} may be reached with bits");
        assert!(bits <= plan.regions.most[block], "{bits} bits at the start of block {block}");
        if plan.blocks[block] {
            bits = 0;
        }
        if let Some(most) = plan.regions.checks[block]
            && bits > most
        {
            (bits, checks) = (0, checks + 1);
        }
        for id in f.blocks[block].instructions() {
            if ends_region(module, &f.instructions[id.index()]) {
                bits = 0;
            }
            bits += u32::from(plan.guesses.loads.contains(&id));
            assert!(bits <= REGION_BITS, "{bits} bits behind {id}");
        }
        let last = &f.instructions[f.blocks[block].terminator().index()].kind;
        let targets = last.successors();
        let Some(count) = std::num::NonZeroUsize::new(targets.len()) else { break };
        bits += choice(last).map_or(0, |choice| choice.bits);
        assert!(bits <= REGION_BITS, "{bits} bits at the end of block {block}");
        longest = longest.max(bits);
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        block = targets[(state >> 33) as usize % count].index();
    }
    (longest, checks)
}

#[test]
fn must_tail_calls_are_never_followed_by_a_record() {
    let source = "int unseen(int); int f(int x) { __attribute__((musttail)) return unseen(x); }";
    let module = c("-O1", source);
    assert!(planned(&module, "f").returns.is_empty());
}

#[test]
fn every_scalar_takes_its_bytes() {
    let source = "struct s { __int128 w; long double d; long l; void *p; float f[3]; char c; } s;
        void f(void) {}";
    let module = c("-O0", source);
    let ty = module.globals[0].ty;
    assert_eq!(logged_bytes(&module, ty), 16 + 16 + 8 + 8 + 3 * 4 + 1);
    let void = module.types.iter().position(|ty| *ty == Type::Void).expect("void");
    assert_eq!(logged_bytes(&module, TypeId(u32::try_from(void).expect("small"))), 0);
}
