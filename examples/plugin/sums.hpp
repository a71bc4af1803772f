// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <string>
#include <vector>

/// The sum of all numbers in the files. Each file has a worker of its own.
/// @param program      what the workers execute: an absolute path
/// @param interrupted  asked ten times a second; once it is true, the workers are stopped
/// @throws cohort::process_raised_exception  a worker could not read its file
/// @throws cohort::group_stopped             it was interrupted
double add_up(std::vector<std::string> files, std::string program,
              std::function<bool()> interrupted);

/// The main function of the program that the workers execute. It stands in the library because a
/// linker may leave out a library of which a program uses nothing; the program would then lack the
/// workers' function.
int worker_program(int argc, char** argv);
