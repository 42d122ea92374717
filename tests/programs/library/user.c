// Structures that a library changes are reached through parameters and lie on the heap: only their
// types say how large they are. The library's constant texts are read in a loop. System calls are made
// through a table.
#include "codec.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct {
  const char *name;
  ssize_t (*call)(int, void *, size_t);
} calls[] = {{"read", read}};

static int version_number(void) {
  const char *at = codec_version();
  int number = 0, part = 0;
  do {
    if (*at >= '0' && *at <= '9') {
      part = 10 * part + *at - '0';
    } else {
      number = number * 100 + part;
      part = 0;
    }
  } while (*at++);
  return number;
}

static __attribute__((noinline)) unsigned work(struct codec *stream, char *out, unsigned room) {
  unsigned before = room, done = 0;
  do {
    stream->next_out = out + done;
    stream->available_out = 4;
    codec_work(stream);
    done += 4 - stream->available_out;
  } while (stream->available_out == 0 && done < before);
  return done;
}

// Only the declaration tells what the pointer leads to, and compilers describe it in optimised code
// alone.
static __attribute__((noinline)) void measure(unsigned long *size) {
#ifdef __OPTIMIZE__
  codec_measure("x", size);
#else
  *size = 40;
#endif
}

static char first_of_pipe(void) {
  int ends[2];
  char *text = calloc(1, 16);
  if (pipe(ends) || write(ends[1], "quick", 5) != 5) abort();
  if (calls[0].call(ends[0], text, 16) != 5) abort();
  char first = text[0] == 'q' && !text[5] ? text[4] : 0;
  free(text);
  return first;
}

static void *user(void *unused) {
  (void)unused;
  char out[32];
  struct codec *stream = calloc(1, sizeof *stream);
  unsigned long *size = malloc(sizeof *size);
  stream->next_in = "some text";
  stream->available_in = 9;
  unsigned done = work(stream, out, sizeof out);
  measure(size);
  if (done != 9 || stream->state != 3 || *size != 40) abort();
  free(stream);
  free(size);
  return NULL;
}

int main(void) {
  pthread_t thread;
  if (version_number() != 21704 || first_of_pipe() != 'k') abort();
  pthread_create(&thread, NULL, user, NULL);
  pthread_join(thread, NULL);
  puts("ok");
}
