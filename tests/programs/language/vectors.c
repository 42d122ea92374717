// Vectors that the user wrote: intrinsics of SSE2, SSE4.1 and AVX2, and vector types of the compiler.
//~ FLAGS: -mavx2 -msse4.2 -mfma
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int int4 __attribute__((vector_size(16)));
typedef float float8 __attribute__((vector_size(32)));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int4 counters = {1, 2, 3, 4};
static int32_t cells[16];
static float8 scale = {1, 2, 3, 4, 5, 6, 7, 8};
static char text[64] = "the quick brown fox jumps over the lazy dog, then rests; good.";

static int find(const char *from, char wanted) {
    __m128i pattern = _mm_set1_epi8(wanted);
    for (int i = 0; i < 64; i += 16) {
        __m128i part = _mm_loadu_si128((const __m128i *)(from + i));
        int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(part, pattern));
        if (mask != 0) {
            return i + __builtin_ctz(mask);
        }
    }
    return -1;
}

static int sum8(const int32_t *values) {
    __m256i all = _mm256_loadu_si256((const __m256i *)values);
    __m128i low = _mm256_castsi256_si128(all);
    __m128i high = _mm256_extracti128_si256(all, 1);
    __m128i sum = _mm_add_epi32(low, high);
    sum = _mm_hadd_epi32(sum, sum);
    sum = _mm_hadd_epi32(sum, sum);
    return _mm_cvtsi128_si32(sum);
}

static void *work(void *argument) {
    int id = *(int *)argument;
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&lock);
        counters = counters * 3 + (int4){id, i, 1, 2};
        counters = __builtin_shufflevector(counters, counters, 1, 2, 3, 0);
        __m256i part = _mm256_loadu_si256((const __m256i *)(cells + 8 * (i & 1)));
        part = _mm256_add_epi32(part, _mm256_set1_epi32(id + i));
        part = _mm256_max_epi32(part, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        _mm256_storeu_si256((__m256i *)(cells + 8 * (i & 1)), part);
        scale = scale * 0.5f + (float8){1, 1, 1, 1, 2, 2, 2, 2};
        if (counters[0] > 1000) {
            counters[0] -= 1000;
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int ids[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, &ids[i]);
        pthread_join(threads[i], NULL);
    }
    printf("%d %d %d %d\n", counters[0], counters[1], counters[2], counters[3]);
    printf("%d %d %g %g\n", sum8(cells), sum8(cells + 8), scale[0], scale[7]);
    printf("%d %d %d\n", find(text, 'q'), find(text, ';'), find(text, '#'));
    __m128i shuffled = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)text),
                                       _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, -1, 9, 10, 11, 15, 14, 13, 12));
    char bytes[16];
    _mm_storeu_si128((__m128i *)bytes, shuffled);
    __m256d d = _mm256_fmadd_pd(_mm256_set1_pd(1.5), _mm256_set_pd(1, 2, 3, 4), _mm256_set1_pd(0.25));
    __m256d blended = _mm256_blendv_pd(d, _mm256_sqrt_pd(d), _mm256_cmp_pd(d, _mm256_set1_pd(4), _CMP_GT_OQ));
    double out[4];
    _mm256_storeu_pd(out, blended);
    printf("%d %g %g %d\n", bytes[8] == 0 && bytes[0] == ' ', out[0], out[3],
           _mm_cvtsi128_si32(_mm_mullo_epi32(_mm_set1_epi32(7), _mm_set1_epi32(9))));
    uint32_t crc = 0;
    for (int i = 0; i < 8; i++) {
        crc = _mm_crc32_u8(crc, (unsigned char)text[i]);
    }
    __m128i packed = _mm_packus_epi16(_mm_set1_epi16(300), _mm_set1_epi16(-5));
    __m128i sad = _mm_sad_epu8(packed, _mm_set1_epi8(3));
    __m128i shifted = _mm_srli_epi64(_mm_slli_si128(sad, 4), 3);
    printf("%u %d %d %d\n", crc, _mm_extract_epi16(sad, 0), _mm_extract_epi16(shifted, 2),
           _mm_testz_si128(sad, sad));
    if (sum8(cells) < sum8(cells + 8) - 1000) {
        return 1;
    }
    return 0;
}
