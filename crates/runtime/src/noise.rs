//! Perturbed schedules: what NOISE_VARIABLE asks for, and the disturbances of `random`.
//!
//! A disturbed thread yields or sleeps for a moment, so that others overtake it. Which passages are
//! disturbed follows from the seed and the thread's name alone, so a run can be repeated as far as
//! the machine lets it.

use crate::layout::{Control, site_hash};
use crate::memory;
use crate::script::number;
use crate::sys;
use crate::threads::Thread;
use core::ptr::{null_mut, read_volatile, write_volatile};
use core::sync::atomic::{AtomicPtr, Ordering};

/// What [`NOISE_VARIABLE`](crate::layout::NOISE_VARIABLE) asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// Nothing.
    Off,
    /// Threads yield or sleep at some gates and sync points.
    Random {
        /// Of the random numbers.
        seed: u64,
        /// Disturbed gates per million.
        rate: u64,
        /// The longest sleep in microseconds.
        micros: u64,
        /// So many gates of a thread are disturbed at the full rate; at least 1.
        dense: u64,
    },
    /// The scheduler runs threads by random priorities.
    Pct {
        /// Of the random numbers.
        seed: u64,
        /// The number of priority changes plus one.
        depth: u32,
        /// How many steps the run is thought to have.
        steps: u64,
    },
}

impl Config {
    /// Reads the variable's value; none when it is not of one of the two forms.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut words = text.split(|&byte| byte == b',');
        let kind = words.next()?;
        let mut next = || words.next().and_then(|word| number(word.trim_ascii()));
        let (seed, second, third) = (next()?, next()?, next()?);
        let dense = match kind {
            b"random" => next()?.max(1),
            _ => 1,
        };
        if words.next().is_some() {
            return None;
        }
        match kind {
            b"random" => Some(Self::Random { seed, rate: second, micros: third, dense }),
            b"pct" => {
                let depth = u32::try_from(second).ok().filter(|depth| *depth > 0)?;
                Some(Self::Pct { seed, depth, steps: third.max(1) })
            }
            _ => None,
        }
    }
}

const MILLION: u64 = 1_000_000;
/// A run passes far fewer sync points than gates, and they matter more: they are disturbed so
/// many times as often, but never more often than every second time.
const POINT_FACTOR: u64 = 16;

/// The disturbances asked for.
struct Random {
    seed: u64,
    rate: u64,
    micros: u64,
    /// So many gates of a thread are disturbed at the full rate, and those behind them the less often the
    /// more were passed: so that the pauses of a long run grow with the logarithm of its length.
    dense: u64,
    /// 1 / ln(1 - rate), for the distance between disturbed gates.
    scale: f64,
    /// Nothing is disturbed from this moment on, in nanoseconds of the monotonic clock.
    until: u64,
}

impl Random {
    fn is_over(&self) -> bool {
        self.until < u64::MAX && sys::clock(sys::CLOCK_MONOTONIC) >= self.until
    }
}

static RANDOM: AtomicPtr<Random> = AtomicPtr::new(null_mut());

/// Turns the disturbances of [`Config::Random`] on, for so many milliseconds. To be called once, before the
/// initial thread has its record.
pub fn start(config: Config, time: u64) {
    let Config::Random { seed, rate, micros, dense } = config else { return };
    let share = rate.min(MILLION) as f64 / MILLION as f64;
    let scale = if share < 1.0 { 1.0 / logarithm(1.0 - share) } else { 0.0 };
    let until = match time.checked_mul(MILLION) {
        Some(time) => sys::clock(sys::CLOCK_MONOTONIC).saturating_add(time),
        None => u64::MAX,
    };
    let random = Random { seed, rate: rate.min(MILLION), micros, dense, scale, until };
    if let Some(random) = memory::keep(random) {
        RANDOM.store(core::ptr::from_ref(random).cast_mut(), Ordering::Release);
    }
}

/// Turns the disturbances off.
pub fn forget() {
    RANDOM.store(null_mut(), Ordering::Release);
}

/// Is anything disturbed at random?
#[inline]
#[must_use]
pub fn active() -> bool {
    !RANDOM.load(Ordering::Relaxed).is_null()
}

fn random() -> Option<&'static Random> {
    // SAFETY: null, or what `start` keeps for ever.
    unsafe { RANDOM.load(Ordering::Acquire).as_ref() }
}

/// A thread starts: to be called when it has its name and its control page.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn at_start(thread: *mut Thread) {
    let Some(random) = random() else { return };
    // SAFETY: the caller vouches for the record.
    unsafe {
        let name = site_hash((*thread).name.as_bytes());
        (*thread).gate.random = mix(random.seed.wrapping_add(mix(name)));
        let passed = read_volatile(&raw const (*(*thread).control).gates);
        stop_after(thread, random, passed);
    }
}

/// At a gate's slow path: disturbs the thread, and chooses the next gate to disturb it at.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn at_gate(thread: *mut Thread) {
    let Some(random) = random() else { return };
    // SAFETY: the caller vouches for the record.
    unsafe {
        let control = (*thread).control;
        let passed = read_volatile(&raw const (*control).gates);
        if passed < read_volatile(&raw const (*control).gate_stop) {
            return;
        }
        if random.is_over() {
            // The gates that are left have no slow path.
            write_volatile(&raw mut (*control).gate_stop, u64::MAX);
            return;
        }
        disturb(thread, random);
        stop_after(thread, random, passed.saturating_add(1));
    }
}

/// The thread's gates are disturbed no more: it goes through code that says what went wrong, which is long and
/// of no interest.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn spare(thread: *mut Thread) {
    if active() {
        // SAFETY: the caller vouches for the record.
        unsafe { write_volatile(&raw mut (*(*thread).control).gate_stop, u64::MAX) };
    }
}

/// At a sync point, when no scheduler decides; does nothing unless `random` was asked for.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn at_point(thread: *mut Thread) {
    let Some(random) = random() else { return };
    let rate = random.rate.saturating_mul(POINT_FACTOR).min(MILLION / 2);
    // SAFETY: the caller vouches for the record.
    unsafe {
        if draw(&mut (*thread).gate.random) % MILLION < rate {
            sys::keeping_errno(|| {
                if !random.is_over() {
                    disturb(thread, random);
                }
            });
        }
    }
}

/// Lets the thread run freely until it has passed some more gates than `passed`.
unsafe fn stop_after(thread: *mut Thread, random: &Random, passed: u64) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let stop = match random.rate {
            0 => u64::MAX,
            _ => {
                let distance = distance(&mut (*thread).gate.random, random.scale);
                passed.saturating_add(distance.saturating_mul(1 + passed / random.dense))
            }
        };
        let control: *mut Control = (*thread).control;
        write_volatile(&raw mut (*control).gate_stop, stop);
    }
}

unsafe fn disturb(thread: *mut Thread, random: &Random) {
    // SAFETY: the caller vouches for the record.
    let number = unsafe { draw(&mut (*thread).gate.random) };
    if number & 1 == 0 || random.micros == 0 {
        sys::yield_now();
    } else {
        sys::sleep_micros(1 + (number >> 1) % random.micros);
    }
}

/// How many gates are passed before the next disturbed one, at the full rate; geometrically
/// distributed, so that every gate has the same chance.
fn distance(state: &mut u64, scale: f64) -> u64 {
    // From (0, 1].
    let share = ((draw(state) >> 11) + 1) as f64 / (1u64 << 53) as f64;
    (logarithm(share) * scale) as u64
}

/// The next random number (xorshift*, 64 bits). A state of 0 would stay 0.
fn draw(state: &mut u64) -> u64 {
    let mut x = if *state == 0 { 0x9e37_79b9_7f4a_7c15 } else { *state };
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    x.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Spreads a number over all bits, so that near seeds give unlike sequences (splitmix64).
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The natural logarithm of a normal positive number, to about ten digits: there is no libm here.
fn logarithm(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let part = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let s = (part - 1.0) / (part + 1.0);
    let mut sum = 0.0;
    let mut power = s;
    let mut divisor = 1.0;
    for _ in 0..12 {
        sum += power / divisor;
        power *= s * s;
        divisor += 2.0;
    }
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_understood_and_others_are_not() {
        let random = Config::Random { seed: 7, rate: 500, micros: 100, dense: 40 };
        assert_eq!(Config::parse(b"random,7,500,100,40"), Some(random));
        let pct = Config::Pct { seed: u64::MAX, depth: 3, steps: 1 };
        assert_eq!(Config::parse(b"pct,18446744073709551615,3,0"), Some(pct));
        for wrong in [
            "",
            "random",
            "random,1,2,3",
            "random,1,2,3,4,5",
            "random,1,-2,3,4",
            "pct,1,0,5",
            "x,1,2,3",
        ] {
            assert_eq!(Config::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn logarithms_are_right() {
        for x in [1e-300, 1e-9, 0.1, 0.5, 0.999_999, 1.0, 1.5, 2.0, 1e6] {
            let error = (logarithm(x) - f64::ln(x)).abs();
            assert!(error < 1e-9 * f64::ln(x).abs().max(1.0), "{x}: {error}");
        }
    }

    #[test]
    fn distances_follow_the_rate_and_the_seed() {
        for (rate, expected) in [(1_000.0, 999.0), (200_000.0, 4.0)] {
            let scale = 1.0 / logarithm(1.0 - rate / 1e6);
            let mut state = mix(1);
            let total: u64 = (0..100_000).map(|_| distance(&mut state, scale)).sum();
            let mean = total as f64 / 1e5;
            assert!((mean / expected - 1.0).abs() < 0.03, "{mean} for {rate}");
        }
        let sequence = |seed| {
            let mut state = mix(seed);
            [0; 8].map(|_: u64| draw(&mut state))
        };
        assert_eq!(sequence(1), sequence(1));
        let (one, two) = (sequence(1), sequence(2));
        assert!(one.iter().all(|number| !two.contains(number)));
        let mut stuck = 0;
        assert!((0..4).all(|_| draw(&mut stuck) != 0), "a state of 0 is no end");
    }
}
