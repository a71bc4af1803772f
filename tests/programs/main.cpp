// SPDX-License-Identifier: BSL-1.0
// The main of each program whose source is compiled together with those of others. Each has a
// namespace of its file's name, which is COHORT_PROGRAM here.

namespace COHORT_PROGRAM {

int program(int argc, char** argv);

}  // namespace COHORT_PROGRAM

int main(int argc, char** argv) { return COHORT_PROGRAM::program(argc, argv); }
