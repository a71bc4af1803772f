// SPDX-License-Identifier: BSL-1.0
// Four worker processes count the words of text files. Then the same with a file that can't be
// read.
//   quickstart [file...]      without files: the README and the sources below the current directory

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

struct tally {
    int files = 0;
    long words = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(tally, files, words)

// Runs in every worker: worker `index` takes every fourth file.
tally count_words(int index, const std::vector<std::string>& files) {
    tally mine;
    for (std::size_t i = index; i < files.size(); i += cohort::this_worker::size()) {
        std::ifstream file(files[i]);
        if (!file)
            throw std::runtime_error("cannot read " + files[i]);
        for (std::string word; file >> word;)
            ++mine.words;
        ++mine.files;
    }
    return mine;
}

asio::awaitable<void> count(std::vector<std::string> files) {
    auto group = co_await cohort::spawn(cohort::function<count_words>(files), 4);

    // Workers have process groups of their own, so Ctrl-C reaches this program alone. It stops
    // them.
    asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
    signals.async_wait([&group](asio::error_code error, int) {
        if (!error)
            group.request_stop();
    });

    while (!co_await group.join(100ms))
        fmt::print("{} of {} workers are still counting\n", group.alive(), group.size());

    tally all;
    for (const auto& worker : group.outcomes()) {
        const auto share = worker.result<tally>();
        all.files += share.files;
        all.words += share.words;
        fmt::print("worker {}: {} words in {} files\n", worker.index, share.words, share.files);
    }
    fmt::print("together: {} words in {} files\n\n", all.words, all.files);
}

asio::awaitable<void> quickstart(std::vector<std::string> files) {
    co_await count(files);
    files.insert(files.begin() + 1, "no-such-file");  // worker 1 will raise
    try {
        co_await count(files);
    } catch (const cohort::process_raised_exception& e) {
        fmt::print("worker {} failed: {}\n", e.error_index(), e.error().message);
        fmt::print("what(): {}\n\n", e.what());
        cohort::report all;
        all.outcomes = e.outcomes();
        fmt::print("{}\n", all);
    }
}

std::vector<std::string> sources() {
    std::vector<std::string> files;
    if (std::filesystem::exists("README.md"))
        files.push_back("README.md");
    for (const char* folder : {"include", "src"})
        if (std::filesystem::exists(folder))
            for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
                if (entry.is_regular_file())
                    files.push_back(entry.path().string());
    return files;
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);  // in a worker: runs count_words and never returns
    std::vector<std::string> files(argv + 1, argv + argc);
    if (files.empty())
        files = sources();
    if (files.empty()) {
        fmt::print(stderr, "usage: {} file...\n", argv[0]);
        return 2;
    }
    int status = 0;
    asio::io_context io;
    asio::co_spawn(io, quickstart(files), [&status](std::exception_ptr error) {
        try {
            if (error)
                std::rethrow_exception(error);
        } catch (const std::exception& e) {  // group_stopped, after Ctrl-C
            fmt::print(stderr, "{}\n", e.what());
            status = 1;
        }
    });
    io.run();
    return status;
}

// Prints (`...` stands for anything):
//   worker 0: ... words in ... files
//   worker 1: ... words in ... files
//   worker 2: ... words in ... files
//   worker 3: ... words in ... files
//   together: ... words in ... files
//
//   worker 1 failed: cannot read no-such-file
//   what():
//
//   -- Process 1 terminated with the following error:
//   Traceback (most recent call last):
//     File "examples/quickstart.cpp", line 34, in count_words(int, std::vector<std::string> const&)
//   std::runtime_error: cannot read no-such-file
//
//   index ... pid  cause ... status ... time ... memory
//       0 ...
//       1 ...  raised ...  first failure: std::runtime_error: cannot read no-such-file
//       2 ...
//       3 ...
