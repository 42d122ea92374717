// A library whose `twice` is another function's for the program and for the library itself.
int twice(int n) { return n > 10 ? n * 2 : n + 1; }
int uses(int n) { return twice(n); }
