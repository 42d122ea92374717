// What a stream's function returns in memory of its caller is as large as that, and no stream; and what all streams have
// in common lies behind the buffer of one that reads a string.
//~ FLAGS: -stdlib=libc++
#include <cassert>
#include <iostream>
#include <locale>
#include <sstream>
#include <string>

int main() {
    std::string word = "ab";
    {
        std::locale own = std::cout.getloc();
        word.push_back('c');
    }
    word.push_back('d');
    assert(word == "abcd");
    std::istringstream words(" one  two three");
    int found = 0;
    while (words >> word)
        ++found;
    assert(found == 3 && word == "three");
    return 0;
}
