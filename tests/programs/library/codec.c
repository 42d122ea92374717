// A library that was not built with `symbiosis cc`.
#include "codec.h"

const char *codec_version(void) { return "2.17.4"; }

int codec_work(struct codec *stream) {
  while (stream->available_in && stream->available_out) {
    *stream->next_out++ = *stream->next_in++ ^ 1;
    stream->available_in--;
    stream->available_out--;
  }
  return ++stream->state;
}

void codec_measure(void *object, unsigned long *size) { *size = *(char *)object == 'x' ? 40 : 30; }
