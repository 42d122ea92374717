// Strings, streams, containers, exceptions and clocks of the C++ library.
#include <cassert>
#include <chrono>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

int main()
{
    std::string text = "a long text that does not fit into the object";
    for (int i = 0; i < 50; i++) {
        text += "part ";
        text.push_back('0' + i % 10);
        text.append(std::to_string(i));
    }
    assert(text.find("part 949") != std::string::npos && text.size() > 300);
    std::string head = text.substr(0, 6);
    assert(head == "a long" && head.compare("a lonf") > 0);
    head.insert(1, "n extremely");
    head.replace(0, 2, "AN");
    assert(head == "AN extremely long");
    head.erase(2, 10);
    head.resize(9, '!');
    assert(head == "AN long!!");
    std::string other = std::move(head);
    other.swap(text);
    assert(text.rfind('!') == 8 && std::stoi("12") + std::stol("30") == 42);

    std::ostringstream out;
    out << "n=" << 5 << ' ' << std::fixed << std::setprecision(2) << 1.5 << ' ' << text << std::hex
        << 255 << true;
    std::string shown = out.str();
    assert(shown == "n=5 1.50 AN long!!ff1");
    std::istringstream in("12 words 2.5\nline two");
    int number;
    double real;
    std::string word, line;
    in >> number >> word >> real;
    assert(number == 12 && word == "words" && real == 2.5);
    std::getline(in, line);
    std::getline(in, line);
    assert(line == "line two" && in.eof());

    std::map<std::string, int> ordered{{"one", 1}, {"two", 2}, {"three", 3}};
    ordered["four"] = 4;
    ordered.erase("two");
    int sum = 0;
    for (auto &[name, value] : ordered)
        sum += value + (int)name.size();
    assert(sum == 8 + 12);
    std::set<int> numbers;
    for (int i = 0; i < 20; i++)
        numbers.insert(i * 7 % 20);
    assert(*numbers.rbegin() == 19 && *std::prev(numbers.end(), 2) == 18);
    std::unordered_map<std::string, int> hashed;
    for (int i = 0; i < 30; i++)
        hashed["key" + std::to_string(i)] = i;
    assert(hashed.at("key17") == 17);
    std::list<int> listed{3, 1, 2};
    listed.sort();
    listed.reverse();
    assert(listed.front() == 3 && listed.size() == 3);

    try {
        hashed.at("missing");
        assert(false);
    } catch (const std::out_of_range &error) {
        assert(std::string(error.what()).size() > 0);
    }
    try {
        throw std::runtime_error("thrown " + text);
    } catch (const std::exception &error) {
        assert(error.what()[0] == 't');
    }
    std::function<int(int)> twice = [](int x) { return 2 * x; };
    auto kept = std::make_shared<std::vector<int>>(10, twice(2));
    assert(kept->back() == 4 && kept.use_count() == 1);
    char digits[32];
    auto end = std::to_chars(digits, digits + 32, 2.5).ptr;
    assert(std::string(digits, end) == "2.5");
    std::mt19937 generator(5);
    assert(generator() != generator());
    std::random_device device;
    device();
    auto now = std::chrono::steady_clock::now();
    assert(std::chrono::steady_clock::now() >= now);

    namespace fs = std::filesystem;
    fs::path folder = fs::temp_directory_path() / ("effects" + std::to_string(device()));
    fs::create_directories(folder / "inner");
    {
        std::ofstream file(folder / "file.txt");
        file << "content " << 7 << std::endl;
    }
    std::ifstream file(folder / "file.txt");
    file >> word >> number;
    assert(file && word == "content" && number == 7);
    file.close();
    int entries = 0;
    for (auto &entry : fs::directory_iterator(folder))
        entries += entry.path().has_filename();
    assert(entries == 2 && fs::exists(folder) && fs::file_size(folder / "file.txt") == 10);
    assert((folder / "file.txt").extension() == ".txt");
    fs::remove_all(folder);
    std::cout << "done " << shown << std::endl;
}
