//! Types of the debug information, as far as naming needs them.

use super::{Reader, call};
use crate::name::rust;
use crate::types::{BitRange, DebugEncoding, DebugMember, DebugType, DebugTypeId};
use llvm::llvm_sys::debuginfo::LLVMMetadataKind as Kind;
use llvm::llvm_sys::prelude::{LLVMMetadataRef, LLVMValueRef};

/// DWARF tags.
mod tag {
    pub(super) const ARRAY: u16 = 0x01;
    pub(super) const CLASS: u16 = 0x02;
    pub(super) const ENUMERATION: u16 = 0x04;
    pub(super) const MEMBER: u16 = 0x0d;
    pub(super) const POINTER: u16 = 0x0f;
    pub(super) const REFERENCE: u16 = 0x10;
    pub(super) const STRUCTURE: u16 = 0x13;
    pub(super) const TYPEDEF: u16 = 0x16;
    pub(super) const UNION: u16 = 0x17;
    pub(super) const INHERITANCE: u16 = 0x1c;
    pub(super) const SUBRANGE: u16 = 0x21;
    pub(super) const BASE: u16 = 0x24;
    pub(super) const CONST: u16 = 0x26;
    pub(super) const VARIANT_PART: u16 = 0x33;
    pub(super) const VOLATILE: u16 = 0x35;
    pub(super) const RESTRICT: u16 = 0x37;
    pub(super) const RVALUE_REFERENCE: u16 = 0x42;
    pub(super) const ATOMIC: u16 = 0x47;
}

/// `DIFlags` bits.
mod flag {
    pub(super) const VIRTUAL: i32 = 1 << 5;
    pub(super) const STATIC_MEMBER: i32 = 1 << 12;
    pub(super) const BIT_FIELD: i32 = 1 << 19;
}

/// Of a type and of a namespace: what it stands in, and its name.
const SCOPE: usize = 1;
const TYPE_NAME: usize = 2;
/// Namespaces nest this deep at most; more is malformed.
const DEEPEST_NAMESPACE: usize = 64;
/// Of a composite type, behind the type that it is based on: how compilers know it.
const IDENTIFIER: usize = 4;

impl Reader<'_> {
    /// The type that an operand refers to.
    pub(super) fn debug_type_at(
        &mut self,
        operands: &[LLVMValueRef],
        index: usize,
    ) -> Option<DebugTypeId> {
        let node = self.node(operands.get(index).copied())?;
        Some(self.debug_type(node))
    }

    /// Where a derived or composite type keeps its base type. Since LLVM 21 size and offset are
    /// operands and come before it.
    fn base_index(&self) -> usize {
        if self.llvm.version().major >= 21 { 5 } else { 3 }
    }

    /// The result's type of a function's type; `None` for one without a result.
    pub(super) fn first_of_signature(&mut self, signature: LLVMMetadataRef) -> Option<DebugTypeId> {
        let operands = self.operands_of(signature);
        let types = self.node(operands.get(self.base_index()).copied())?;
        let types = self.operands_of(types);
        self.debug_type_at(&types, 0)
    }

    fn debug_type(&mut self, node: LLVMMetadataRef) -> DebugTypeId {
        if let Some(&id) = self.debug_types.get(&node) {
            return id;
        }
        // The identifier is given first: a struct may point to itself.
        let id = self.push_debug_type(DebugType::Other);
        self.debug_types.insert(node, id);
        let converted = self.convert_debug_type(node);
        if let Some(slot) = self.module.debug.types.get_mut(id.index()) {
            *slot = converted;
        }
        id
    }

    fn push_debug_type(&mut self, ty: DebugType) -> DebugTypeId {
        let id = DebugTypeId(u32::try_from(self.module.debug.types.len()).unwrap_or(u32::MAX));
        self.module.debug.types.push(ty);
        id
    }

    fn convert_debug_type(&mut self, node: LLVMMetadataRef) -> DebugType {
        const BASIC: i32 = Kind::LLVMDIBasicTypeMetadataKind as i32;
        const DERIVED: i32 = Kind::LLVMDIDerivedTypeMetadataKind as i32;
        const COMPOSITE: i32 = Kind::LLVMDICompositeTypeMetadataKind as i32;
        let operands = self.operands_of(node);
        match call!(self, LLVMGetMetadataKind(node)) {
            BASIC if call!(self, LLVMGetDINodeTag(node)) == tag::BASE => DebugType::Basic {
                name: self.string(&operands, TYPE_NAME),
                size: self.debug_size(node),
                encoding: self.encoding(node),
            },
            DERIVED => self.derived(node, &operands),
            COMPOSITE => self.composite(node, &operands),
            _ => DebugType::Other,
        }
    }

    fn derived(&mut self, node: LLVMMetadataRef, operands: &[LLVMValueRef]) -> DebugType {
        let base = self.debug_type_at(operands, self.base_index());
        match call!(self, LLVMGetDINodeTag(node)) {
            // Rust's pointers have names, and its programs write no arrow to go through one.
            tag::POINTER if !self.string(operands, TYPE_NAME).is_empty() => {
                DebugType::Reference(base)
            }
            tag::POINTER => DebugType::Pointer(base),
            tag::REFERENCE | tag::RVALUE_REFERENCE => DebugType::Reference(base),
            tag::TYPEDEF | tag::CONST | tag::VOLATILE | tag::RESTRICT | tag::ATOMIC => {
                DebugType::Alias(base)
            }
            _ => DebugType::Other,
        }
    }

    fn composite(&mut self, node: LLVMMetadataRef, operands: &[LLVMValueRef]) -> DebugType {
        let elements = operands.get(self.base_index() + 1).copied();
        let elements = self.node(elements).map(|list| self.operands_of(list)).unwrap_or_default();
        let rust = self.is_rusts(operands).then(|| self.is_of_rusts_library(operands));
        match call!(self, LLVMGetDINodeTag(node)) {
            kind @ (tag::STRUCTURE | tag::CLASS | tag::UNION | tag::VARIANT_PART) => {
                let name = self.string(operands, TYPE_NAME);
                let lambda = kind == tag::CLASS && name.is_empty();
                DebugType::Composite {
                    size: self.debug_size(node),
                    members: elements.into_iter().filter_map(|e| self.member(e, rust)).collect(),
                    closure: lambda || name.starts_with("{closure_env"),
                    name,
                }
            }
            tag::ENUMERATION => DebugType::Enumeration {
                name: self.string(operands, TYPE_NAME),
                size: self.debug_size(node),
            },
            tag::ARRAY => self.array(operands, &elements),
            _ => DebugType::Other,
        }
    }

    /// An array; the last dimension is the innermost.
    fn array(&mut self, operands: &[LLVMValueRef], elements: &[LLVMValueRef]) -> DebugType {
        let mut element = self.debug_type_at(operands, self.base_index());
        let lengths: Vec<u64> = elements.iter().map(|&range| self.range_length(range)).collect();
        let Some((&length, inner)) = lengths.split_first() else {
            return DebugType::Array { element, length: 0 };
        };
        for &length in inner.iter().rev() {
            element = Some(self.push_debug_type(DebugType::Array { element, length }));
        }
        DebugType::Array { element, length }
    }

    /// The number of elements of a subrange; 0 when it is not constant.
    fn range_length(&self, range: LLVMValueRef) -> u64 {
        let Some(node) = self.node(Some(range)) else { return 0 };
        if call!(self, LLVMGetDINodeTag(node)) != tag::SUBRANGE {
            return 0;
        }
        let count = self.operands_of(node).first().copied();
        count.and_then(|count| self.constant_operand(count)).unwrap_or(0)
    }

    /// An operand that is a non-negative constant.
    fn constant_operand(&self, operand: LLVMValueRef) -> Option<u64> {
        if operand.is_null() || call!(self, LLVMIsAConstantInt(operand)).is_null() {
            return None;
        }
        u64::try_from(self.small_int(operand)?).ok()
    }

    /// A non-static data member, a base class, or the variants of a Rust enum.
    /// `rust` says of a type of rustc's whether it is one of the standard library.
    fn member(&mut self, element: LLVMValueRef, rust: Option<bool>) -> Option<DebugMember> {
        const DERIVED: i32 = Kind::LLVMDIDerivedTypeMetadataKind as i32;
        const COMPOSITE: i32 = Kind::LLVMDICompositeTypeMetadataKind as i32;
        let node = self.node(Some(element))?;
        let kind = call!(self, LLVMGetMetadataKind(node));
        let tag = match kind {
            DERIVED | COMPOSITE => call!(self, LLVMGetDINodeTag(node)),
            _ => return None,
        };
        if tag == tag::VARIANT_PART {
            let ty = Some(self.debug_type(node));
            return Some(DebugMember { name: String::new(), offset: 0, ty, bits: None });
        }
        let flags = call!(self, LLVMDITypeGetFlags(node));
        // The offset of a virtual base is known at run time only.
        let at_fixed_offset = match tag {
            tag::MEMBER => flags & flag::STATIC_MEMBER == 0,
            tag::INHERITANCE => flags & flag::VIRTUAL == 0,
            _ => false,
        };
        (kind == DERIVED && at_fixed_offset).then(|| {
            let member = self.data_member(node, tag, flags);
            match rust {
                Some(wraps) => DebugMember { name: rust::member(member.name, wraps), ..member },
                None => member,
            }
        })
    }

    /// Is it a type of rustc's?
    fn is_rusts(&self, operands: &[LLVMValueRef]) -> bool {
        rust::is_identifier(&self.string(operands, self.base_index() + IDENTIFIER))
    }

    /// Is a type of Rust one of the standard library, or of a package that wraps what a program keeps, by the namespaces that it
    /// stands in?
    fn is_of_rusts_library(&self, operands: &[LLVMValueRef]) -> bool {
        const NAMESPACE: i32 = Kind::LLVMDINamespaceMetadataKind as i32;
        let mut scope = self.node(operands.get(SCOPE).copied());
        let mut outermost = String::new();
        for _ in 0..DEEPEST_NAMESPACE {
            let Some(node) = scope else { break };
            let operands = self.operands_of(node);
            let named = call!(self, LLVMGetMetadataKind(node)) == NAMESPACE;
            outermost = if named { self.string(&operands, TYPE_NAME) } else { String::new() };
            scope = self.node(operands.get(SCOPE).copied());
        }
        rust::wraps(&outermost)
    }

    fn data_member(&mut self, node: LLVMMetadataRef, tag: u16, flags: i32) -> DebugMember {
        let operands = self.operands_of(node);
        let ty = self.debug_type_at(&operands, self.base_index());
        let bit_offset = call!(self, LLVMDITypeGetOffsetInBits(node));
        let storage = (flags & flag::BIT_FIELD != 0)
            .then(|| operands.get(self.base_index() + 1).copied())
            .flatten()
            .and_then(|storage| self.constant_operand(storage));
        let bits = storage.map(|storage| BitRange {
            first: bit_offset.saturating_sub(storage),
            width: call!(self, LLVMDITypeGetSizeInBits(node)),
        });
        let name = match tag {
            tag::INHERITANCE => String::new(),
            _ => self.string(&operands, TYPE_NAME),
        };
        DebugMember { name, offset: storage.unwrap_or(bit_offset) / 8, ty, bits }
    }

    fn debug_size(&self, node: LLVMMetadataRef) -> u64 {
        call!(self, LLVMDITypeGetSizeInBits(node)) / 8
    }

    /// The C API has no getter for the encoding, but prints it.
    fn encoding(&self, node: LLVMMetadataRef) -> DebugEncoding {
        let text = self.text(call!(self, LLVMMetadataAsValue(self.context, node)));
        let encoding = text.split_once("encoding: DW_ATE_").map_or("", |(_, rest)| rest);
        let end = encoding.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        match &encoding[..end.unwrap_or(encoding.len())] {
            "signed" => DebugEncoding::Signed,
            "unsigned" => DebugEncoding::Unsigned,
            "boolean" => DebugEncoding::Bool,
            "signed_char" | "unsigned_char" | "UTF" | "ASCII" => DebugEncoding::Char,
            "float" => DebugEncoding::Float,
            _ => DebugEncoding::Other,
        }
    }
}
