#!/usr/bin/env bash
# Installs what building and using Symbiosis needs on Debian 12, by package name. Does nothing when
# everything is there. Rust comes from rustup and must be there already.
set -euo pipefail
cd "$(dirname "$0")"
./dev-null.sh

if ! command -v cargo >/dev/null; then
    echo "cargo was not found: install Rust with rustup first" >&2
    exit 1
fi

# command or file -> package
missing=()
need() { # test package
    if ! eval "$1" >/dev/null 2>&1; then missing+=("$2"); fi
}
need "command -v clang && command -v clang++" clang
need "command -v c++ && test -e /usr/include/stdio.h" build-essential
need "command -v make" make
need "test -e /usr/include/z3.h" libz3-dev
need "command -v z3" z3
need "command -v dot" graphviz
need "command -v gdb" gdb
need "test -e /usr/include/gtest/gtest.h" libgtest-dev
need "command -v pkg-config" pkg-config
need "test -e /usr/include/glib-2.0/glib.h" libglib2.0-dev
need "test -e /usr/include/absl/synchronization/mutex.h" libabsl-dev
need "ls /usr/lib/llvm-*/include/c++/v1/mutex /usr/lib/llvm-*/lib/libc++.so" libc++-dev
need "ls /usr/lib/llvm-*/lib/libc++abi.so" libc++abi-dev
need "test -e /usr/include/catch2/catch.hpp" catch2
need "command -v cmake && command -v ctest" cmake
need "command -v ninja" ninja-build
need "command -v meson" meson
need "command -v autoreconf" autoconf
need "command -v automake" automake
need "command -v libtoolize" libtool
need "command -v ccache" ccache
need "command -v ld.lld" lld
need "command -v llvm-ar" llvm
need "ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.ubsan_standalone-*.a" libclang-rt-14-dev
need "ls /usr/lib/llvm-*/lib/libomp.so /usr/lib/llvm-*/lib/clang/*/include/omp.h" libomp-14-dev
need "command -v chromium" chromium
need "command -v chromedriver" chromium-driver
need "command -v pytest-3 || command -v pytest" python3-pytest
need "command -v node" nodejs
need "command -v npm" npm
need "/usr/bin/python3 -c 'import jsonschema'" python3-jsonschema

if [ "${#missing[@]}" -gt 0 ]; then
    echo "installing: ${missing[*]}" >&2
    as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            echo "run as root: apt-get install ${missing[*]}" >&2
            exit 1
        }
        as_root="sudo"
    fi
    $as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >&2
fi
for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$component"
done
