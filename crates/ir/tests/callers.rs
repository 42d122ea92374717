//! Which functions of the source call which others.

use crate::common::cpp;
use ir::callers::line_calls;

#[test]
fn calls_are_told_whether_they_are_inlined_or_not() {
    let source = "void tell(int);
struct topic {
    int held = 0;
    void drop() { tell(held++); }
};
struct session {
    topic &of;
    void note(int v) {
        if (v == 3)
            of.drop();
    }
};
int main(int argc, char **argv) {
    topic own;
    session one{own};
    auto each = [&](int v) { one.note(v); };
    each(argc);
    return own.held;
}";
    for level in ["-O0", "-O1"] {
        let module = cpp(level, source);
        let all = line_calls([&module].into_iter(), &|_| true);
        let mut told: Vec<String> = all
            .iter()
            .map(|call| format!("{}:{} {}", call.caller.1, call.line, call.callee.1))
            .collect();
        told.retain(|call| !call.contains("session "));
        for call in ["note:10 drop", "lambda in main:16 note", "main:17 lambda in main"] {
            assert!(told.iter().any(|other| other == call), "{level}: {told:?}");
        }
        let none = line_calls([&module].into_iter(), &|_| false);
        assert!(none.is_empty(), "{level}: {none:?}");
    }
}
