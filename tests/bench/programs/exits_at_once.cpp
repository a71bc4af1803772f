// SPDX-License-Identifier: BSL-1.0
// Linked statically: the cheapest program that there is, so that what is measured is the start.
#include <unistd.h>

int main() { _exit(0); }
