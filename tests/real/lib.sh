# Common functions of the scripts in this directory; sourced by run.sh and the scripts in injected/.
#
# Expects `root`, the repository. Offers the functions below and the variables `work` (a directory
# for everything that is downloaded, built and recorded), `symbiosis` (the command), and `bin` (a
# directory with `symbiosis-cc` and `symbiosis-c++`).
#
# shellcheck shell=bash

target=${CARGO_TARGET_DIR:-$root/target}
work=${SYMBIOSIS_REAL_DIR:-$target/real}
bin=$work/bin
# What could not be done because something is missing on this machine.
skip_status=77

say() { printf '%s\n' "real: $*" >&2; }

fail() {
    say "error: $*"
    exit 1
}

# Runs the rest with root's rights; fails when nobody can give them.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

# Sets `symbiosis`, and makes the two compiler names that build systems get. `SYMBIOSIS` names a
# command that was built before; else the given profile (dev or release) is built.
find_symbiosis() { # profile
    symbiosis=${SYMBIOSIS:-}
    if [ -z "$symbiosis" ]; then
        local directory=$1
        [ "$directory" != dev ] || directory=debug
        (cd "$root" && cargo build --quiet --profile "$1") || fail "symbiosis does not build"
        symbiosis=$target/$directory/symbiosis
    fi
    symbiosis=$(realpath "$symbiosis") || fail "there is no $symbiosis"
    mkdir -p "$bin"
    ln -sf "$symbiosis" "$bin/symbiosis"
    ln -sf "$symbiosis" "$bin/symbiosis-cc"
    ln -sf "$symbiosis" "$bin/symbiosis-c++"
    export PATH=$bin:$PATH
}

# Installs the Debian packages that are not there.
install_packages() { # package...
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    {
        as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
                --no-install-recommends "${missing[@]}"
    } >"$work/install.log" 2>&1 || {
        say "these packages are needed and could not be installed: ${missing[*]}" \
            "(see $work/install.log)"
        return 1
    }
}

# apt-get with lists and caches of our own: no root's rights, no trace in the system.
private_apt() {
    apt-get -qq -o APT::Sandbox::User="$(id -un)" \
        -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/apt/sources" \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" "$@"
}

# The machine's own Debian repositories, as repositories of sources. Other repositories are left
# out: they need not have any sources.
write_source_list() {
    local file
    rm -rf "$work/apt"
    mkdir -p "$work/apt/sources" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -r "$file" ] || continue
        sed -nE '\,^deb(-src)?[[:space:]].*/debian(-security)?/?[[:space:]],{s/^deb(-src)?/deb-src/;p}' "$file"
    done >"$work/apt/sources/lines.list"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -r "$file" ] || continue
        # Paragraphs are parted by empty lines.
        awk -v RS= '
            /(^|\n)URIs:[^\n]*\/debian(-security)?\/?[ \t]*(\n|$)/ {
                gsub(/(^|\n)Types:[^\n]*/, "\nTypes: deb-src")
                print $0 "\n"
            }' "$file" | sed '/^#/d'
    done >"$work/apt/sources/paragraphs.sources"
}

# Gets the source packages' lists, once in a run of a script.
update_sources() {
    [ -z "${sources_updated:-}" ] || return 0
    command -v apt-get >/dev/null && command -v dpkg-source >/dev/null || {
        say "apt-get and dpkg-source (package dpkg-dev) are needed: this is not a Debian machine"
        return 1
    }
    mkdir -p "$work"
    write_source_list
    if ! private_apt update >"$work/apt/update.log" 2>&1 || grep -q '^[WE]:' "$work/apt/update.log"
    then
        say "Debian's lists of source packages cannot be got: no network?" \
            "(see $work/apt/update.log)"
        return 1
    fi
    sources_updated=yes
}

# Unpacks Debian's source package into a directory that must not exist; downloads it unless an
# earlier run has. Sets `version`. Where SYMBIOSIS_REAL_SOURCES names a directory with a directory
# PACKAGE, that is copied instead.
get_source() { # package directory
    local package=$1 directory=$2 description
    if [ -n "${SYMBIOSIS_REAL_SOURCES:-}" ] && [ -d "$SYMBIOSIS_REAL_SOURCES/$package" ]; then
        cp -a "$SYMBIOSIS_REAL_SOURCES/$package" "$directory"
        version='(own source)'
        return 0
    fi
    mkdir -p "$work/downloads/$package"
    description=$(find "$work/downloads/$package" -name '*.dsc' | head -n 1)
    if [ -z "$description" ]; then
        update_sources || return "$skip_status"
        (cd "$work/downloads/$package" && private_apt source --download-only "$package") \
            >"$work/downloads/$package.log" 2>&1 || {
            say "the source of $package cannot be got (see $work/downloads/$package.log)"
            rm -rf "$work/downloads/$package"
            return "$skip_status"
        }
        description=$(find "$work/downloads/$package" -name '*.dsc' | head -n 1)
    fi
    version=$(sed -n 's/^Version: //p' "$description" | head -n 1)
    mkdir -p "$(dirname "$directory")"
    dpkg-source --no-check -x "$description" "$directory" >"$directory.unpack.log" 2>&1 ||
        fail "$description cannot be unpacked (see $directory.unpack.log)"
}

# Runs a command with its output in a log; sets `seconds` to the processor time that it took.
logged() { # log command...
    local log=$1 status=0 TIMEFORMAT='%U %S'
    shift
    { time "$@" >"$log" 2>&1; } 2>"$log.time" || status=$?
    seconds=$(awk '{ printf "%.1f", $1 + $2 }' "$log.time")
    return $status
}

# Runs a function so that its first failing command ends it, which bash does not do where the
# status is looked at.
checked() {
    local status=0
    set +e
    (
        set -ex
        "$1"
    )
    status=$?
    set -e
    return $status
}

# Bytes that look like text, the same in every run: repetition and variety for compressors.
make_input() { # file bytes
    awk -v bytes="$2" 'BEGIN {
        state = 12345; size = 0
        while (size < bytes) {
            state = (state * 1103515245 + 12345) % 2147483648
            word = sprintf("word%d", int(state / 65536) % 700)
            if (state % 11 == 0) word = word "\n"; else word = word " "
            size += length(word)
            printf "%s", word
        }
    }' | head -c "$2" >"$1"
}

# What `symbiosis check` said, as one number each.
threads_of() { sed -nE 's/^([0-9]+) threads, .*/\1/p' "$1"; }
events_of() { sed -nE 's/.* ([0-9]+) events, .*/\1/p' "$1"; }
cells_of() { sed -nE 's/.* ([0-9]+) shared cells, .*/\1/p' "$1"; }
gaps_of() { sed -nE 's/.* ([0-9]+) gaps in .*/\1/p' "$1"; }
instructions_of() { sed -nE 's/.* gaps in ([0-9]+) instructions.*/\1/p' "$1"; }
lost_of() { grep -c ' STOPPED: ' "$1" || true; }
