//! Types.

use super::{Reader, call};
use crate::types::{FloatKind, Type, TypeId};
use llvm::llvm_sys::LLVMTypeKind as Kind;
use llvm::llvm_sys::prelude::LLVMTypeRef;
use std::ffi::CStr;

impl Reader<'_> {
    /// The identifier of a type.
    pub(super) fn ty(&mut self, ty: LLVMTypeRef) -> TypeId {
        if let Some(&id) = self.types.get(&ty) {
            return id;
        }
        let converted = self.convert_type(ty);
        let id = self.intern_type(converted);
        self.types.insert(ty, id);
        id
    }

    fn intern_type(&mut self, ty: Type) -> TypeId {
        // Types of LLVM are unique already, so the list grows by one per distinct type; it cannot
        // come near 2^32 in a module that fits into memory.
        let id = TypeId(u32::try_from(self.module.types.len()).unwrap_or(u32::MAX));
        self.module.types.push(ty);
        id
    }

    fn convert_type(&mut self, ty: LLVMTypeRef) -> Type {
        const VOID: i32 = Kind::LLVMVoidTypeKind as i32;
        const INTEGER: i32 = Kind::LLVMIntegerTypeKind as i32;
        const POINTER: i32 = Kind::LLVMPointerTypeKind as i32;
        const STRUCT: i32 = Kind::LLVMStructTypeKind as i32;
        const ARRAY: i32 = Kind::LLVMArrayTypeKind as i32;
        const VECTOR: i32 = Kind::LLVMVectorTypeKind as i32;
        const FUNCTION: i32 = Kind::LLVMFunctionTypeKind as i32;
        match call!(self, LLVMGetTypeKind(ty)) {
            VOID => Type::Void,
            INTEGER => Type::Int(call!(self, LLVMGetIntTypeWidth(ty))),
            POINTER => Type::Pointer,
            STRUCT => self.convert_struct(ty),
            ARRAY => Type::Array {
                element: self.ty(call!(self, LLVMGetElementType(ty))),
                length: call!(self, LLVMGetArrayLength2(ty)),
            },
            VECTOR => Type::Vector {
                element: self.ty(call!(self, LLVMGetElementType(ty))),
                length: call!(self, LLVMGetVectorSize(ty)),
            },
            FUNCTION => self.convert_function_type(ty),
            kind => float_kind(kind).map_or(Type::Other, Type::Float),
        }
    }

    fn convert_struct(&mut self, ty: LLVMTypeRef) -> Type {
        if call!(self, LLVMIsOpaqueStruct(ty)) != 0 || call!(self, LLVMTypeIsSized(ty)) == 0 {
            return Type::Other;
        }
        let count = call!(self, LLVMCountStructElementTypes(ty));
        let fields = (0..count).map(|index| {
            let field = call!(self, LLVMStructGetTypeAtIndex(ty, index));
            self.ty(field)
        });
        let fields = fields.collect();
        let offset = |index| call!(self, LLVMOffsetOfElement(self.layout, ty, index));
        let name = call!(self, LLVMGetStructName(ty));
        Type::Struct {
            fields,
            offsets: (0..count).map(offset).collect(),
            size: self.size(ty),
            name: (!name.is_null()).then(|| {
                // SAFETY: LLVM returns a C string.
                unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
            }),
        }
    }

    fn convert_function_type(&mut self, ty: LLVMTypeRef) -> Type {
        let count = call!(self, LLVMCountParamTypes(ty)) as usize;
        let mut params = vec![std::ptr::null_mut(); count];
        call!(self, LLVMGetParamTypes(ty, params.as_mut_ptr()));
        Type::Function {
            result: self.ty(call!(self, LLVMGetReturnType(ty))),
            params: params.into_iter().map(|param| self.ty(param)).collect(),
            varargs: call!(self, LLVMIsFunctionVarArg(ty)) != 0,
        }
    }

    /// The size in bytes with padding; 0 for a type without one.
    pub(super) fn size(&self, ty: LLVMTypeRef) -> u64 {
        let scalable = Kind::LLVMScalableVectorTypeKind as i32;
        if call!(self, LLVMTypeIsSized(ty)) == 0 || call!(self, LLVMGetTypeKind(ty)) == scalable {
            return 0;
        }
        call!(self, LLVMABISizeOfType(self.layout, ty))
    }
}

fn float_kind(kind: i32) -> Option<FloatKind> {
    const KINDS: [(Kind, FloatKind); 7] = [
        (Kind::LLVMHalfTypeKind, FloatKind::Half),
        (Kind::LLVMBFloatTypeKind, FloatKind::BFloat),
        (Kind::LLVMFloatTypeKind, FloatKind::Single),
        (Kind::LLVMDoubleTypeKind, FloatKind::Double),
        (Kind::LLVMX86_FP80TypeKind, FloatKind::X87),
        (Kind::LLVMFP128TypeKind, FloatKind::Quad),
        (Kind::LLVMPPC_FP128TypeKind, FloatKind::PpcDouble),
    ];
    KINDS.into_iter().find(|(llvm, _)| *llvm as i32 == kind).map(|(_, ours)| ours)
}
