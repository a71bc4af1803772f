// SPDX-License-Identifier: BSL-1.0
#include "group/border/worker_source.hpp"

#include "base/sys/descriptors.hpp"
#include "group/border/create_group.hpp"
#include "output/routes/pattern.hpp"

#include <cohort/errors.hpp>

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::detail::inline v0_1 {

namespace {

/// @throws std::invalid_argument  the stream needs a user who reads or writes it
void refuse_streams_of_users(const placement& where) {
    for (const auto& [number, sinks] : where.sinks)
        for (const auto& sink : sinks)
            if (std::holds_alternative<lines_sink>(sink) ||
                std::holds_alternative<chunks_sink>(sink))
                throw std::invalid_argument("cohort: a pool has no output(): use file(), console() "
                                            "or capture() instead of lines() and chunks()");
    if (where.input && std::holds_alternative<feed_input>(*where.input))
        throw std::invalid_argument("cohort: a pool has no write(): use bytes() or a file instead "
                                    "of feed()");
}

/// Asks the user's filter now. @return whether the worker's text goes to the console
bool settle(console_sink& console, int slot) {
    const bool shows = (!console.only || console.only->contains(slot)) &&
                       (!console.filter || (*console.filter)(slot));
    console.only.reset();
    console.filter.reset();
    return shows;
}

/// Regular files only, because others would be changed by that, or could keep the caller waiting.
void empty_file(const std::string& path) noexcept {
    const base::unique_fd file(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat is {};
    // What fails here fails again in the start of the worker, which says why.
    if (file && ::fstat(file.get(), &is) == 0 && S_ISREG(is.st_mode))
        (void)!::ftruncate(file.get(), 0);
}

/// As a part of a pattern.
std::string escaped(const std::string& text) {
    std::string pattern;
    for (const char c : text) {
        if (c == '{' || c == '}')
            pattern += c;
        pattern += c;
    }
    return pattern;
}

/// Writes the files of options::logs() as files of their own: a run has one directory, and the
/// groups of a pool's workers would each want to make it.
void spell_out_logs(placement& where, const std::string& directory) {
    for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
        auto& sinks = where.sinks[number];
        const bool is_elsewhere =
            where.descriptors.contains(number) ||
            (sinks.size() == 1 && (std::holds_alternative<inherit_sink>(sinks.front()) ||
                                   std::holds_alternative<discard_sink>(sinks.front()) ||
                                   std::holds_alternative<merge_sink>(sinks.front())));
        if (is_elsewhere)
            continue;
        file_sink log;
        log.pattern =
            directory + (number == STDOUT_FILENO ? "/{index}/stdout.log" : "/{index}/stderr.log");
        sinks.emplace_back(std::move(log));
    }
}

}  // namespace

worker_source::worker_source(spawn_plan plan, const worker_source* like)
    : plan_(std::move(plan)), services_(services_for(plan_)),
      names_(like ? like->names_ : output::names_for(plan_.settings.name)),
      caller_(like ? like->caller_ : caller_of(services_)) {
    plan_.placements.resize(static_cast<std::size_t>(size()));
    for (auto& own : plan_.placements)
        own = plan_.settings.where.overridden_by(own);
    plan_.settings.where.sinks.clear();
    plan_.settings.place.reset();
    settle_streams();
}

void worker_source::settle_streams() {
    const auto& logs = plan_.settings.logs;
    const auto base = names_.directory /
                      std::filesystem::path(plan_.settings.where.working_directory.value_or(""));
    const auto log_directory =
        logs ? escaped((base / logs->directory / output::run_id_of(*logs, names_)).string()) +
                   "/attempt_0"
             : std::string();
    for (int slot = 0; slot < size(); ++slot) {
        auto& where = plan_.placements[static_cast<std::size_t>(slot)];
        refuse_streams_of_users(where);
        if (logs)
            spell_out_logs(where, log_directory);
        for (auto& [number, sinks] : where.sinks) {
            std::erase_if(sinks, [&](sink& each) {
                auto* const console = std::get_if<console_sink>(&each);
                return console != nullptr && !settle(*console, slot);
            });
            if (sinks.empty())
                sinks.emplace_back(discard_sink());
            for (auto& each : sinks) {
                auto* const file = std::get_if<file_sink>(&each);
                if (file == nullptr || std::exchange(file->appends, true))
                    continue;
                const auto path =
                    output::expand(file->pattern, {slot, size(), 0, names_.group, names_.host});
                const auto directory =
                    names_.directory / std::filesystem::path(where.working_directory.value_or(""));
                not_appended_.push_back((directory / path).string());
            }
        }
    }
    plan_.settings.logs.reset();
}

void worker_source::empty_files(std::set<std::string>& emptied) const {
    for (const auto& path : not_appended_)
        if (emptied.insert(path).second)
            empty_file(path);
}

group_ref worker_source::make_group(int slot, attachment connection) const {
    spawn_plan one;
    one.settings = plan_.settings;
    one.settings.nprocs = 1;
    one.function = plan_.function;
    one.call = plan_.call;
    one.work = plan_.work;
    one.placements.push_back(plan_.placements.at(static_cast<std::size_t>(slot)));
    one.attachments.push_back(std::move(connection));
    one.told = numbering{slot, size()};
    return detail::make_group(services_, std::move(one), names_, caller_);
}

}  // namespace cohort::detail::inline v0_1
