// SPDX-License-Identifier: BSL-1.0
#include "hosts/agent/agent.hpp"

#include "base/sys/host_name.hpp"
#include "protocol/trace/names.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

namespace cohort::multihost {
namespace {

/// In hexadecimal; empty: the module has none.
std::string build_id_at(std::uintptr_t address) {
    protocol::module found;
    std::string text;
    if (protocol::find_module(address, found))
        for (const auto byte : found.build_id)
            text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

std::uint64_t random_number() {
    std::random_device random;
    return (std::uint64_t{random()} << 32) | random();
}

/// Which worker a signal is for is checked where the group is known.
constexpr int most_workers = std::numeric_limits<int>::max();

/// The origin's beats come each second, and are answered. Another beat is due only where one is
/// late.
constexpr lease_rules lease_of_agent{.beat_period = std::chrono::milliseconds(1100),
                                     .answers_at_once = true};

/// No shorter than a group's own.
constexpr ladder_spans unlimited_spans{duration::max(), duration::max()};

std::string text_of(const connection_end& how) {
    switch (how.why) {
    case connection_end::kind::broken:
        return std::string("its origin broke the protocol: ") + to_string(*how.how);
    case connection_end::kind::silent:
        return "nothing came from its origin for too long";
    case connection_end::kind::no_memory:
        return "there is no memory for what its origin has sent";
    default:
        return "its origin has closed the link";
    }
}

/// A plan with its arguments. The reader takes memory for what has come only.
constexpr std::size_t largest_message = std::size_t{4} << 30;

}  // namespace

hello hello_of_this_process() {
    hello said;
    said.program = build_id_at(::getauxval(AT_ENTRY));
    said.library = build_id_at(reinterpret_cast<std::uintptr_t>(&hello_of_this_process));
    said.host = base::host_name();
    said.pid = ::getpid();
    return said;
}

agent::agent(loop::runtime& runtime, base::unique_fd in, base::unique_fd out)
    : runtime_(runtime),
      link_(std::make_shared<connection>(
          runtime.output(), std::move(in), std::make_shared<base::unique_fd>(std::move(out)),
          connection::settings{side::agent, random_number(), largest_message, lease_of_agent})) {}

agent::ending agent::live(base::unique_fd end_signals) {
    end_signals_ = std::move(end_signals);
    runtime_.output().post([self = shared_from_this()] {
        self->watch_end_signals();
        self->link_->begin(self);
        self->link_->send({frame_kind::hello}, write_message(hello_of_this_process()));
    });
    std::unique_lock lock(mutex_);
    is_over_.wait(lock, [this] { return how_.has_value(); });
    return *how_;
}

void agent::watch_end_signals() {
    runtime_.output().watch_readable(end_signals_.get(),
                                     [self = shared_from_this()] { self->told_to_end(); });
}

/// The first signal ends it. The link stays until the groups have ended: their ends are told.
void agent::told_to_end() {
    unsigned char signo = 0;
    if (::read(end_signals_.get(), &signo, sizeof signo) != sizeof signo)
        return watch_end_signals();
    if (how_)
        return;
    link_->send({frame_kind::told_to_end}, write_message(end_order{signo}));
    over({true, {}});
}

void agent::say_bye() {
    runtime_.output().post([self = shared_from_this()] {
        self->is_bye_due_ = true;
        self->say_bye_when_told();
    });
    closed_.get_future().wait();
}

/// What became of the groups stands before the bye.
void agent::say_bye_when_told() {
    const auto is_told = [](const auto& each) { return each.second->is_told(); };
    if (!is_bye_due_ || !std::ranges::all_of(groups_, is_told))
        return;
    is_bye_due_ = false;
    link_->send({frame_kind::bye});
    link_->finish([self = shared_from_this()] { self->close(); });
}

void agent::heard(message what) {
    if (!is_welcome_ && how_)
        return;  // it was told to end before: it begins nothing
    if (!is_welcome_)
        return what.name.kind == frame_kind::welcome ? welcomed(what.body) : refuse(breach::first);
    if (what.name.group != 0)
        return heard_of_group(std::move(what));
    switch (what.name.kind) {
    case frame_kind::leave:
        return over({true, {}});
    default:
        return refuse(breach::order);
    }
}

/// An agent that ends starts nothing.
void agent::start(std::uint32_t number, std::vector<std::byte> plan) {
    if (groups_.contains(number))
        return refuse(breach::order);
    if (how_) {
        const detail::start_failure why{std::make_error_code(std::errc::operation_canceled),
                                        "its agent ends", -1, "plan"};
        return link_->send({frame_kind::not_started, number}, write_message(why));
    }
    const auto group =
        std::make_shared<agent_group>(runtime_, link_, number, [weak = weak_from_this()] {
            if (const auto self = weak.lock())
                self->say_bye_when_told();
        });
    groups_[number] = group;
    runtime_.loop().post(
        [group, plan = std::move(plan)]() mutable { group->begin(std::move(plan)); });
}

/// What is said of a group that was never started, or has been forgotten, has crossed its end.
void agent::heard_of_group(message what) {
    const auto number = what.name.group;
    if (what.name.kind == frame_kind::start)
        return start(number, std::move(what.body));
    const auto found = groups_.find(number);
    if (found == groups_.end())
        return;
    const auto group = found->second;
    switch (what.name.kind) {
    case frame_kind::gate:
        return runtime_.loop().post([group] { group->open_gate(); });
    case frame_kind::stop: {
        const auto spans = read_message<ladder_spans>(what.body);
        if (!spans)
            return refuse(breach::body);
        return runtime_.loop().post(
            [group, spans = *spans.value] { group->stop_by_origin(spans); });
    }
    case frame_kind::signal: {
        const auto said = read_message<signal_request>(what.body, most_workers);
        if (!said)
            return refuse(breach::body);
        return runtime_.loop().post(
            [group, said = *said.value] { group->signal(said.index, said.signo); });
    }
    case frame_kind::hold:
        return runtime_.loop().post([group] { group->hold(); });
    case frame_kind::usage:
        return runtime_.loop().post([group] { group->usage(); });
    case frame_kind::data_credit:
    case frame_kind::input:
        return group->heard(std::move(what));
    case frame_kind::leave:
        group->close();
        groups_.erase(found);
        return;
    default:
        return refuse(breach::order);
    }
}

/// Nothing else runs in this process yet that could read its environment.
void agent::welcomed(std::span<const std::byte> body) {
    const auto said = read_message<welcome>(body);
    if (!said)
        return refuse(breach::body);
    is_welcome_ = true;
    for (const auto& [name, value] : said.value->env)
        if (value)
            ::setenv(name.c_str(), value->c_str(), 1);
        else
            ::unsetenv(name.c_str());
    const auto& path = said.value->working_directory;
    if (path && ::chdir(path->c_str()) != 0 && said.value->must_enter) {
        const std::error_code error(errno, std::system_category());
        return link_->send(
            {frame_kind::not_started},
            write_message(detail::start_failure{error, "chdir(\"" + *path + "\")", -1, "hello"}));
    }
    link_->set_host_timeout(said.value->host_timeout);
    link_->send({frame_kind::started}, write_message(started_workers()));
}

void agent::refuse(breach how) { link_->refuse(how); }

void agent::ended(const connection_end& how) {
    over({false, text_of(how)});
    for (const auto& [number, group] : std::exchange(groups_, {}))
        group->close();
    close();
}

/// The groups that live are stopped by exit()'s ladder, those that are being made here.
void agent::over(ending how) {
    if (how_)
        return;
    for (const auto& [number, group] : groups_)
        runtime_.loop().post([group] { group->stop(unlimited_spans); });
    {
        const std::lock_guard lock(mutex_);
        how_ = std::move(how);
    }
    is_over_.notify_one();
}

/// Nothing more can be said.
void agent::close() {
    if (!std::exchange(is_closed_, true))
        closed_.set_value();
}

}  // namespace cohort::multihost
