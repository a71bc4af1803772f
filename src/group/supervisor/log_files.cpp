// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/log_files.hpp"

#include "base/sys/descriptors.hpp"
#include "output/targets/call_threads.hpp"
#include "output/targets/files.hpp"
#include "protocol/record/error_json.hpp"

#include <cohort/detail/duration.hpp>
#include <cohort/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace cohort::groups {

namespace {

/// However little time output has: a start that is tried again needs the directory to be gone.
constexpr auto shortest_removal = std::chrono::seconds(1);

/// @param path  named by what goes wrong
/// @return what went wrong; empty: nothing
std::string write_file(const std::string& path, const auto& open,
                       const base::callback<std::string()>& text) noexcept try {
    std::error_code error;
    auto file = open(error);
    if (!error && !output::is_regular(file.get()))
        return path + " is no regular file";
    if (!error)
        error = output::written_file(std::move(file)).write(text() + "\n");
    return error ? fmt::format("{}: {}", path, error.message()) : std::string();
} catch (const std::length_error& e) {
    return e.what();
} catch (...) {
    return "no memory";
}

}  // namespace

std::string log_files::run_directory() const {
    const auto& routes = streams_->routes();
    const auto& first_attempt =
        routes.log_directory.empty() ? routes.path_of_logs : routes.log_directory;
    return first_attempt.substr(0, first_attempt.rfind('/'));
}

void log_files::write_error(std::shared_ptr<const outcome> worker, listener then) {
    const int number = worker->attempt;
    const int index = streams_->routes().index_in_whole(worker->index);
    write(
        fmt::format("{}/attempt_{}/{}/error.json", run_directory(), number, index),
        [logs = streams_->logs(), number, index](std::error_code& error) {
            return logs->open(number, index, "error.json", error);
        },
        [worker] { return protocol::write_error(*worker->error); }, std::move(then));
}

void log_files::write_report(base::callback<const report&()> group, listener then) {
    write(
        run_directory() + "/report.json",
        [logs = streams_->logs()](std::error_code& error) {
            return logs->open_beside("report.json", error);
        },
        [group = std::move(group)] { return to_json(group()); }, std::move(then));
}

void log_files::remove(listener then) {
    run(
        {}, std::max<duration>(timeout_, shortest_removal),
        [logs = streams_->logs(), first = streams_->routes().index_in_whole(0),
         workers = streams_->routes().workers.size()] {
            return logs->remove(first, workers), std::string();
        },
        std::move(then));
}

void log_files::write(std::string path, opener open, base::callback<std::string()> text,
                      listener then) {
    base::callback<std::string()> task = [path, open, text] {
        return write_file(path, open, text);
    };
    run(std::move(path), timeout_, std::move(task), std::move(then));
}

void log_files::run(std::string path, duration longest, base::callback<std::string()> task,
                    listener then) {
    struct state {
        std::string path;
        std::string note;
        std::optional<loop::timer_id> limit;
        listener then;  // empty once it was called
    };
    auto kept = std::make_shared<state>();
    kept->path = std::move(path);
    kept->then = std::move(then);
    kept->limit = runtime_.loop().timer().at(
        detail::saturating_add(std::chrono::steady_clock::now(), longest), [kept] {
            kept->limit.reset();
            if (const auto then = std::exchange(kept->then, {}))
                then(kept->path + " is not yet written");
        });
    auto note = std::make_shared<std::string>(kept->path + ": no thread can be started");
    output::call_threads::of(runtime_.loop())
        .run([task = std::move(task), note] { *note = task(); },
             [&runtime = runtime_, kept, note] {
                 if (kept->limit)
                     runtime.loop().timer().cancel(*std::exchange(kept->limit, std::nullopt));
                 if (const auto then = std::exchange(kept->then, {}))
                     then(*note);
             });
}

}  // namespace cohort::groups
