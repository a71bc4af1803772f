// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace bench {

/// What all threads but the calling one have used so far.
struct used {
    long wakes = 0;  // each time a thread wakes, it has gone to sleep before: by its own choice
    double cpu_ms = 0;

    static used now() {
        used sum;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            const pid_t thread = std::stoi(task.path().filename());
            if (thread != ::gettid())
                sum.add(thread, task.path() / "status");
        }
        return sum;
    }

private:
    void add(pid_t thread, const std::filesystem::path& status) {
        std::ifstream lines(status);
        long count = 0;
        for (std::string word; lines >> word;)
            if (word == "voluntary_ctxt_switches:" && lines >> count)
                wakes += count;
        timespec cpu{};
        const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6);
        if (::clock_gettime(clock, &cpu) == 0)  // the clock of pthread_getcpuclockid(3)
            cpu_ms += double(cpu.tv_sec) * 1e3 + double(cpu.tv_nsec) / 1e6;
    }
};

}  // namespace bench
