// The same with LLVM's library, where the string's lowest bit says whether the text lies in the string itself.
//~ FLAGS: -stdlib=libc++
//~ LOG: 6000000
#include "strings.cc"
