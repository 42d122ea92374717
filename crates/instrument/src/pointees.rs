//! How much memory an argument leads to, as far as types tell: what a function of which nothing is
//! known may write there.

use crate::values::has_opcode;
use llvm::Llvm;
use llvm_sys::debuginfo::LLVMMetadataKind as Kind;
use llvm_sys::prelude::{LLVMContextRef, LLVMMetadataRef, LLVMModuleRef, LLVMValueRef};
use llvm_sys::{LLVMOpcode, LLVMTypeKind as TypeKind};

/// DWARF tags of types.
mod tag {
    pub(super) const POINTER: u16 = 0x0f;
    pub(super) const REFERENCE: u16 = 0x10;
    pub(super) const TYPEDEF: u16 = 0x16;
    pub(super) const CONST: u16 = 0x26;
    pub(super) const VOLATILE: u16 = 0x35;
    pub(super) const RESTRICT: u16 = 0x37;
}

/// Of a subprogram: its type.
const SUBPROGRAM_TYPE: usize = 4;
/// Longer chains of typedefs and qualifiers are malformed.
const LONGEST_CHAIN: usize = 64;
/// No type that says something about a size is smaller: `char *` points to any number of bytes.
const SMALLEST: u64 = 2;

/// The size in bytes of the type that a declared function's parameter points to, by the debug
/// information of the declaration. `None` when it has none (compilers describe declarations in
/// optimised code alone), when it says nothing about a size (`void`, characters, structures that are
/// only declared), and for what cannot be written (`const`).
///
/// # Safety
/// The callee must be alive.
pub unsafe fn declared_size(llvm: &Llvm, callee: LLVMValueRef, index: u8) -> Option<u64> {
    // SAFETY: as the caller promises; only a function is asked for its subprogram.
    unsafe {
        if llvm.LLVMIsAFunction(callee).is_null() {
            return None;
        }
        let subprogram = llvm.LLVMGetSubprogram(callee);
        if subprogram.is_null() {
            return None;
        }
        let debug = Debug { llvm, context: llvm.LLVMGetTypeContext(llvm.LLVMTypeOf(callee)) };
        let types = debug.operand(subprogram, SUBPROGRAM_TYPE)?;
        let types = debug.operands(debug.operand(types, debug.base())?);
        // A result in memory and structures in registers make other parameters of these.
        if types.len() != llvm.LLVMCountParams(callee) as usize + 1 {
            return None;
        }
        debug.pointee(debug.node(types.get(usize::from(index) + 1).copied())?)
    }
}

/// Nodes of the debug information.
struct Debug<'a> {
    llvm: &'a Llvm,
    context: LLVMContextRef,
}

impl Debug<'_> {
    /// Where types keep what they are derived from. Since LLVM 21 size and offset are operands and
    /// come before it.
    fn base(&self) -> usize {
        if self.llvm.version().major >= 21 { 5 } else { 3 }
    }

    /// # Safety
    /// The node must be alive, as in the other functions.
    unsafe fn operands(&self, node: LLVMMetadataRef) -> Vec<LLVMValueRef> {
        // SAFETY: the list has as many places as there are operands.
        unsafe {
            let value = self.llvm.LLVMMetadataAsValue(self.context, node);
            let count = self.llvm.LLVMGetMDNodeNumOperands(value) as usize;
            let mut operands = vec![std::ptr::null_mut(); count];
            self.llvm.LLVMGetMDNodeOperands(value, operands.as_mut_ptr());
            operands
        }
    }

    /// An operand that is a node.
    unsafe fn node(&self, operand: Option<LLVMValueRef>) -> Option<LLVMMetadataRef> {
        let operand = operand.filter(|operand| !operand.is_null())?;
        // SAFETY: operands of a live node are alive.
        unsafe {
            let is_node = !self.llvm.LLVMIsAMDNode(operand).is_null();
            is_node.then(|| self.llvm.LLVMValueAsMetadata(operand))
        }
    }

    unsafe fn operand(&self, node: LLVMMetadataRef, index: usize) -> Option<LLVMMetadataRef> {
        // SAFETY: as the caller promises.
        unsafe { self.node(self.operands(node).get(index).copied()) }
    }

    /// The size of what a pointer or reference leads to.
    unsafe fn pointee(&self, ty: LLVMMetadataRef) -> Option<u64> {
        // SAFETY: types are nodes, and those that they refer to are alive.
        unsafe {
            let (pointer, _) = self.plain(ty)?;
            if !matches!(self.tag(pointer)?, tag::POINTER | tag::REFERENCE) {
                return None;
            }
            let (pointee, constant) = self.plain(self.operand(pointer, self.base())?)?;
            let size = match self.tag(pointee)? {
                tag::POINTER => 8,
                _ => self.llvm.LLVMDITypeGetSizeInBits(pointee) / 8,
            };
            (size >= SMALLEST && !constant).then_some(size)
        }
    }

    /// The type behind typedefs and qualifiers, and whether one of these was `const`.
    unsafe fn plain(&self, mut ty: LLVMMetadataRef) -> Option<(LLVMMetadataRef, bool)> {
        let mut constant = false;
        for _ in 0..LONGEST_CHAIN {
            // SAFETY: as in `pointee`.
            unsafe {
                match self.tag(ty)? {
                    tag::CONST => constant = true,
                    tag::TYPEDEF | tag::VOLATILE | tag::RESTRICT => {}
                    _ => return Some((ty, constant)),
                }
                ty = self.operand(ty, self.base())?;
            }
        }
        None
    }

    /// The tag of a type.
    unsafe fn tag(&self, node: LLVMMetadataRef) -> Option<u16> {
        const TYPES: [i32; 3] = [
            Kind::LLVMDIBasicTypeMetadataKind as i32,
            Kind::LLVMDIDerivedTypeMetadataKind as i32,
            Kind::LLVMDICompositeTypeMetadataKind as i32,
        ];
        // SAFETY: as in `pointee`; only types are asked for their tag.
        unsafe {
            let kind = self.llvm.LLVMGetMetadataKind(node);
            TYPES.contains(&kind).then(|| self.llvm.LLVMGetDINodeTag(node))
        }
    }
}

/// The size in bytes of the structure that a pointer is used for in its function: the largest one
/// whose fields are reached through it.
///
/// # Safety
/// Module and pointer must be alive.
pub unsafe fn used_size(llvm: &Llvm, module: LLVMModuleRef, pointer: LLVMValueRef) -> Option<u64> {
    // SAFETY: as the caller promises; only instructions are asked for their opcode.
    unsafe {
        let mut largest = field_size(llvm, module, pointer);
        // Without optimisation every use loads the pointer anew from its variable.
        let is = |value: LLVMValueRef, opcode| {
            !llvm.LLVMIsAInstruction(value).is_null() && has_opcode(llvm, value, opcode)
        };
        if is(pointer, LLVMOpcode::LLVMLoad) {
            let variable = llvm.LLVMGetOperand(pointer, 0);
            if is(variable, LLVMOpcode::LLVMAlloca) {
                let loads = users(llvm, variable);
                let loads = loads.into_iter().filter(|&user| is(user, LLVMOpcode::LLVMLoad));
                let sizes = loads.filter_map(|load| field_size(llvm, module, load));
                largest = sizes.chain(largest).max();
            }
        }
        largest
    }
}

/// The size of the largest structure whose fields are addressed with this very pointer.
///
/// # Safety
/// As of [`used_size`].
unsafe fn field_size(llvm: &Llvm, module: LLVMModuleRef, pointer: LLVMValueRef) -> Option<u64> {
    // SAFETY: as the caller promises; only address computations are asked for their type.
    unsafe {
        let layout = llvm.LLVMGetModuleDataLayout(module);
        let size = |user: LLVMValueRef| {
            let steps = !llvm.LLVMIsAGetElementPtrInst(user).is_null()
                && llvm.LLVMGetOperand(user, 0) == pointer;
            let ty = steps.then(|| llvm.LLVMGetGEPSourceElementType(user))?;
            let structure = llvm.LLVMGetTypeKind(ty) == TypeKind::LLVMStructTypeKind as i32;
            let sized = structure && llvm.LLVMTypeIsSized(ty) != 0;
            sized.then(|| llvm.LLVMABISizeOfType(layout, ty)).filter(|&size| size >= SMALLEST)
        };
        users(llvm, pointer).into_iter().filter_map(size).max()
    }
}

/// # Safety
/// The value must be alive.
unsafe fn users(llvm: &Llvm, value: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    // SAFETY: as the caller promises. Constants have users in other modules of the context and are
    // not asked.
    unsafe {
        if llvm.LLVMIsConstant(value) != 0 {
            return found;
        }
        let mut next = llvm.LLVMGetFirstUse(value);
        while !next.is_null() {
            found.push(llvm.LLVMGetUser(next));
            next = llvm.LLVMGetNextUse(next);
        }
    }
    found
}
