//! Names in optimised code, and in what Rust's packages do, shown on C and C++.

use crate::common::{c, cpp, function};
use crate::name::{loaded, stored};
use ir::name::argument_path;

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

/// Optimised code computes both from what they lie in, of which nobody knows the type.
#[test]
fn a_member_is_called_by_a_pointer_that_is_computed_beside_it() {
    let source = "struct account { int log, balance; };
        int f(void *base) {
            struct account *self = (struct account *)((char *)base + 16);
            self->log = 1;
            return *(int *)((char *)base + 20);
        }";
    for level in ["-O1", "-O2"] {
        assert_eq!(loaded(&c(level, source), "f"), ["self->balance"], "{level}");
    }
}

/// One end of a channel in Rust is two words, and so is a small structure in C.
#[test]
fn what_a_part_of_a_variable_leads_to_has_its_name() {
    let source = "struct queue { long head, tail; };
        struct end { long flavor; struct queue *queue; };
        long f(struct end end) { return end.queue->tail + end.flavor; }";
    for level in ["-O1", "-O2"] {
        assert_eq!(loaded(&c(level, source), "f"), ["end.queue->tail"], "{level}");
    }
}

#[test]
fn what_is_copied_as_a_whole_is_not_called_as_what_begins_with_it() {
    let source = "struct quote { long bid, ask, seq; };
        struct cell { struct quote quote; int version; };
        void f(struct cell *cell, struct quote *to) { *to = cell->quote; }
        void g(struct cell *cell, struct cell *to) { *to = *cell; }";
    for level in LEVELS {
        let module = c(level, source);
        let copied = |name| {
            let f = function(&module, name);
            let calls = crate::common::instructions(f, |kind| {
                let target = kind.as_call().and_then(|call| call.target(&module));
                target.is_some_and(|callee| callee.name.starts_with("llvm.memcpy."))
            });
            argument_path(&module, f, calls[0], 1, None)
        };
        assert_eq!(copied("f").as_deref(), Some("cell->quote"), "{level}");
        assert_eq!(copied("g").as_deref(), Some("*cell"), "{level}");
    }
}

/// What a package does inline is in the program's words, as what Rust's library does, if the program called it.
#[test]
fn what_a_package_does_inline_has_the_programs_name() {
    let source = |file: &str, program: &str| {
        format!(
            "struct mutex {{ int state; }}; struct pool {{ long id; mutex lock; }};
# 1 \"{file}\"
static inline __attribute__((always_inline)) void take(mutex &self) {{ self.state = 1; }}
# 4 \"{program}\"
void f(pool *p) {{ take(p->lock); }}"
        )
    };
    let package = "/home/me/.cargo/registry/src/index-1/parking_lot-0.12.1/src/raw_mutex.rs";
    let name = |file, program| stored(&cpp("-O1", &source(file, program)), "_Z1fP4pool").pop();
    assert_eq!(name("own.rs", "pool.rs").as_deref(), Some("self.state"));
    assert_eq!(name(package, "pool.rs").as_deref(), Some("p->lock.state"));
    assert_eq!(name(package, package).as_deref(), Some("self.state"), "nobody else has a word");
}

/// What a package returned is in no words of the program, as what Rust's library did.
#[test]
fn what_a_function_of_a_package_returned_has_no_name() {
    let source = |file: &str| {
        format!(
            "struct table {{ long len; }}; struct lazy {{ long state; table made; }};
# 1 \"{file}\"
table &deref(lazy &self);
table &deref(lazy &self) {{ return self.made; }}
# 5 \"pool.rs\"
void f(lazy *registry) {{ deref(*registry).len = 1; }}"
        )
    };
    let name = |file| stored(&cpp("-O0", &source(file)), "_Z1fP4lazy").pop();
    assert!(name("own.rs").is_some_and(|name| name.contains("deref(")));
    let package = "/home/me/.cargo/registry/src/index-1/once_cell-1.21.4/src/lib.rs";
    assert_eq!(name(package), None);
}
