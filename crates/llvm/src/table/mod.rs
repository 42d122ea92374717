//! The table of LLVM-C functions, in four parts.
//!
//! To use one more function, add its line to the part it belongs to: name and signature as in the
//! LLVM-C header, `required` when LLVM 19 has it, else `optional`. Two rules:
//!
//! * an enum that is *returned* is declared as [`std::ffi::c_int`], because a library newer than
//!   the header may return a value that the header's enum does not have, which would be undefined
//!   behaviour;
//! * nothing below LLVM 19 is supported, so `required` needs no further thought.

#![allow(non_snake_case)]

mod build;
mod debug;
mod machine;
mod values;

pub use build::Build;
pub use debug::Debug;
pub use machine::Machine;
pub use values::Values;

/// Declares one part of the table: a struct of function pointers, its loader, and a method on
/// [`crate::Llvm`] per function. The method of an optional function returns it, if it is there.
macro_rules! functions {
    (
        $(#[$doc:meta])* $part:ident in $field:ident;
        required {
            $( fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?; )*
        }
        optional {
            $( fn $oname:ident($($oarg:ident: $oty:ty),* $(,)?) $(-> $oret:ty)?; )*
        }
    ) => {
        $(#[$doc])*
        #[allow(missing_docs)]
        #[derive(Clone)]
        pub struct $part {
            $( pub $name: unsafe extern "C" fn($($ty),*) $(-> $ret)?, )*
            $( pub $oname: Option<unsafe extern "C" fn($($oty),*) $(-> $oret)?>, )*
        }

        impl $part {
            /// Resolves every function; the error is the name of the first required one missing.
            pub(crate) fn resolve(library: &libloading::Library) -> Result<Self, &'static str> {
                $( let $name = crate::load::symbol(library, concat!(stringify!($name), "\0"))
                    .ok_or(stringify!($name))?; )*
                $( let $oname = crate::load::symbol(library, concat!(stringify!($oname), "\0")); )*
                // SAFETY: every symbol has the signature of the LLVM-C header, enums apart,
                // which have the size of an `int`; `Option` of a function pointer is as large as
                // the pointer.
                unsafe {
                    Ok(Self {
                        $( $name: std::mem::transmute::<
                            std::ptr::NonNull<std::ffi::c_void>,
                            unsafe extern "C" fn($($ty),*) $(-> $ret)?
                        >($name), )*
                        $( $oname: std::mem::transmute::<
                            Option<std::ptr::NonNull<std::ffi::c_void>>,
                            Option<unsafe extern "C" fn($($oty),*) $(-> $oret)?>
                        >($oname), )*
                    })
                }
            }
        }

        #[allow(
            missing_docs,
            clippy::missing_safety_doc,
            clippy::too_many_arguments,
            clippy::type_complexity
        )]
        impl crate::Llvm {
            $(
                #[inline]
                pub unsafe fn $name(&self, $($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the caller keeps to what the LLVM-C header says.
                    unsafe { (self.$field.$name)($($arg),*) }
                }
            )*
            $(
                #[inline]
                #[must_use]
                pub fn $oname(&self) -> Option<unsafe extern "C" fn($($oty),*) $(-> $oret)?> {
                    self.$field.$oname
                }
            )*
        }
    };
}
pub(crate) use functions;
