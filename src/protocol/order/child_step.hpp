// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace cohort::protocol {

/// A text in the block of an order, followed by a NUL that `length` does not count. Offset 0 means
/// no text, because the head stands there.
struct text_ref {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
};

/// What a child does to itself before its program or function begins: makes a system call, or
/// writes to a file. All kinds of child take the same steps, so a new setting needs no code there.
struct child_step {
    text_ref stage;         // what spawn_error::stage() says if it fails: "nice"
    std::int32_t call = 0;  // the number of the system call, if there is no `file`
    std::int32_t may_fail = 0;
    std::int64_t arguments[4] = {};
    std::int32_t data_at =
        -1;         // the argument in whose place the address of `data` stands; -1: none
    text_ref data;  // any bytes
    std::int32_t rest_at =
        -1;  // the argument in whose place the address of a part of `data` stands
    std::uint32_t rest_offset = 0;  // where that part begins
    text_ref file;                  // the file to which `data` is written
    text_ref told;                  // for an error's text: "setrlimit(open_files, 4096)"
};

}  // namespace cohort::protocol
