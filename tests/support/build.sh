# SPDX-License-Identifier: BSL-1.0
# Functions for tests/run, tests/bench/run and examples/run: install what a build needs, and
# configure a build directory.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

has_compiler() { command -v "${CXX:-c++}" >/dev/null && echo '#include <vector>' | "${CXX:-c++}" -x c++ -E - >/dev/null 2>&1; }
# Asks the compiler; without a compiler, looks where Debian puts headers.
has_header() {
    if has_compiler; then
        echo "#include <$1>" | "${CXX:-c++}" -std=c++20 -x c++ -E - >/dev/null 2>&1
    else
        [ -e "/usr/include/$1" ]
    fi
}

# has name: whether a header is there, or a tool if the name has no dot.
has() {
    case $1 in
    *.*) has_header "$1" ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# Prints "what package" for each thing that is needed and missing.
list_missing() {
    local tool thing
    for tool in meson:meson ninja:ninja-build; do
        command -v "${tool%:*}" >/dev/null || echo "${tool%:*} ${tool#*:}"
    done
    has_compiler || echo "${CXX:-c++} g++"
    for thing in asio.hpp:libasio-dev liburing.h:liburing-dev fmt/core.h:libfmt-dev \
        nlohmann/json.hpp:nlohmann-json3-dev "$@"; do
        has "${thing%:*}" || echo "${thing%:*} ${thing#*:}"
    done
}

# install_packages package...: installs on Debian, as root or by sudo; does nothing elsewhere.
install_packages() {
    local as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; } || return 0
    echo "installing: $*"
    { "${as_root[@]}" apt-get -q update &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get -q -y install --no-install-recommends "$@"; } >&2 || true
}

# need [header-or-tool:package...]: installs what is missing, or prints it and exits.
need() {
    local missing packages
    missing=$(list_missing "$@")
    [ -z "$missing" ] && return
    mapfile -t packages < <(cut -d' ' -f2 <<<"$missing" | sort -u)
    install_packages "${packages[@]}"
    missing=$(list_missing "$@")
    [ -z "$missing" ] && return
    {
        echo "missing, and could not be installed here:"
        sed 's/^\([^ ]*\) \(.*\)$/  \1 (Debian package \2)/' <<<"$missing"
    } >&2
    exit 1
}

# want tool-or-path:package...: installs what is missing, if possible; tests that need it are
# skipped otherwise.
want() {
    local tool packages=()
    for tool; do
        command -v "${tool%:*}" >/dev/null || [ -e "${tool%:*}" ] || packages+=("${tool#*:}")
    done
    [ ${#packages[@]} = 0 ] || install_packages "${packages[@]}"
}

# A faster linker, if there is one: the default one takes seconds for each program of the tests.
choose_linker() {
    if command -v mold >/dev/null; then
        export CXX_LD=${CXX_LD:-mold}
    fi
}

# configure directory [meson option...]: makes the build directory or brings its file lists up to date.
configure() {
    local directory=$1 log
    shift
    choose_linker
    local again=()
    [ -f "$directory/build.ninja" ] && again=(--reconfigure)
    if ! log=$(meson setup "${again[@]}" "$@" "$directory" "$root" 2>&1); then
        printf '%s\n' "$log" >&2
        exit 1
    fi
}
