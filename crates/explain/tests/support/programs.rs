//! Known programs as event traces.

/// Two deposits, each read then written in one section too few.
pub const BANK: &str = "
    cell balance 32 = 100
    t0: fork a
    t0: fork b
    a: [ra] R balance -> x
    a: [wa] W balance x + 10
    b: [rb] R balance -> y
    b: [wb] W balance y + 20
    t0: join a
    t0: join b
    t0: [check] R balance -> z
    t0: fail z != 130
";

/// The paper's running example ([S] figure 1): the check of `filled` under the lock, the
/// assertion outside.
pub const PFSCAN: &str = "
    t0: fork t1
    t0: fork t2
    t0: lock m
    t0: R filled -> a
    t0: [enqueue] W filled a + 1
    t0: unlock m
    t1: lock m
    t1: [r1] R filled -> b
    t1: assume b > 0
    t1: unlock m
    t1: [s1] R filled -> c
    t1: assume c > 0
    t1: lock m
    t1: [d1] R filled -> d
    t1: [dequeue] W filled d - 1
    t1: unlock m
    t2: lock m
    t2: [r2] R filled -> e
    t2: assume e > 0
    t2: unlock m
    t2: [assertion] R filled -> f
    t2: fail f <= 0
";

/// Two of three clerks see a free seat when one is left.
pub const AIRLINE: &str = "
    cell sold 32 = 0
    t0: fork a
    t0: fork b
    a: R sold -> a0
    a: assume a0 < 2
    a: R sold -> a1
    a: [sell-a] W sold a1 + 1
    b: R sold -> b0
    b: assume b0 < 2
    b: R sold -> b1
    b: [sell-b] W sold b1 + 1
    t0: [seen] R sold -> s0
    t0: assume s0 < 2
    t0: [again] R sold -> s1
    t0: [sell-0] W sold s1 + 1
    t0: join a
    t0: join b
    t0: [last] R sold -> sum
    t0: fail sum > 2
";

/// Two variables that belong together, each under a lock of its own.
pub const TWO_STAGE: &str = "
    a: lock m
    a: [first] W x 1
    a: unlock m
    a: lock n
    a: R x -> p
    a: [second] W y p + 1
    a: unlock n
    b: lock m
    b: [rx] R x -> q
    b: unlock m
    b: lock n
    b: [ry] R y -> r
    b: unlock n
    b: fail q == 1 && r != q + 1
";
