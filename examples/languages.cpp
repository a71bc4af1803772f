// SPDX-License-Identifier: BSL-1.0
// A failing worker in another language reports its traceback with nothing but its standard library.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/chrono.h>
#include <fmt/core.h>

// Writes what torch's @record writes: a line of JSON in $COHORT_ERROR_FILE. Any language can.
constexpr const char* worker = R"(
import json, os, sys, time, traceback

def load(shard):
    return {'train': 0}[shard]

try:
    load('test')
except Exception as e:
    error = {'message': f'{type(e).__name__}: {e}', 'extraInfo': {
        'py_callstack': traceback.format_exc(), 'timestamp': str(int(time.time()))}}
    with open(os.environ['COHORT_ERROR_FILE'], 'w') as file:
        json.dump({'message': error}, file)
    sys.exit(1)
)";

asio::awaitable<void> orchestrate() {
    try {
        co_await cohort::run(cohort::command("python3", "-c", worker), 2);
    } catch (const cohort::process_raised_exception& e) {
        fmt::print("worker {} failed at {:%FT%TZ}: {}\n", e.error_index(),
                   fmt::gmtime(e.error().timestamp.value()), e.error().message);
        fmt::print("{}\n", e.error().trace);
    }
}

int main() {
    asio::io_context io;
    asio::co_spawn(io, orchestrate(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   worker ... failed at 20...Z: 'test'
//   Traceback (most recent call last):
//     File "<string>", line 8, in <module>
//     File "<string>", line 5, in load
//   KeyError: 'test'
