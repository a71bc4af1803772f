// SPDX-License-Identifier: BSL-1.0
// The program that the workers of the extension execute, in place of Python.
#include "sums.hpp"

int main(int argc, char** argv) { return worker_program(argc, argv); }
