//! The programs of tests/rust.rs, of which the first argument says one: each would be linked with the whole library.

mod account;
mod batcher;
mod borrowed;
mod bounded;
mod counted;
mod deaf;
mod kept_end;
mod last;
mod limiter;
mod lookup;
mod primitives;
mod sequence;
mod sessions;
mod set_once;
mod shut_down;
mod unwound;
mod woken;

fn main() {
    let program: fn() = match std::env::args().nth(1).unwrap_or_default().as_str() {
        "account" => account::main,
        "batcher" => batcher::main,
        "borrowed" => borrowed::main,
        "bounded" => bounded::main,
        "counted" => counted::main,
        "deaf" => deaf::main,
        "kept_end" => kept_end::main,
        "last" => last::main,
        "limiter" => limiter::main,
        "lookup" => lookup::main,
        "primitives" => primitives::main,
        "sequence" => sequence::main,
        "sessions" => sessions::main,
        "set_once" => set_once::main,
        "shut_down" => shut_down::main,
        "unwound" => unwound::main,
        "woken" => woken::main,
        other => panic!("no program is called `{other}`"),
    };
    program();
}
