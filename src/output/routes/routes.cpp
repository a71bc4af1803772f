// SPDX-License-Identifier: BSL-1.0
#include "output/routes/routes.hpp"

#include "output/routes/asked_streams.hpp"
#include "output/routes/pattern.hpp"
#include "protocol/order/worker_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

#include <unistd.h>

namespace cohort::output {

namespace {

using kind = stream_route::kind;

/// Adds the file of options::logs(), unless the stream was given another course on purpose.
void add_log(asked_streams& asked, int number, const std::string& directory, int index) {
    auto& sinks = asked.sinks[number];
    if (asked.given[number] || is_one(sinks, detail::inherit_sink()) ||
        is_one(sinks, detail::merge_sink()) || is_one(sinks, detail::discard_sink()))
        return;
    detail::file_sink log;
    log.pattern = fmt::format("{}/{}/{}.log", directory, index,
                              number == STDOUT_FILENO ? "stdout" : "stderr");
    sinks.emplace_back(std::move(log));
}

bool has_pipe(const worker_routes& worker) {
    return worker.out.what == kind::piped || worker.err.what == kind::piped ||
           worker.in.what == input_route::kind::feed;
}

/// Makes the routes of a group, worker by worker.
class router {
public:
    router(const detail::spawn_plan& plan, const route_names& names, routes_of machine)
        : plan_(plan), names_(names), machine_(machine) {}

    group_routes make();

private:
    struct file_use {
        int worker = -1;       // the only worker that uses the file; -2: several do
        bool is_plain = true;  // never rotated, tagged or beside other sinks
        int streams = 0;
        std::optional<std::size_t> target;
    };

    output::pattern_values values_of(int index) const {
        const bool may_start_again = plan_.settings.restarts.has_value();
        const auto told = plan_.told_to(index);
        const auto host = names_.host_of(index);
        return {told.index, told.size, may_start_again ? std::nullopt : std::optional(0),
                names_.group, host ? *host : names_.host};
    }
    void ask_for_logs();
    void name_files(int index);
    void route_worker(int index);
    void route_input(int index, input_route& into);
    void route_stream(int index, int number, stream_route& into);
    sink_route route_of(int index, int number, const detail::file_sink& sink);
    sink_route route_of(int index, int number, const detail::console_sink& sink);
    void add_queue(stream_route& into, const detail::queue_buffer& buffer, when_full full,
                   std::size_t longest);
    std::string key_of(int index, const std::string& path) const;
    void check_death_signal() const;

    const detail::spawn_plan& plan_;
    const route_names& names_;
    const routes_of machine_;
    group_routes made_;
    std::vector<asked_streams> asked_;
    std::vector<std::string> directories_;  // of the workers
    std::map<std::string, file_use> files_;
    std::optional<std::size_t> consoles_[3];
    protocol::worker_plans workers_{plan_};
};

group_routes router::make() {
    const auto size = static_cast<std::size_t>(plan_.settings.nprocs);
    made_.workers.resize(size);
    made_.part = plan_.part;
    for (int index = 0; index < plan_.settings.nprocs; ++index) {
        const auto& where = *workers_.of(index).where;
        asked_.push_back(asked_of(where));
        for (auto& sinks : asked_.back().sinks)
            for (auto& sink : sinks)
                if (auto* file = std::get_if<detail::file_sink>(&sink)) {
                    file->pattern = output::expand(file->pattern, values_of(index));
                    if (sinks.size() == 1 && file->pattern == "/dev/null")
                        sink = detail::discard_sink();
                }
        directories_.push_back(where.working_directory.value_or(""));
    }
    ask_for_logs();
    for (int index = 0; index < plan_.settings.nprocs; ++index)
        leave_part_of(machine_, index, asked_[static_cast<std::size_t>(index)]);
    for (int index = 0; index < plan_.settings.nprocs; ++index)
        name_files(index);
    for (int index = 0; index < plan_.settings.nprocs; ++index)
        route_worker(index);
    check_death_signal();
    return std::move(made_);
}

void router::ask_for_logs() {
    if (!plan_.settings.logs || plan_.settings.nprocs == 0)
        return;
    const auto& logs = *plan_.settings.logs;
    const auto run_id = run_id_of(logs, names_);
    const auto directory = fmt::format("{}/{}/attempt_0", logs.directory, run_id);
    made_.base_of_logs = plan_.settings.where.working_directory.value_or("");
    const auto absolute = names_.directory / std::filesystem::path(made_.base_of_logs);
    made_.path_of_logs = absolute / directory;
    if (machine_ == routes_of::origin)
        return;  // the hosts make it
    made_.log_directory = directory;
    // The workers' files stand in one tree, even if commands have working directories of their own.
    const auto attempt = fmt::format("{}/{}/", logs.directory, run_id) +
                         output::expand("attempt_{attempt}", values_of(0));
    for (std::size_t index = 0; index < asked_.size(); ++index)
        for (const int number : {STDOUT_FILENO, STDERR_FILENO})
            add_log(asked_[index], number,
                    directories_[index] == made_.base_of_logs ? attempt
                                                              : (absolute / attempt).string(),
                    made_.index_in_whole(static_cast<int>(index)));
}

/// Names a file. Two names of one file by way of links are not seen as the same, and ".." stays,
/// because behind a link to a directory it means another directory than before the link.
std::string router::key_of(int index, const std::string& path) const {
    const std::filesystem::path callers = names_.directory;
    std::filesystem::path key;
    for (const auto& part : callers / directories_[static_cast<std::size_t>(index)] / path)
        if (!part.empty() && part != ".")
            key /= part;
    return key.string();
}

/// Counts who uses each file, because a file of several streams is written by this process.
void router::name_files(int index) {
    auto& asked = asked_[static_cast<std::size_t>(index)];
    for (const int number : {STDOUT_FILENO, STDERR_FILENO})
        for (auto& sink : asked.sinks[number])
            if (const auto* file = std::get_if<detail::file_sink>(&sink)) {
                auto& use = files_[key_of(index, file->pattern)];
                use.is_plain = use.is_plain && asked.sinks[number].size() == 1 &&
                               file->rotate_at == 0 && !file->tag && !file->timestamps;
                use.worker = use.worker == -1 || use.worker == index ? index : -2;
                ++use.streams;
            }
    // The same file for both streams, with the same settings, means merge().
    auto& out = asked.sinks[STDOUT_FILENO];
    auto& err = asked.sinks[STDERR_FILENO];
    if (is_one(out, detail::file_sink()) && is_one(err, detail::file_sink())) {
        const auto& to_out = std::get<detail::file_sink>(out.front());
        const auto& to_err = std::get<detail::file_sink>(err.front());
        auto same = to_err;
        same.pattern = to_out.pattern;
        if (same == to_out && key_of(index, to_out.pattern) == key_of(index, to_err.pattern)) {
            --files_[key_of(index, to_out.pattern)].streams;
            err = {detail::merge_sink()};
        }
    }
}

void router::route_worker(int index) {
    auto& worker = made_.workers[static_cast<std::size_t>(index)];
    worker.working_directory = directories_[static_cast<std::size_t>(index)];
    worker.host = names_.host_of(index);
    route_input(index, worker.in);
    route_stream(index, STDOUT_FILENO, worker.out);
    route_stream(index, STDERR_FILENO, worker.err);
}

void router::route_input(int index, input_route& into) {
    const auto& asked = asked_[static_cast<std::size_t>(index)];
    using input_kind = input_route::kind;
    into.path = "/dev/null";
    if (asked.given[STDIN_FILENO]) {
        into.what = input_kind::given;
        into.given = *asked.given[STDIN_FILENO];
    } else if (!asked.input) {
        return;
    } else if (const auto* file = std::get_if<detail::path_input>(&*asked.input)) {
        into.path = file->path;
    } else if (const auto* bytes = std::get_if<detail::bytes_input>(&*asked.input)) {
        into.what = input_kind::bytes;
        into.text = bytes->text;
    } else {
        into.what = std::holds_alternative<detail::feed_input>(*asked.input)
                        ? input_kind::feed
                        : input_kind::inherited;
    }
}

void router::route_stream(int index, int number, stream_route& into) {
    const auto& asked = asked_[static_cast<std::size_t>(index)];
    const auto& sinks = asked.sinks[number];
    if (asked.given[number]) {
        into.what = kind::given;
        into.given = *asked.given[number];
        return;
    }
    if (sinks.empty() || is_one(sinks, detail::inherit_sink()))
        return;
    if (is_one(sinks, detail::merge_sink())) {
        into.what = kind::joined;
        return;
    }
    if (is_one(sinks, detail::discard_sink())) {
        into.what = kind::file;
        into.path = "/dev/null";
        return;
    }
    if (is_one(sinks, detail::file_sink())) {
        const auto& file = std::get<detail::file_sink>(sinks.front());
        const auto& use = files_.at(key_of(index, file.pattern));
        if (use.is_plain && use.worker >= 0 && use.streams == 1) {
            into.what = kind::file;
            into.path = file.pattern;
            into.truncates = !file.appends;
            return;
        }
    }
    into.what = kind::piped;
    for (const auto& sink : sinks) {
        if (const auto* file = std::get_if<detail::file_sink>(&sink))
            into.sinks.push_back(route_of(index, number, *file));
        else if (const auto* capture = std::get_if<detail::capture_sink>(&sink))
            into.sinks.emplace_back(*capture);
        else if (const auto* lines = std::get_if<detail::lines_sink>(&sink))
            add_queue(into, lines->buffer, lines->full, lines->longest);
        else if (const auto* chunks = std::get_if<detail::chunks_sink>(&sink))
            add_queue(into, chunks->buffer, chunks->full, 0);
        else if (const auto* console = std::get_if<detail::console_sink>(&sink))
            if (shows(*console, index))
                into.sinks.push_back(route_of(index, number, *console));
    }
}

void router::add_queue(stream_route& into, const detail::queue_buffer& buffer, when_full full,
                       std::size_t longest) {
    made_.buffer = std::max(made_.buffer, buffer.bytes);
    // A stream that waits loses nothing, so it needs no more.
    if (!buffer.is_chosen && full == when_full::drop_oldest)
        made_.buffer_while_read = detail::default_buffer_while_read;
    into.sinks.emplace_back(queue_route{full, longest});
}

/// Sinks of one file may differ in what is for each stream: the tag, and who waits.
bool can_share(const detail::file_sink& a, const detail::file_sink& b) {
    return a.appends == b.appends && a.rotate_at == b.rotate_at && a.kept == b.kept &&
           a.timestamps == b.timestamps;
}

sink_route router::route_of(int index, int number, const detail::file_sink& sink) {
    auto& use = files_.at(key_of(index, sink.pattern));
    if (use.target && !can_share(made_.targets[*use.target].settings, sink))
        throw std::invalid_argument(
            fmt::format("cohort: several streams are written to {}: give each the same append(), "
                        "rotate() and timestamps()",
                        sink.pattern));
    if (names_attempt(sink.pattern) && use.worker < 0)
        throw std::invalid_argument(fmt::format(
            "cohort: several workers are written to {}: its name can't have {{attempt}} "
            "where workers start again",
            output::at_attempt(sink.pattern, 0)));
    const auto from = number == STDOUT_FILENO ? stream::out : stream::err;
    if (!use.target) {
        use.target = made_.targets.size();
        const bool is_raw = use.streams == 1 && !sink.tag && !sink.timestamps;
        made_.targets.push_back({target_plan::kind::file, index, from, sink.pattern,
                                 directories_[static_cast<std::size_t>(index)], sink, is_raw,
                                 use.worker >= 0});
    }
    return target_route{*use.target, sink.full,
                        sink.tag ? output::expand(*sink.tag, values_of(index)) : std::string()};
}

sink_route router::route_of(int index, int number, const detail::console_sink& sink) {
    const bool is_out = number == STDOUT_FILENO;
    auto& place = consoles_[number];
    if (!place) {
        place = made_.targets.size();
        const auto what = is_out ? target_plan::kind::own_stdout : target_plan::kind::own_stderr;
        const auto from = is_out ? stream::out : stream::err;
        made_.targets.push_back({what, index, from, "", "", {}, false});
    }
    return target_route{*place, sink.full, output::expand(sink.tag, values_of(index))};
}

/// A worker that outlives this process must not wait for a pipe that nobody reads, nor die of it.
void router::check_death_signal() const {
    if (plan_.settings.parent_death_signal == 0 && machine_ != routes_of::origin &&
        !plan_.has_keeper &&
        std::ranges::any_of(made_.workers, has_pipe))
        throw std::invalid_argument(
            std::string("cohort: parent_death_signal(0) lets workers outlive this process, which "
                        "their streams would need: use one file() for each worker, without "
                        "rotate, tagged and timestamps, or ") +
            (machine_ == routes_of::host ? "" : "inherit(), ") + "discard() and bytes()");
}

}  // namespace

std::uint64_t group_routes::descriptors(int first_workers) const noexcept {
    std::uint64_t count = !log_directory.empty();
    for (const auto& target : targets)
        count += !target.is_of_one || target.first_worker < first_workers;
    for (const auto& worker : std::span(workers).first(static_cast<std::size_t>(first_workers)))
        count += (worker.in.what == input_route::kind::bytes) +
                 2 * std::uint64_t{worker.in.what == input_route::kind::feed} +
                 2 * std::uint64_t{worker.out.what == kind::piped} +
                 2 * std::uint64_t{worker.err.what == kind::piped};
    return count;
}

group_routes make_routes(const detail::spawn_plan& plan, const route_names& names,
                         routes_of machine) {
    auto routes = router(plan, names, machine).make();
    routes.has_pipes = std::ranges::any_of(routes.workers, has_pipe);
    return routes;
}

}  // namespace cohort::output
