# SPDX-License-Identifier: BSL-1.0
# The guardian's program and its image, which the library contains: src/start/guardian/program/meson.build. No options
# of the project reach this program (sanitizers, LTO, coverage), because it has no C library.
# Sets guardian_image and guardian_options; both are empty where the guardian is not for this processor.
include(CheckCXXCompilerFlag)
set(guardian_image "")
set(guardian_options "")

set(folder src/start/guardian/program)
cohort_read_words(${folder}/meson.build "cpu_family\\(\\) in \\[([^]]*)\\]" processors)
if(NOT CMAKE_SYSTEM_PROCESSOR IN_LIST processors OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
    return()
endif()

find_package(Python3 COMPONENTS Interpreter REQUIRED)
cohort_read_words(${folder}/meson.build "cpp_args: \\[([^]]*)\\]" compile_options)
cohort_read_words(${folder}/meson.build "get_supported_arguments\\(([^)]*)\\)" option)
check_cxx_compiler_flag("${option}" COHORT_GUARDIAN_OPTION)
if(COHORT_GUARDIAN_OPTION)
    list(APPEND compile_options "${option}")
endif()
cohort_read_words(${folder}/meson.build "link_args: \\[([^]]*)\\]" link_options)
cohort_read_value(${folder}/meson.build "'optimization=([0-3])'" optimization)
cohort_read_words(${folder}/meson.build "guardian_args = \\[([^]]*)\\]" guardian_options)
# With CXX="ccache g++" the compiler is an argument of what CMake calls the compiler.
separate_arguments(compiler_arguments UNIX_COMMAND "${CMAKE_CXX_COMPILER_ARG1}")
set(for_another_machine "")
if(CMAKE_CXX_COMPILER_TARGET)
    list(APPEND for_another_machine "--target=${CMAKE_CXX_COMPILER_TARGET}")
endif()
if(CMAKE_SYSROOT)
    list(APPEND for_another_machine "--sysroot=${CMAKE_SYSROOT}")
endif()

set(source "${COHORT_ROOT}/${folder}/main.cpp")
set(program "${CMAKE_CURRENT_BINARY_DIR}/cohort-guardian")
add_custom_command(
    OUTPUT "${program}"
    COMMAND ${CMAKE_CXX_COMPILER} ${compiler_arguments} ${for_another_machine} -std=c++20 -O${optimization} ${compile_options}
        -I "${COHORT_ROOT}/src" -MD -MF "${program}.d" "${source}" -o "${program}" ${link_options}
    DEPENDS "${source}"
    DEPFILE "${program}.d"
    COMMENT "Building the guardian"
    VERBATIM)

set(embed "${COHORT_ROOT}/${folder}/embed.py")
set(guardian_image "${CMAKE_CURRENT_BINARY_DIR}/guardian_image.inc.hpp")
add_custom_command(
    OUTPUT "${guardian_image}"
    COMMAND Python3::Interpreter "${embed}" "${program}" "${guardian_image}"
    DEPENDS "${program}" "${embed}"
    COMMENT "Embedding the guardian"
    VERBATIM)
