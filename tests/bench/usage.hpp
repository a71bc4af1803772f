// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <malloc.h>

namespace bench {

/// The resources that this process uses at one moment.
struct usage {
    double resident = 0;   // bytes of anonymous memory; others may map the files
    double allocated = 0;  // bytes that malloc has given out
    double descriptors = 0;

    static usage now() {
        usage u;
        std::ifstream rollup("/proc/self/smaps_rollup");
        for (std::string name; rollup >> name;) {
            double kib = 0;
            if (name == "Anonymous:" && rollup >> kib)
                u.resident += kib * 1024;
        }
        const auto heap = ::mallinfo2();
        u.allocated = static_cast<double>(heap.uordblks + heap.hblkhd);
        u.descriptors = static_cast<double>(
            std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
        return u;
    }
};

}  // namespace bench
