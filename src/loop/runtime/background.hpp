// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "loop/threads/background_thread.hpp"

#include <cstddef>

namespace cohort::loop {

/// The threads of a process for work that takes too long for the engine's thread. Each has work of
/// one kind, so that none waits for what may take longer than itself.
struct background {
    static constexpr std::size_t large_text = std::size_t{1} << 20;

    explicit background(engine& loop) noexcept
        : parsing(loop), parsing_large(loop), symbolizing(loop), sweeping(loop), freeing(loop),
          cgroups(loop, background_thread::thread::stays) {}

    /// Parses what workers wrote. Its work is bounded and never waits for a disk.
    background_thread parsing;
    /// The same where that is more than large_text, so that others need not wait for it.
    background_thread parsing_large;
    /// Finds the names of stack frames. May wait for a disk.
    background_thread symbolizing;
    /// Searches /dev/shm for unused names. Anybody can make that search long.
    background_thread sweeping;
    /// Destroys what is large, see make_freed_aside().
    background_thread freeing;
    /// Works on cgroups, for which the kernel may take milliseconds.
    background_thread cgroups;
};

}  // namespace cohort::loop
