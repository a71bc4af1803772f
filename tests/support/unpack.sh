#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Unpacks headers that Debian has into a folder, without installing them: unpack.sh folder suite package header
# Prints the folder of the headers, or the reason for a failure on stderr.
set -u
folder=$1 suite=$2 package=$3
headers=$folder/usr/include

# Uses package lists of its own, so that the system's stay as they are.
fetch() {
    mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" && cd "$folder" || return
    local signed=signed-by=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [$signed] http://deb.debian.org/debian $suite main" >sources.list
    local options=(-q -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User=root
        -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20)
    timeout 120 apt-get "${options[@]}" update &&
        timeout 60 apt-get "${options[@]}" download "$package/$suite" &&
        dpkg -x "$package"_*.deb . && rm "$package"_*.deb
}

if [ ! -e "$headers/$4" ]; then
    said=$(fetch 2>&1)
    rm -rf "$folder/lists" "$folder/cache"
    if [ ! -e "$headers/$4" ]; then
        echo "no $package of $suite: $(grep '^[EW]:' <<<"$said" || tail -n1 <<<"$said")" >&2
        exit 1
    fi
fi
echo "$headers"
