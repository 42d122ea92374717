// Computed goto, large switches, tail calls, variable-length arrays, inline assembly.
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

enum code { PUSH, ADD, MULTIPLY, DUPLICATE, JUMP_IF, DROP, HALT };

__attribute__((noinline)) static long interpret(const unsigned char *code) {
    static const void *const labels[] = {&&push, &&add, &&multiply, &&duplicate, &&jump, &&drop, &&halt};
    long stack[16];
    int top = 0;
    int steps = 0;
#define NEXT goto *labels[*code++]
    NEXT;
push:
    stack[top++] = *code++;
    NEXT;
add:
    top--;
    stack[top - 1] += stack[top];
    NEXT;
multiply:
    top--;
    stack[top - 1] *= stack[top];
    NEXT;
duplicate:
    stack[top] = stack[top - 1];
    top++;
    NEXT;
jump:
    if (++steps < 4) {
        code -= *code;
    } else {
        code++;
    }
    NEXT;
drop:
    top--;
    NEXT;
halt:
    return stack[top - 1];
}

__attribute__((noinline)) static int classify(int value) {
    switch (value) {
    case 0: return 3;
    case 1: return 1;
    case 2: return 4;
    case 3: return 1;
    case 4: return 5;
    case 5: return 9;
    case 6: return 2;
    case 7: return 6;
    case 20 ... 40: return 77;
    case 1000: return -1;
    case 100000: return -2;
    case -5: return -3;
    default: return 0;
    }
}

__attribute__((noinline)) static long count_down(long value, long sum) {
    if (value == 0) {
        return sum;
    }
    __attribute__((musttail)) return count_down(value - 1, sum + value);
}

static long even(long value, long depth);
__attribute__((noinline)) static long odd(long value, long depth) {
    if (value == 0) {
        return -depth;
    }
    __attribute__((musttail)) return even(value - 1, depth + 1);
}
__attribute__((noinline)) static long even(long value, long depth) {
    if (value == 0) {
        return depth;
    }
    __attribute__((musttail)) return odd(value - 1, depth + 1);
}

typedef long (*step)(long, long);
static step volatile steps[2] = {even, odd};
__attribute__((noinline)) static long through(long which, long value) {
    step chosen = steps[which];
    __attribute__((musttail)) return chosen(value, 1000);
}

__attribute__((noinline)) static long arrays(int count) {
    int values[count];
    char *bytes = alloca(count * 2);
    memset(bytes, 3, count * 2);
    for (int i = 0; i < count; i++) {
        values[i] = i * bytes[i];
    }
    long sum = 0;
    for (int i = 0; i < count; i++) {
        sum += values[count - 1 - i];
    }
    int matrix[count][count + 1];
    matrix[count - 1][count] = (int)sum;
    return matrix[count - 1][count];
}

static uint64_t rotate(uint64_t value) {
    __asm__("rolq $13, %0" : "+r"(value) : : "cc");
    return value;
}

static void *work(void *argument) {
    int id = *(int *)argument;
    unsigned char code[] = {PUSH, 3, PUSH, (unsigned char)(2 + id), ADD, DUPLICATE, MULTIPLY, PUSH, 1, ADD, JUMP_IF, 6, HALT};
    long got = interpret(code) % 1000003;
    for (int i = -6; i < 45; i += 3) {
        got += classify(i + id);
    }
    got += classify(1000) + classify(100000);
    got += count_down(20 + id, 0) + even(9 + id, 0) + through(id, 7);
    got += arrays(5 + id);
    got += (long)(rotate((uint64_t)(5 + id)) % 97);
    pthread_mutex_lock(&lock);
    total += got;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int ids[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, &ids[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%ld\n", total);
    return total > 0 ? 0 : 1;
}
