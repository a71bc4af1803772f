// SPDX-License-Identifier: BSL-1.0
// A worker in Python at the other end of two queues. It needs the standard library alone, and uses
// numpy where that is installed.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <numeric>
#include <string>

using cohort::queue;

// A packet is a header of 24 bytes (mark, kind, descriptors, size, type) and the value. A type of 0
// means that it is not said.
constexpr auto python = R"(
import json, mmap, os, socket, struct

def end(name):
    return socket.socket(fileno=json.loads(os.environ["COHORT_SHARED_" + name])["fd"])

w = json.loads(os.environ["COHORT_SHARED_table"])
memory = mmap.mmap(w["fd"], w["bytes"])
try:
    import numpy
    table = numpy.ndarray(w["shape"], w["dtype"], memory, w["offset"])
except ImportError:
    table = memoryview(memory).cast("d", w["shape"])

jobs, results = end("jobs"), end("results")
while True:
    packet = jobs.recv(1 << 20)
    if not packet:
        break                                    # every writer has closed its end
    row = int(packet[24:])
    columns = w["shape"][1]
    text = "row %d: %g" % (row, sum(table[row, i] for i in range(columns)))
    results.send(struct.pack("<4sHHQQ", b"COQ1", 1, 0, len(text), 0) + text.encode())
)";

asio::awaitable<void> orchestrate() {
    cohort::shared_array<double> table(4, 1000);
    std::iota(table.begin(), table.end(), 0.0);
    queue<std::string> jobs;
    queue<std::string> results;
    auto group = co_await cohort::spawn(cohort::command("python3", "-c", python)
                                            .share("table", table)
                                            .share("jobs", jobs.reader())
                                            .share("results", results.writer()),
                                        cohort::options(1));
    for (const char* row : {"0", "1", "3"})
        co_await jobs.put(row);
    jobs.close();
    while (const auto line = co_await results.get())
        fmt::print("{}\n", *line);
    co_await group.join();
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    asio::io_context io;
    asio::co_spawn(io, orchestrate(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   row 0: 499500
//   row 1: 1.4995e+06
//   row 3: 3.4995e+06
