// SPDX-License-Identifier: BSL-1.0
// Writes lines of 64 bytes to standard output, 4 KiB a write:
//   writes_lines <bytes> [plain|formatted <descriptor>]
// With 0 bytes it writes until it is ended. "formatted": it makes each line by snprintf, as a
// program that has something to say. At its end it writes to the descriptor how many nanoseconds
// it took.
#include "stamps.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace {

constexpr int line_size = 64;
constexpr int write_size = 4096;

void fill(char* buffer, long long number) {
    for (char* line = buffer; line < buffer + write_size; line += line_size, ++number) {
        const int size = std::snprintf(
            line, line_size + 1, "step %12lld loss %12.6f rate %9.3f for a worker\n", number,
            1.0 / static_cast<double>(number + 1), static_cast<double>(number % 1000));
        if (size != line_size)
            std::abort();
    }
}

bool write_all(const char* from) {
    for (int left = write_size; left > 0;) {
        const auto done =
            ::write(STDOUT_FILENO, from + (write_size - left), static_cast<std::size_t>(left));
        if (done <= 0)
            return false;
        left -= static_cast<int>(done);
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2)
        return 2;
    const long long bytes = std::atoll(argv[1]);
    const bool formatted = argc > 2 && std::strcmp(argv[2], "formatted") == 0;
    char buffer[write_size + 1];
    fill(buffer, 0);
    const auto begun = bench::now();
    for (long long written = 0; bytes == 0 || written < bytes; written += write_size) {
        if (formatted && written > 0)
            fill(buffer, written / line_size);
        if (!write_all(buffer))
            return 1;
    }
    if (argc < 4)
        return 0;
    char text[32];
    const int size =
        std::snprintf(text, sizeof text, "%lld\n", static_cast<long long>(bench::now() - begun));
    return ::write(std::atoi(argv[3]), text, static_cast<std::size_t>(size)) == size ? 0 : 1;
}
