// What programs know of the library: a stream's state in a structure of theirs.
struct codec {
  const char *next_in;
  unsigned available_in;
  char *next_out;
  unsigned available_out;
  int state;
};
const char *codec_version(void);
int codec_work(struct codec *stream);
void codec_measure(void *object, unsigned long *size);
