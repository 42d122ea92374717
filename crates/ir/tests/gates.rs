//! Where gates stand, and how they are called.

use crate::common::{c, cpp, function};
use ir::gates::{Gate, gates};
use ir::types::{InstKind, Module, Type};

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

fn gates_of(module: &Module, name: &str) -> Vec<Gate> {
    gates(module, function(module, name))
}

/// The kinds, places and numbers of a function's gates.
fn places(module: &Module, name: &str) -> Vec<String> {
    let short = |gate: Gate| {
        let parts: Vec<&str> = gate.site.splitn(3, ':').collect();
        assert_eq!(parts[1], name);
        parts[2].to_owned()
    };
    gates_of(module, name).into_iter().map(short).collect()
}

#[test]
fn globals_are_called_by_their_names_and_fields() {
    let source = "struct pair { int a; struct { char c; long d; } in; };
        int counter; struct pair both; struct pair many[4]; int grid[3][5]; __thread int own;
        void f(int i) {
            counter = 1; both.in.d = 2; many[2].in.c = 3; many[i].a = 4; grid[1][2] = 5;
            grid[i][1] = 6; own = 7;
        }";
    for level in LEVELS {
        let module = c(level, source);
        let expected = [
            "write:counter",
            "write:both.1.1",
            "write:many.2.1.0",
            "write:many.*.0",
            "write:grid.1.2",
            "write:grid.*.*",
            "write:own",
        ];
        assert_eq!(places(&module, "f"), expected, "{level}");
    }
}

#[test]
fn fields_are_called_by_their_types_and_numbers() {
    let source = "struct queue { long head, tail; int slots[8]; }; struct flex { int n; int d[]; };
        union number { double real; long whole; };
        int get(struct queue *q, int i) { return q->slots[i] + q[3].slots[5]; }
        void put(struct queue *q, struct flex *f, int i) { q->tail = 1; f->d[i] = 2; f->d[3] = 4; }
        void plain(int *p, char *s) { *p = 1; p[3] = 2; s[i_()] = 3; }
        int i_(void);
        void deep(struct queue **q, union number *n) { (*q)->head++; (**q).tail = 2; n->whole = 1; }";
    let source = source.replacen("struct queue {", "int i_(void); struct queue {", 1);
    for level in LEVELS {
        let module = c(level, &source);
        assert_eq!(places(&module, "get"), ["read:queue.2.*", "read:queue.2.5"], "{level}");
        let expected = ["write:queue.1", "write:flex.1.*", "write:flex.1.3"];
        assert_eq!(places(&module, "put"), expected, "{level}");
        let expected = ["write:arg0", "write:arg0.12", "call:i_", "write:arg1"];
        assert_eq!(places(&module, "plain"), expected, "{level}");
        let deep = places(&module, "deep");
        assert_eq!(deep[..2], ["read:arg0", "read:queue.0"], "{level}");
        assert!(deep.contains(&"write:queue.1".to_owned()), "{level}: {deep:?}");
    }
}

#[test]
fn what_nobody_else_sees_has_no_gate() {
    let source = "void take(int *); struct big { int a[40]; } shared;
        int f(int n) { int local[4] = {n, 1, 2, 3}; return local[n & 3] + __builtin_popcount(n); }
        int g(int n) { int given = n; take(&given); return given; }
        int h(void) { struct big copy = shared; return copy.a[7] + copy.a[3]; }
        static int callee(int n) { return n * 3; } int k(int n) { return callee(n); }";
    let module = c("-O0", source);
    assert!(places(&module, "f").is_empty(), "{:?}", places(&module, "f"));
    assert_eq!(places(&module, "g"), ["write:stack", "call:take", "read:stack"]);
    assert_eq!(places(&module, "h"), ["copy:shared"]);
    assert!(places(&module, "k").is_empty());
    let module = c("-O2", source);
    assert_eq!(places(&module, "g"), ["write:stack", "call:take", "read:stack"]);
}

#[test]
fn copies_updates_and_calls_have_their_own_kinds() {
    let source = "#include <stdatomic.h>\n#include <string.h>\n
        struct box { int id; char bytes[100]; }; struct box one, two; atomic_int ticket;
        int unseen(int);
        void f(struct box *to, int (*p)(int)) {
            two = one; memset(to->bytes, 0, sizeof to->bytes); memmove(to, &one, sizeof one);
            atomic_fetch_add(&ticket, 1); int want = 2;
            atomic_compare_exchange_strong(&ticket, &want, 3);
            p(unseen(4)); unseen(5); __asm__ volatile(\"\" ::: \"memory\");
        }";
    for level in LEVELS {
        let module = c(level, source);
        let expected = [
            "copy:two",
            "copy:box.1",
            "copy:arg0",
            "update:ticket",
            "update:ticket/2",
            "call:unseen",
            "call:*",
            "call:unseen/2",
        ];
        assert_eq!(places(&module, "f"), expected, "{level}");
    }
}

#[test]
fn gates_stand_before_what_they_are_called_after() {
    let source = "int a, b; int other(int); int f(void) { a = b; return other(a); }";
    for level in LEVELS {
        let module = c(level, source);
        let f = function(&module, "f");
        for gate in gates(&module, f) {
            let kind = &f.instructions[gate.instruction.index()].kind;
            let expected = match kind {
                InstKind::Load { .. } => ":read:",
                InstKind::Store { .. } => ":write:",
                InstKind::Call(_) => ":call:",
                _ => panic!("{kind:?}"),
            };
            assert!(gate.site.contains(expected), "{level}: {}", gate.site);
        }
    }
}

#[test]
fn functions_of_any_module_have_names_without_a_file() {
    let source = "struct Bank { long first; int balance; void deposit(int n) { balance += n; } };
        template <class T> T twice(T *n) { return *n = *n * 2; }
        static void own(int *n) { *n = 1; }
        int f(Bank &b, int *n) { b.deposit(2); own(n); return twice(n); }";
    let module = cpp("-O0", source);
    let first = |name: &str| gates_of(&module, name)[0].site.clone();
    assert_eq!(first("_ZN4Bank7depositEi"), ":_ZN4Bank7depositEi:read:Bank.1");
    assert_eq!(first("_Z5twiceIiET_PS0_"), ":_Z5twiceIiET_PS0_:read:arg0");
    // The snippets come from the standard input.
    assert_eq!(first("_ZL3ownPi"), "-:_ZL3ownPi:write:arg0");
}

#[test]
fn names_do_not_depend_on_debug_information_or_other_modules() {
    // Two types of one name get different names in one LLVM context.
    let source = "void f(int k) { extern struct node { int a, b; } *p; p[k].b = 1; }
        void g(int k) { extern struct node { long x; int y; } *q; q[k].y = 2; }";
    for level in LEVELS {
        let mut module = c(level, source);
        let twice = |ty: &&Type| matches!(ty, Type::Struct { name: Some(name), .. } if name.starts_with("struct.node"));
        assert_eq!(module.types.iter().filter(twice).count(), 2);
        assert_eq!(places(&module, "f"), ["read:p", "write:node.1"], "{level}");
        assert_eq!(places(&module, "g"), ["read:q", "write:node.1"], "{level}");
        let before: Vec<Gate> = gates_of(&module, "f");
        module.debug = Default::default();
        assert_eq!(gates_of(&module, "f"), before);
    }
}

#[test]
fn names_are_unique_in_their_functions() {
    let source = "struct node { struct node *next; int v; }; extern struct node *more;
        int sum(struct node *n) { int s = 0; for (; n; n = n->next) s += n->v + more->v + more->next->v; return s; }
        void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; *a += *b; *a += 1; }";
    for level in LEVELS {
        let module = c(level, source);
        for name in ["sum", "swap"] {
            let mut sites: Vec<String> =
                gates_of(&module, name).into_iter().map(|g| g.site).collect();
            let count = sites.len();
            assert!(count >= 2, "{level} {name}: {sites:?}");
            sites.sort();
            sites.dedup();
            assert_eq!(sites.len(), count, "{level} {name}");
        }
    }
}
