#define RESULT %eax
    .text
    .globl twist
    .type twist, @function
twist:
    leal 1(%rdi), RESULT
    ret
    .size twist, .-twist
    .section .note.GNU-stack,"",@progbits
