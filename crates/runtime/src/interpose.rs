//! How a libc function is interposed: the Rust function gets the symbol `__symbiosis_rt_NAME`, and
//! `NAME` is a weak alias of it. Weak, so that a program with a `malloc` or an `abort` of its own
//! still links; the dynamic linker takes a weak definition in the executable before libc's.

/// Defines interposed functions. The name must be the libc function's.
macro_rules! interpose {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$meta])*
        #[doc = concat!("What the program gets for `", stringify!($name), "`.")]
        #[cfg_attr(symbiosis_export, unsafe(export_name = concat!("__symbiosis_rt_", stringify!($name))))]
        pub unsafe extern "C" fn $name($($argument: $ty),*) $(-> $result)? {
            // SAFETY: the caller keeps the contract of the libc function of this name, and all
            // that the body does is to pass its arguments on to that function.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
        #[cfg(symbiosis_export)]
        core::arch::global_asm!(
            concat!(".weak ", stringify!($name)),
            concat!(".type ", stringify!($name), ",@function"),
            concat!(".set ", stringify!($name), ", __symbiosis_rt_", stringify!($name)),
            options(att_syntax)
        );
    )*};
}
