//! Constants. Addresses are folded to a symbol plus an offset wherever that is possible.

use super::instructions::opcode;
use super::{Reader, call};
use crate::types::{ConstId, Constant, ConstantKind, InstKind, Operand, Type, TypeId};
use llvm::llvm_sys::LLVMValueKind as Kind;
use llvm::llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};

/// `LLVMGetValueKind` of the kinds that are told apart here.
mod kind {
    use super::Kind;
    pub(super) const FUNCTION: i32 = Kind::LLVMFunctionValueKind as i32;
    pub(super) const ALIAS: i32 = Kind::LLVMGlobalAliasValueKind as i32;
    pub(super) const GLOBAL: i32 = Kind::LLVMGlobalVariableValueKind as i32;
    pub(super) const BLOCK_ADDRESS: i32 = Kind::LLVMBlockAddressValueKind as i32;
    pub(super) const EXPRESSION: i32 = Kind::LLVMConstantExprValueKind as i32;
    pub(super) const ARRAY: i32 = Kind::LLVMConstantArrayValueKind as i32;
    pub(super) const STRUCT: i32 = Kind::LLVMConstantStructValueKind as i32;
    pub(super) const VECTOR: i32 = Kind::LLVMConstantVectorValueKind as i32;
    pub(super) const UNDEF: i32 = Kind::LLVMUndefValueValueKind as i32;
    pub(super) const POISON: i32 = Kind::LLVMPoisonValueKind as i32;
    pub(super) const ZERO: i32 = Kind::LLVMConstantAggregateZeroValueKind as i32;
    pub(super) const DATA_ARRAY: i32 = Kind::LLVMConstantDataArrayValueKind as i32;
    pub(super) const DATA_VECTOR: i32 = Kind::LLVMConstantDataVectorValueKind as i32;
    pub(super) const INT: i32 = Kind::LLVMConstantIntValueKind as i32;
    pub(super) const FLOAT: i32 = Kind::LLVMConstantFPValueKind as i32;
    pub(super) const NULL: i32 = Kind::LLVMConstantPointerNullValueKind as i32;
}

impl Reader<'_> {
    /// The identifier of a constant.
    pub(super) fn constant(&mut self, value: LLVMValueRef) -> ConstId {
        if let Some(&id) = self.constants.get(&value) {
            return id;
        }
        let ty = self.ty(call!(self, LLVMTypeOf(value)));
        let kind = self.constant_kind(value, ty);
        let id = self.push_constant(ty, kind);
        self.constants.insert(value, id);
        id
    }

    fn push_constant(&mut self, ty: TypeId, kind: ConstantKind) -> ConstId {
        let id = ConstId(u32::try_from(self.module.constants.len()).unwrap_or(u32::MAX));
        self.module.constants.push(Constant { ty, kind });
        id
    }

    fn constant_kind(&mut self, value: LLVMValueRef, ty: TypeId) -> ConstantKind {
        match call!(self, LLVMGetValueKind(value)) {
            kind::INT => ConstantKind::Int(self.int_words(value)),
            kind::FLOAT => ConstantKind::Float(self.float_words(value)),
            kind::NULL => ConstantKind::Null,
            kind::ZERO => ConstantKind::Zero,
            kind::UNDEF | kind::POISON => ConstantKind::Undef,
            kind::ARRAY | kind::STRUCT | kind::VECTOR => self.aggregate(value),
            kind::DATA_ARRAY | kind::DATA_VECTOR => self.data(value, ty),
            kind::FUNCTION => match self.functions.get(&value) {
                Some(&function) => ConstantKind::Function(function, 0),
                None => self.unknown(value),
            },
            kind::GLOBAL => match self.globals.get(&value) {
                Some(&global) => ConstantKind::Global(global, 0),
                None => self.unknown(value),
            },
            kind::ALIAS => {
                let target = self.constant(call!(self, LLVMAliasGetAliasee(value)));
                self.kind_of(target)
            }
            kind::BLOCK_ADDRESS => self.block_address(value),
            kind::EXPRESSION => self.expression(value),
            _ => self.unknown(value),
        }
    }

    fn kind_of(&self, id: ConstId) -> ConstantKind {
        match self.module.constants.get(id.index()) {
            Some(constant) => constant.kind.clone(),
            None => ConstantKind::Unknown(id.to_string()),
        }
    }

    fn unknown(&self, value: LLVMValueRef) -> ConstantKind {
        ConstantKind::Unknown(self.text(value))
    }

    /// The value as LLVM prints it.
    pub(super) fn text(&self, value: LLVMValueRef) -> String {
        // SAFETY: the value is alive, and the message ours.
        unsafe { self.llvm.owned_message(self.llvm.LLVMPrintValueToString(value)) }
    }

    /// An integer's words, least significant first.
    fn int_words(&self, value: LLVMValueRef) -> Vec<u64> {
        let width = call!(self, LLVMGetIntTypeWidth(call!(self, LLVMTypeOf(value))));
        if width <= 64 {
            return vec![call!(self, LLVMConstIntGetZExtValue(value))];
        }
        // The C API returns 64 bits only; the printed form (`i128 -5`) has all of them.
        let text = self.text(value);
        parse_decimal(text.rsplit(' ').next().unwrap_or_default(), width)
    }

    /// A floating-point number's bits: LLVM folds the bit-cast to an integer.
    fn float_words(&self, value: LLVMValueRef) -> Vec<u64> {
        let ty = call!(self, LLVMTypeOf(value));
        let bits = call!(self, LLVMSizeOfTypeInBits(self.layout, ty));
        let width = u32::try_from(bits).unwrap_or(64);
        let integer = call!(self, LLVMIntTypeInContext(self.context, width));
        let folded = call!(self, LLVMConstBitCast(value, integer));
        if call!(self, LLVMGetValueKind(folded)) == kind::INT {
            return self.int_words(folded);
        }
        let mut inexact = 0;
        vec![call!(self, LLVMConstRealGetDouble(value, &mut inexact)).to_bits()]
    }

    fn aggregate(&mut self, value: LLVMValueRef) -> ConstantKind {
        // SAFETY: the value is alive.
        let elements: Vec<LLVMValueRef> = unsafe { self.llvm.operands(value) }.collect();
        ConstantKind::Aggregate(elements.into_iter().map(|e| self.constant(e)).collect())
    }

    /// An array or vector of numbers that LLVM keeps packed.
    fn data(&mut self, value: LLVMValueRef, ty: TypeId) -> ConstantKind {
        let (element, count) = match self.module.types.get(ty.index()) {
            Some(Type::Array { element, length }) => (*element, *length),
            Some(Type::Vector { element, length }) => (*element, u64::from(*length)),
            _ => return self.unknown(value),
        };
        if matches!(self.module.types.get(element.index()), Some(Type::Int(_))) {
            let mut length = 0;
            let start = call!(self, LLVMGetAsString(value, &mut length)).cast::<u8>();
            // SAFETY: LLVM returned the length with the start; packed data is little-endian on a
            // little-endian host.
            let bytes = unsafe { std::slice::from_raw_parts(start, length) };
            return ConstantKind::Bytes(bytes.to_vec());
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let elements = (0..count).map(|index| {
            let element = call!(self, LLVMGetAggregateElement(value, index));
            self.constant(element)
        });
        ConstantKind::Aggregate(elements.collect())
    }

    fn block_address(&mut self, value: LLVMValueRef) -> ConstantKind {
        let block = call!(self, LLVMGetBlockAddressBasicBlock(value));
        match self.blocks.get(&block) {
            Some(&(function, block)) => ConstantKind::BlockAddress(function, block),
            None => self.unknown(value),
        }
    }

    fn expression(&mut self, value: LLVMValueRef) -> ConstantKind {
        let code = call!(self, LLVMGetConstOpcode(value));
        match code {
            opcode::GEP => self.constant_gep(value),
            opcode::BIT_CAST | opcode::ADDR_SPACE_CAST => {
                let inner = self.constant(call!(self, LLVMGetOperand(value, 0)));
                match self.kind_of(inner) {
                    kind @ (ConstantKind::Global(..) | ConstantKind::Function(..)) => kind,
                    _ => self.expression_of(code, value),
                }
            }
            _ => self.expression_of(code, value),
        }
    }

    /// The instruction that the expression stands for.
    fn expression_of(&mut self, code: i32, value: LLVMValueRef) -> ConstantKind {
        match self.simple_instruction(code, value) {
            Some(kind) => ConstantKind::Expression(Box::new(kind)),
            None => self.unknown(value),
        }
    }

    /// A symbol plus an offset, or an expression when the base is none.
    fn constant_gep(&mut self, value: LLVMValueRef) -> ConstantKind {
        let Some(InstKind::Gep { base: Operand::Const(base), source, offset, terms }) =
            self.gep(value)
        else {
            return self.unknown(value);
        };
        if terms.is_empty() {
            match self.kind_of(base) {
                ConstantKind::Global(global, start) => {
                    return ConstantKind::Global(global, start.wrapping_add(offset));
                }
                ConstantKind::Function(function, start) => {
                    return ConstantKind::Function(function, start.wrapping_add(offset));
                }
                _ => {}
            }
        }
        let base = Operand::Const(base);
        ConstantKind::Expression(Box::new(InstKind::Gep { base, source, offset, terms }))
    }

    /// The value of a constant integer of at most 64 bits, sign-extended.
    pub(super) fn small_int(&self, value: LLVMValueRef) -> Option<i64> {
        let int = call!(self, LLVMGetValueKind(value)) == kind::INT;
        let ty: LLVMTypeRef = call!(self, LLVMTypeOf(value));
        (int && call!(self, LLVMGetIntTypeWidth(ty)) <= 64)
            .then(|| call!(self, LLVMConstIntGetSExtValue(value)))
    }
}

/// A decimal number in two's complement of `width` bits.
fn parse_decimal(text: &str, width: u32) -> Vec<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let mut words = vec![0_u64; width.div_ceil(64) as usize];
    for digit in digits.bytes().filter(u8::is_ascii_digit) {
        let mut carry = u128::from(digit - b'0');
        for word in &mut words {
            let product = u128::from(*word) * 10 + carry;
            *word = product as u64;
            carry = product >> 64;
        }
    }
    if negative {
        let mut carry = true;
        for word in &mut words {
            (*word, carry) = (!*word).overflowing_add(u64::from(carry));
        }
    }
    let spare = width % 64;
    if let Some(last) = words.last_mut().filter(|_| spare != 0) {
        *last &= (1 << spare) - 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::parse_decimal;

    #[test]
    fn wide_integers_keep_all_their_bits() {
        assert_eq!(parse_decimal("18446744073709551616", 128), [0, 1]);
        assert_eq!(parse_decimal("-1", 128), [u64::MAX, u64::MAX]);
        assert_eq!(parse_decimal("-18446744073709551616", 128), [0, u64::MAX]);
        assert_eq!(parse_decimal("-1", 80), [u64::MAX, 0xffff]);
    }
}
