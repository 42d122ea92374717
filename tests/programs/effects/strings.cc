// Members of std::string that change a part of the text: what is read afterwards is as in the log, and
// the log does not have the whole string each time.
//~ LOG: 6000000
#include <cassert>
#include <string>
#include <thread>

static unsigned sum(const std::string &text) {
    unsigned result = 0;
    for (char c : text) {
        result = result * 31 + static_cast<unsigned char>(c);
    }
    return result;
}

/// Appending, from a text in the string itself to one that has grown several times.
static unsigned appended(int first) {
    unsigned result = 0;
    std::string text;
    for (int i = 0; i < 40; i++) {
        text.append(1, static_cast<char>('a' + (i + first) % 26));
        result ^= sum(text);
    }
    text.append(text).append(text, 3, 7).append({'x', 'y'});
    text += text;
    text += "end";
    text.reserve(4000);
    result += sum(text);
    text.shrink_to_fit();
    for (int i = 0; i < 6000; i++) {
        text.append(1, '-');
    }
    return result + sum(text);
}

/// Changes in the middle, within the string's own buffer, out of it, and of parts of itself.
static unsigned edited(const std::string &other) {
    unsigned result = 0;
    std::string text("hello");
    for (int i = 0; i < 20; i++) {
        text.insert(2, 1, static_cast<char>('x' + i % 3));
        text.insert(text.begin() + i, 'k');
        text.replace(3, 2, "longer");
        result += sum(text);
    }
    for (int i = 0; i < 10; i++) {
        text.replace(3, 6, "sh", 2).erase(0, 1);
        text.erase(text.begin() + 2);
        text.pop_back();
        result += sum(text);
    }
    text.insert(3, other).insert(0, "abc").insert(5, "abcdef", 3).insert(5, other, 2, 3);
    text.insert(4, text).insert(2, text.c_str() + 3, 5);
    result += sum(text);
    text.replace(2, 5, other).replace(2, 5, other, 3, 4).replace(2, 5, 7, 'q');
    text.replace(text.begin() + 1, text.begin() + 4, "between");
    text.erase(text.begin() + 3, text.begin() + 9);
    result += sum(text);
    text.resize(text.size() + 10);
    text.resize(text.size() + 10, 'z');
    result += sum(text);
    text.resize(20);
    text.erase(10);
    return result + sum(text);
}

/// From the string's own buffer to another one, with a change in the middle.
static unsigned outgrown() {
    std::string text("01234567890");
    text.replace(4, 2, 20, '-');
    std::string tail("12");
    tail.insert(1, "abcdefghijklmnopqrstuvw");
    std::string copied("abcdefghij");
    copied.insert(5, copied);
    return sum(text) + sum(tail) + sum(copied);
}

int main() {
    unsigned first = 0, second = 0;
    std::thread worker([&] { first = appended(0) + edited("another") + outgrown(); });
    worker.join();
    second = appended(0) + edited("another") + outgrown();
    assert(first == second);
}
