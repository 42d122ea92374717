//! The owned IR of snippets, compared exactly.

use crate::common::{c, cpp, function, instructions, llvm};
use ir::ReadError;
use ir::types::{
    Callee, ConstantKind, DebugEncoding, DebugType, DebugTypeId, Function, Global, InstKind,
    Module, Operand, Ordering, Type,
};

fn global<'m>(module: &'m Module, name: &str) -> &'m Global {
    module.globals.iter().find(|global| global.name == name).expect("the global")
}

fn initial(module: &Module, name: &str) -> ConstantKind {
    let id = global(module, name).init.expect("initialised");
    module.constants[id.index()].kind.clone()
}

fn shown(module: &Module, name: &str) -> String {
    let id = global(module, name).init.expect("initialised");
    ir::dump::constant(module, id)
}

/// Every identifier refers to something, and blocks partition the instructions.
fn check(module: &Module) {
    for f in module.functions.iter().filter(|f| !f.is_declaration()) {
        let mut next = 0;
        for block in &f.blocks {
            assert_eq!(block.first.0, next, "{}", f.name);
            assert!(block.end > block.first, "{}", f.name);
            next = block.end.0;
            for successor in f.instructions[block.terminator().index()].kind.successors() {
                assert!(successor.index() < f.blocks.len());
            }
        }
        assert_eq!(next as usize, f.instructions.len());
        for instruction in &f.instructions {
            assert!(instruction.ty.index() < module.types.len());
            assert!(instruction.loc.is_none_or(|l| l.index() < module.debug.locations.len()));
            instruction.kind.for_each_operand(&mut |operand| match operand {
                Operand::Inst(id) => assert!(id.index() < f.instructions.len()),
                Operand::Param(index) => assert!((index as usize) < f.params.len()),
                Operand::Const(id) => assert!(id.index() < module.constants.len()),
                Operand::Other => {}
            });
        }
    }
}

fn body(module: &Module, name: &str) -> Vec<String> {
    let text = ir::dump::dump_function(module, function(module, name));
    text.lines()
        .filter(|line| !line.trim_start().starts_with(';'))
        .skip(1)
        .map(|line| line.trim().split(" ; ").next().expect("some").to_owned())
        .collect()
}

#[test]
fn a_small_function_exactly() {
    let module = c("-O1", "int g; int f(int a, int *p) { if (a > 3) *p = g; return p[a] + 1; }");
    assert_eq!(
        body(&module, "f"),
        [
            "bb0:",
            "%i0: i1 = icmp Sgt %p0, 3",
            "%i1: br %i0 ? bb1 : bb2",
            "bb1:",
            "%i2: i32 = load @g",
            "%i3: store %i2, %p1",
            "%i4: br bb2",
            "bb2:",
            "%i5: i64 = SExt %p0",
            "%i6: ptr = gep %p1 + 0 + %i5 * 4",
            "%i7: i32 = load %i6",
            "%i8: i32 = Add %i7, 1",
            "%i9: ret %i8",
        ]
    );
    let f = function(&module, "f");
    assert!(!f.internal && !f.address_taken && !f.varargs && !f.noreturn && !f.intrinsic);
    check(&module);
}

#[test]
fn constants_keep_all_their_bits() {
    let module = c(
        "-O0",
        "__int128 wide = -3; float f = 1.5f; double d = -0.0; long double x = 1.0L;
         char text[] = \"ab\"; short s[2] = {1, -1}; double ds[2] = {1, 2}; int zero[4];
         int target[8]; int *inside = &target[3]; char *byte = (char *)&target + 5;
         int fn(void) { return 0; } int (*pointer)(void) = fn; void *none = 0;
         long number = (long)&target; struct { char c; int i; } pair = {1, 2};",
    );
    assert_eq!(initial(&module, "wide"), ConstantKind::Int(vec![-3_i64 as u64, u64::MAX]));
    assert_eq!(initial(&module, "f"), ConstantKind::Float(vec![u64::from(1.5_f32.to_bits())]));
    assert_eq!(initial(&module, "d"), ConstantKind::Float(vec![(-0.0_f64).to_bits()]));
    assert_eq!(initial(&module, "x"), ConstantKind::Float(vec![1 << 63, 0x3fff]));
    assert_eq!(initial(&module, "text"), ConstantKind::Bytes(b"ab\0".to_vec()));
    assert_eq!(initial(&module, "s"), ConstantKind::Bytes(vec![1, 0, 255, 255]));
    assert_eq!(initial(&module, "zero"), ConstantKind::Zero);
    assert_eq!(initial(&module, "none"), ConstantKind::Null);
    assert_eq!(shown(&module, "ds"), "{0x3ff0000000000000, 0x4000000000000000}");
    assert_eq!(shown(&module, "inside"), "@target+12");
    assert_eq!(shown(&module, "byte"), "@target+5");
    assert_eq!(shown(&module, "pointer"), "@fn");
    assert_eq!(shown(&module, "number"), "(PtrToInt @target)");
    assert_eq!(shown(&module, "pair"), "{1, 2}");
}

#[test]
fn layouts_are_those_of_the_target() {
    let module = c("-O0", "struct s { char c; long l; struct { short a, b; } in[3]; } g;");
    let Type::Struct { offsets, size, name, .. } = module.ty(global(&module, "g").ty) else {
        panic!("a struct");
    };
    assert_eq!(
        (offsets.as_slice(), *size, name.as_deref()),
        (&[0, 8, 16][..], 32, Some("struct.s"))
    );
    assert_eq!(global(&module, "g").size, 32);
}

#[test]
fn address_computations_become_offsets_and_terms() {
    let module = c(
        "-O1",
        "struct s { int head; struct { int a; int b[4]; } rows[5]; };
         int *f(struct s *p, int i, long j) { return &p->rows[i].b[j]; }
         int *g(struct s *p) { return &p[2].rows[1].b[3]; }
         char *h(char *p, long i) { return p - i; }",
    );
    assert!(body(&module, "f").contains(&"%i1: ptr = gep %p0 + 8 + %i0 * 20 + %p2 * 4".to_owned()));
    assert!(body(&module, "g").contains(&"%i0: ptr = gep %p0 + 248".to_owned()));
    assert!(body(&module, "h").contains(&"%i1: ptr = gep %p0 + 0 + %i0 * 1".to_owned()));
}

#[test]
fn control_flow_of_every_kind() {
    let module = c(
        "-O0",
        "int f(int x) { switch (x) { case -1: return 1; case 5: return 2; default: return 3; } }
         int g(int x) { static void *l[] = {&&a, &&b}; goto *l[x]; a: return 1; b: return 2; }
         __attribute__((noreturn)) void stop(void); void h(void) { stop(); }",
    );
    let f = function(&module, "f");
    let switch = f.instructions.iter().find_map(|instruction| match &instruction.kind {
        InstKind::Switch(_, default, cases) => Some((*default, cases.clone())),
        _ => None,
    });
    let (default, cases) = switch.expect("a switch");
    let values: Vec<String> =
        cases.iter().map(|(case, _)| ir::dump::constant(&module, *case)).collect();
    assert_eq!(values, ["4294967295", "5"]);
    assert!(cases.iter().all(|(_, block)| *block != default));
    let g = function(&module, "g");
    assert!(g.instructions.iter().any(
        |instruction| matches!(&instruction.kind, InstKind::IndirectBr(_, blocks) if blocks.len() == 2)
    ));
    let table = module.globals.iter().find(|global| global.name.starts_with("g.l")).expect("table");
    assert!(ir::dump::constant(&module, table.init.expect("init")).contains("blockaddress(@f"));
    assert!(!g.address_taken, "a block's address is not the function's");
    assert!(function(&module, "stop").noreturn);
    check(&module);
}

#[test]
fn atomics_fences_and_volatile_accesses() {
    let module = c(
        "-O1",
        "#include <stdatomic.h>
         atomic_int a; volatile int v;
         int f(int x) {
            atomic_store_explicit(&a, 1, memory_order_release);
            int r = atomic_load_explicit(&a, memory_order_acquire);
            atomic_fetch_sub_explicit(&a, 2, memory_order_relaxed);
            atomic_thread_fence(memory_order_seq_cst);
            atomic_compare_exchange_weak(&a, &x, 5);
            return r + v; }",
    );
    let text = body(&module, "f").join("\n");
    for part in [
        "store Release 1, @a",
        "load Acquire @a",
        "atomicrmw Sub Monotonic @a, 2",
        "fence SequentiallyConsistent",
        "cmpxchg SequentiallyConsistent @a, %p0, 5",
        "load volatile @v",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let f = function(&module, "f");
    let weak = f.instructions.iter().any(
        |i| matches!(i.kind, InstKind::CmpXchg { weak: true, ordering, .. } if ordering == Ordering::SequentiallyConsistent),
    );
    assert!(weak);
}

#[test]
fn calls_say_who_is_called_and_how() {
    let module = c(
        "-O0",
        "struct big { long a[5]; }; void take(struct big); int printf(const char *, ...);
         void f(struct big *b, void (*p)(int)) { take(*b); p(1); printf(\"%d\", 2);
            __asm__ volatile(\"nop # %0\" : : \"r\"(3)); }
         static void kept(void) {} void *address = kept;",
    );
    let f = function(&module, "f");
    let calls = instructions(f, |kind| kind.as_call().is_some());
    let call = |index: usize| f.instructions[calls[index].index()].kind.as_call().expect("a call");
    // Before the call of `take` there may be a copy into the argument's slot.
    let take = (0..calls.len())
        .map(call)
        .find(|call| call.target(&module).is_some_and(|callee| callee.name == "take"))
        .expect("take");
    assert_eq!(take.byval, [Some(40)]);
    assert_eq!(function(&module, "take").params[0].byval, Some(40));
    assert!((0..calls.len()).any(|i| matches!(call(i).callee, Callee::Indirect(Operand::Inst(_)))));
    assert!((0..calls.len()).any(
        |i| matches!(&call(i).callee, Callee::Asm(text, constraints) if text == "nop # $0" && constraints.starts_with('r'))
    ));
    assert!(function(&module, "printf").varargs);
    let kept = function(&module, "kept");
    assert!(kept.internal && kept.address_taken);
    check(&module);
}

/// Nobody but the callee tells of a call in a function that is left as it is.
#[test]
fn what_untraced_functions_call_is_called_from_outside() {
    let module = llvm(
        "define internal void @own() noinline { ret void }
         define internal void @both() noinline { ret void }
         define void @traced() { call void @own() call void @both() ret void }
         define void @left() \"symbiosis-untraced\" { call void @both() ret void }",
    );
    assert!(function(&module, "left").is_declaration());
    assert!(!function(&module, "own").address_taken);
    assert!(function(&module, "both").internal && function(&module, "both").address_taken);
    check(&module);
}

#[test]
fn aliases_resolve_and_borrowed_bodies_are_dropped() {
    let module = c(
        "-O1",
        "int real = 4; extern int other __attribute__((alias(\"real\")));
         __attribute__((noinline)) int impl(void) { return real; } int named(void) __attribute__((alias(\"impl\")));
         inline int borrowed(int x) { return x + 1; }
         int f(void) { other = 5; return named() + borrowed(2); } int (*keep)(int) = borrowed;",
    );
    let text = body(&module, "f").join("\n");
    assert!(text.contains("store 5, @real"), "{text}");
    assert!(text.contains("call @impl()"), "{text}");
    assert!(function(&module, "borrowed").is_declaration());
    assert!(!function(&module, "impl").is_declaration());
}

#[test]
fn exceptions_vectors_and_classes_of_cpp() {
    let module = cpp(
        "-O1",
        "#include <string>
         #include <map>
         #include <stdexcept>
         typedef int v4 __attribute__((vector_size(16)));
         v4 add(v4 a, v4 b) { return __builtin_shufflevector(a, b, 0, 5, 2, 7) + b; }
         void g(); int f(std::map<std::string, int> &m) {
            try { g(); m[\"a\"]++; } catch (std::exception &e) { return -1; } return m.size(); }
         thread_local int counter = 3;",
    );
    check(&module);
    let text = ir::dump::dump(&module);
    assert!(text.contains("invoke @_Z1gv() to") && text.contains("landingpad"));
    assert!(text.contains("shufflevector %p0, %p1 [0 5 2 7]"), "{text}");
    assert!(!text.contains("= other") && !text.contains("unknown `"), "{text}");
    assert!(global(&module, "counter").thread_local);
}

#[test]
fn places_scopes_and_inlining() {
    let module = c(
        "-O2",
        "int g;
static inline __attribute__((always_inline)) void inner(int x) {
    g = x;
}
void outer(int y) {
    inner(y);
}",
    );
    let f = function(&module, "outer");
    let store = instructions(f, |kind| matches!(kind, InstKind::Store { .. }))[0];
    let at = |loc: ir::types::LocId| module.debug.locations[loc.index()];
    let scope = |id: ir::types::ScopeId| &module.debug.scopes[id.index()];
    let place = at(f.instructions[store.index()].loc.expect("a place"));
    assert_eq!((place.line, scope(place.scope).function.as_str()), (3, "inner"));
    let site = at(place.inlined_at.expect("inlined"));
    assert_eq!((site.line, scope(site.scope).function.as_str()), (6, "outer"));
    assert_eq!(site.inlined_at, None);
    let own = scope(f.scope.expect("a subprogram"));
    assert_eq!((own.function.as_str(), own.line), ("outer", 5));
    assert!(own.file.starts_with('/') && own.file.ends_with("<stdin>"), "{}", own.file);
    assert_eq!(global(&module, "g").debug.as_ref().map(|debug| debug.line), Some(1));
}

/// The optimiser gives line 0 to what it merged: here the loads of the first entry and of the next.
#[test]
fn merged_code_has_the_line_of_its_neighbour() {
    let module = c(
        "-O1",
        "struct entry { int key; int value; struct entry *next; } *head;
         struct entry *find(int key) {
           struct entry *e;
           for (e = head; e && e->key != key; e = e->next)
             ;
           return e;
         }",
    );
    let f = function(&module, "find");
    let loads = f.instructions.iter().filter(|i| matches!(i.kind, InstKind::Load { .. }));
    let lines: Vec<u32> = loads
        .filter_map(|load| Some(module.debug.locations.get(load.loc?.index())?.line))
        .collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| *line == 4), "{lines:?}");
}

/// A call that two ways have in common belongs to one of them, and not to the head of the loop around it.
#[test]
fn merged_code_has_the_line_of_a_way_that_leads_there() {
    let module = c(
        "-O1",
        "int ask(void); void tell(int *); int asked, state;
         void serve(void) {
           for (;;) {
             int op = ask();
             if (op == 1) {
               state = 4;
               tell(&asked);
               continue;
             }
             if (op == 2) {
               state = 7;
               tell(&asked);
               continue;
             }
             break;
           }
         }",
    );
    let f = function(&module, "serve");
    let calls = f.instructions.iter().filter(|inst| inst.kind.as_call().is_some());
    let lines: Vec<u32> = calls
        .filter_map(|call| Some(module.debug.locations.get(call.loc?.index())?.line))
        .collect();
    let told = &lines[1..];
    let ways = |line: &u32| (5..=7).contains(line) || (10..=12).contains(line);
    assert!(!told.is_empty() && told.iter().all(ways), "{lines:?}");
}

fn variable_type<'m>(module: &'m Module, f: &Function, name: &str) -> &'m DebugType {
    let variable = f.variables.iter().find(|variable| variable.name == name).expect("variable");
    stripped(module, variable.ty)
}

fn stripped(module: &Module, id: Option<DebugTypeId>) -> &DebugType {
    match &module.debug.types[id.expect("typed").index()] {
        DebugType::Alias(inner) => stripped(module, *inner),
        found => found,
    }
}

#[test]
fn variables_and_types_of_the_debug_information() {
    let source = "typedef struct node { struct node *next; unsigned a : 3, b : 5; char name[2][3];
                      union { long l; double d; }; } node;
        int f(const node *p, int n) { int twice = n * 2; return twice + p->a; }";
    for level in ["-O0", "-O2"] {
        let module = c(level, source);
        let f = function(&module, "f");
        let DebugType::Pointer(inner) = variable_type(&module, f, "p") else { panic!("{level}") };
        let DebugType::Composite { name, size, members, .. } = stripped(&module, *inner) else {
            panic!("{level}");
        };
        assert_eq!((name.as_str(), *size), ("node", 24), "{level}");
        let summary: Vec<(&str, u64, Option<u64>)> = members
            .iter()
            .map(|member| (member.name.as_str(), member.offset, member.bits.map(|bits| bits.first)))
            .collect();
        let expected = [
            ("next", 0, None),
            ("a", 8, Some(0)),
            ("b", 8, Some(3)),
            ("name", 9, None),
            ("", 16, None),
        ];
        assert_eq!(summary, expected, "{level}");
        let DebugType::Array { element, length: 2 } = stripped(&module, members[3].ty) else {
            panic!("{level}");
        };
        assert!(matches!(stripped(&module, *element), DebugType::Array { length: 3, .. }));
        let DebugType::Basic { name, size, encoding } = variable_type(&module, f, "twice") else {
            panic!("{level}");
        };
        assert_eq!((name.as_str(), *size, *encoding), ("int", 4, DebugEncoding::Signed));
        let twice = f.variables.iter().find(|variable| variable.name == "twice").expect("twice");
        assert_eq!(twice.address, level == "-O0");
    }
}

#[test]
fn what_is_not_x86_64_bitcode_is_refused() {
    assert!(matches!(ir::read_bitcode(b"no bitcode"), Err(ReadError::Bitcode(_))));
    assert!(matches!(ir::read_bitcode(b""), Err(ReadError::Bitcode(_))));
    let other = std::process::Command::new("clang")
        .args(["--target=i686-linux-gnu", "-xc", "-emit-llvm", "-c", "-o", "-", "/dev/null"])
        .output()
        .expect("clang is installed");
    assert!(other.status.success());
    let refused = ir::read_bitcode(&other.stdout);
    assert!(
        matches!(&refused, Err(ReadError::Target { triple, .. }) if triple.starts_with("i686"))
    );
}

#[test]
fn reading_is_deterministic() {
    let source = "#include <vector>
        int f(std::vector<int> &v) { v.push_back(1); int s = 0; for (int x : v) s += x; return s; }";
    let (a, b) = (cpp("-O1", source), cpp("-O1", source));
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
}
