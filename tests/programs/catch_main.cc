// Catch2's own half of a test program.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
