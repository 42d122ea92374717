//! The allocator behind the interposed functions: libc's, or that of another library that the program
//! is linked with (jemalloc, say). A program may pass an object of the one to functions of the same
//! library that are not interposed (`malloc_usable_size`), so the two must not be mixed.

use crate::sys;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

type P = *mut c_void;

const UNKNOWN: u32 = 0;
/// Being looked up; whoever allocates meanwhile gets libc's memory.
const BUSY: u32 = 1;
const FOUND: u32 = 2;
/// Not all functions are there.
const MISSING: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// The functions can be used; looks them up the first time.
#[inline]
fn found() -> bool {
    match STATE.load(Ordering::Acquire) {
        FOUND => true,
        UNKNOWN => find_all(),
        _ => false,
    }
}

/// Looks the functions up now. Behind a guarded heap the first one would be asked for late, perhaps by the
/// dynamic linker while it notes an error: the look-up would free what it notes it in.
pub fn prepare() {
    found();
}

macro_rules! functions {
    ($($name:ident = $own:ident($($argument:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(non_upper_case_globals, reason = "named as the functions are")]
        mod slots {
            use super::AtomicUsize;
            $(pub static $name: AtomicUsize = AtomicUsize::new(0);)*
        }

        #[cold]
        fn find_all() -> bool {
            let claim =
                STATE.compare_exchange(UNKNOWN, BUSY, Ordering::AcqRel, Ordering::Acquire);
            if claim.is_err() {
                return false;
            }
            let all = sys::keeping_errno(|| {
                let mut all = true;
                $(
                    // SAFETY: the name ends with a zero.
                    let address = unsafe {
                        let name = concat!(stringify!($name), "\0");
                        sys::dlsym(sys::RTLD_NEXT, name.as_ptr().cast())
                    };
                    slots::$name.store(address as usize, Ordering::Relaxed);
                    all &= !address.is_null();
                )*
                all
            });
            STATE.store(if all { FOUND } else { MISSING }, Ordering::Release);
            all
        }

        $(
            #[doc = concat!("The program's own `", stringify!($name), "`.")]
            ///
            /// # Safety
            ///
            /// That of the function.
            #[inline]
            pub unsafe fn $name($($argument: $ty),*) $(-> $result)? {
                // SAFETY: the caller's. The address is not null and is the function's of that
                // name, whose type is libc's.
                unsafe {
                    if !found() {
                        return sys::$own($($argument),*);
                    }
                    let address = slots::$name.load(Ordering::Relaxed);
                    type Own = unsafe extern "C" fn($($ty),*) $(-> $result)?;
                    core::mem::transmute::<usize, Own>(address)($($argument),*)
                }
            }
        )*
    };
}

functions! {
    malloc = __libc_malloc(size: usize) -> P;
    calloc = __libc_calloc(count: usize, size: usize) -> P;
    realloc = __libc_realloc(old: P, size: usize) -> P;
    memalign = __libc_memalign(align: usize, size: usize) -> P;
    free = __libc_free(object: P);
}
