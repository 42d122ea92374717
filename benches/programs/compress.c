// A compressor: hash chains find earlier occurrences, a Huffman code of the symbols gives the
// length. Threads take blocks of generated text in turn.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16, BLOCKS = 500, THREADS = 2, HASH = 1 << 13, LONGEST = 130, SYMBOLS = 512 };

struct state {
  uint8_t text[BLOCK];
  int head[HASH], previous[BLOCK];
  uint32_t counts[SYMBOLS];
  uint64_t bits;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_block;
static uint64_t total;

static void generate(uint8_t *text, uint32_t seed) {
  static const char *const words[] = {"the",  "schedule", "of",    "a",    "thread", "failed",
                                      "lock", "value",    "order", "read", "write",  "and"};
  int at = 0;
  while (at < BLOCK) {
    seed = seed * 1103515245 + 12345;
    const char *word = words[(seed >> 16) % 12];
    for (int i = 0; word[i] && at < BLOCK; i++) text[at++] = (uint8_t)word[i];
    if (at < BLOCK) text[at++] = (seed >> 8) % 7 ? ' ' : (uint8_t)('0' + (seed >> 20) % 10);
  }
}

static uint32_t hash(const uint8_t *at) {
  return ((uint32_t)at[0] << 10 ^ (uint32_t)at[1] << 5 ^ at[2]) % HASH;
}

static int match(const uint8_t *text, int before, int at) {
  int length = 0;
  while (at + length < BLOCK && length < LONGEST && text[before + length] == text[at + length])
    length++;
  return length;
}

static void find(struct state *state) {
  memset(state->head, -1, sizeof state->head);
  memset(state->counts, 0, sizeof state->counts);
  for (int at = 0; at + 3 < BLOCK;) {
    uint32_t key = hash(state->text + at);
    int best = 0, tries = 0;
    for (int before = state->head[key]; before >= 0 && tries < 24; tries++) {
      int length = match(state->text, before, at);
      if (length > best) best = length;
      before = state->previous[before];
    }
    state->previous[at] = state->head[key];
    state->head[key] = at;
    if (best >= 3) {
      state->counts[256 + best]++;
      at += best;
    } else {
      state->counts[state->text[at]]++;
      at++;
    }
  }
}

// Repeatedly joins the two rarest; the sum of the joints is the length of the code in bits.
static uint64_t code_length(uint32_t *counts) {
  uint64_t bits = 0;
  for (;;) {
    int a = -1, b = -1;
    for (int i = 0; i < SYMBOLS; i++) {
      if (counts[i] == 0) continue;
      if (a < 0 || counts[i] < counts[a]) {
        b = a;
        a = i;
      } else if (b < 0 || counts[i] < counts[b]) {
        b = i;
      }
    }
    if (b < 0) return bits;
    counts[b] += counts[a];
    counts[a] = 0;
    bits += counts[b];
  }
}

static void *compress(void *unused) {
  (void)unused;
  struct state *state = malloc(sizeof *state);
  for (;;) {
    pthread_mutex_lock(&lock);
    int block = next_block++;
    pthread_mutex_unlock(&lock);
    if (block >= BLOCKS) break;
    generate(state->text, (uint32_t)block);
    find(state);
    uint64_t bits = code_length(state->counts);
    pthread_mutex_lock(&lock);
    total += bits;
    pthread_mutex_unlock(&lock);
  }
  free(state);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, compress, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  printf("%llu\n", (unsigned long long)total / 8);
  return 0;
}
