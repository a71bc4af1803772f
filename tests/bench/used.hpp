// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace bench {

/// What all threads of a process but the calling one have used so far.
struct used {
    long wakes = 0;  // each time a thread wakes, it has gone to sleep before: by its own choice
    double cpu_ms = 0;

    /// @param process  its number, as text
    static used now(const std::string& process = "self") {
        used sum;
        for (const auto& task : std::filesystem::directory_iterator("/proc/" + process + "/task"))
            if (task.path().filename() != std::to_string(::gettid()))
                sum.add(task.path());
        return sum;
    }

    used& operator+=(const used& other) {
        wakes += other.wakes;
        cpu_ms += other.cpu_ms;
        return *this;
    }

private:
    void add(const std::filesystem::path& task) {
        std::ifstream lines(task / "status");
        long count = 0;
        for (std::string word; lines >> word;)
            if (word == "voluntary_ctxt_switches:" && lines >> count)
                wakes += count;
        double on_cpu_ns = 0;
        if (std::ifstream(task / "schedstat") >> on_cpu_ns)
            cpu_ms += on_cpu_ns / 1e6;
    }
};

}  // namespace bench
