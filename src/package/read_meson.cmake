# SPDX-License-Identifier: BSL-1.0
# What Meson's files say about the library, so that each fact stands in one place. These functions read a strict form;
# a file of another form is an error.

get_filename_component(COHORT_ROOT "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

# The text of a file without its comments. CMake configures again when the file changes.
function(cohort_read_text file result)
    file(READ "${COHORT_ROOT}/${file}" text)
    string(REGEX REPLACE "(^|[ \n])#[^\n]*" "\\1" text "${text}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${COHORT_ROOT}/${file}")
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# What the one group of the pattern matches.
function(cohort_read_value file pattern result)
    cohort_read_text("${file}" text)
    if(NOT text MATCHES "${pattern}")
        message(FATAL_ERROR "${file} has no text that matches: ${pattern}")
    endif()
    set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# The quoted words of what the pattern's group matches: a list of Meson's.
function(cohort_read_words file pattern result)
    cohort_read_value("${file}" "${pattern}" words)
    string(REGEX MATCHALL "'[^']*'" words "${words}")
    list(TRANSFORM words REPLACE "'" "")
    set(${result} "${words}" PARENT_SCOPE)
endfunction()

# The sources of all areas, in Meson's order: cohort_sources and cohort_json_sources.
function(cohort_read_sources)
    cohort_read_words(meson.build "foreach area : \\[([^]]*)\\]" areas)
    set(cohort_sources "")
    set(cohort_json_sources "")
    foreach(area IN LISTS areas)
        set(file "src/${area}/meson.build")
        cohort_read_text("${file}" text)
        string(REGEX REPLACE "[ \n]+" " " text "${text}")
        while(text MATCHES "^ ?(cohort_sources|cohort_json_sources) \\+= files\\( (('[a-z_/]+\\.cpp', )+)\\)(.*)$")
            set(list "${CMAKE_MATCH_1}")
            set(text "${CMAKE_MATCH_4}")
            string(REGEX MATCHALL "[a-z_/]+\\.cpp" sources "${CMAKE_MATCH_2}")
            list(TRANSFORM sources PREPEND "${COHORT_ROOT}/src/${area}/")
            list(APPEND ${list} ${sources})
        endwhile()
        if(NOT text MATCHES "^ ?(subdir\\('guardian/program'\\) ?)?$")  # that folder adds no source
            message(FATAL_ERROR "${file}: lists of files were expected, not: ${text}")
        endif()
    endforeach()
    set(cohort_sources "${cohort_sources}" PARENT_SCOPE)
    set(cohort_json_sources "${cohort_json_sources}" PARENT_SCOPE)
endfunction()
