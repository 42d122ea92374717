// Streams whose state the program reads in inline functions, among variables that threads share at the same place of the
// stack. What the library leaves in a stream is an input.
//~ FLAGS: -std=c++17
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

static const char *const NAME = "streams-of-numbers.txt";

static int written()
{
    std::ofstream out(NAME);
    for (int i = 1; i <= 3; i++) {
        out << i << '\n';
    }
    return out ? 1 : 0;
}

static int sum_of(std::istream &in)
{
    int sum = 0, number;
    while (in >> number) {
        sum += number;
    }
    return sum;
}

static int read_whole()
{
    std::ifstream in(NAME);
    int sum = 0, number;
    while (in >> number) {
        sum += number;
    }
    return in.eof() ? sum : -1;
}

static int read_by_base()
{
    std::ifstream in(NAME);
    int sum = sum_of(in);
    std::istringstream more("4 5 x");
    return sum + sum_of(more);
}

static int shared_sum()
{
    int numbers[150] = {0};
    std::thread other([&numbers] {
        for (int i = 0; i < 150; i++) {
            numbers[i] += i;
        }
    });
    other.join();
    int sum = 0;
    for (int number : numbers) {
        sum += number;
    }
    return sum;
}

int main()
{
    std::printf("%d\n", written());
    std::printf("%d\n", shared_sum());
    std::printf("%d\n", read_whole());
    std::printf("%d\n", read_by_base());
    std::remove(NAME);
    return 0;
}
