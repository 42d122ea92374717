int twice(int n);
int uses(int n);

int main(void) {
  int sum = 0;
  for (int i = 0; i < 3; i++) sum += twice(i) + uses(i);
  return sum != 2 * (40 + 42 + 44);
}
