// SPDX-License-Identifier: BSL-1.0
#include "hosts/agent/agent.hpp"

#include "base/sys/host_name.hpp"
#include "protocol/trace/modules.hpp"

#include <cerrno>
#include <cstdlib>
#include <random>
#include <string>
#include <system_error>
#include <utility>

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

constexpr std::size_t largest_message = largest_welcome;

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
          runtime.output(), std::move(in), std::move(out),
          connection::settings{side::agent, random_number(), largest_message, {}})) {}

std::future<agent::ending> agent::begin() {
    runtime_.output().post([self = shared_from_this()] {
        self->link_->begin(self);
        self->link_->send({frame_kind::hello}, write_message(hello_of_this_process()));
    });
    return over_.get_future();
}

void agent::say_bye() {
    runtime_.output().post([self = shared_from_this()] {
        self->link_->send({frame_kind::bye});
        self->link_->finish([self] { self->close(); });
    });
    closed_.get_future().wait();
}

void agent::heard(message what) {
    if (!is_welcome_)
        return what.name.kind == frame_kind::welcome ? welcomed(what.body) : refuse(breach::first);
    switch (what.name.kind) {
    case frame_kind::leave:
        return over({true, {}});
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
    const char* const why = how.why == connection_end::kind::broken ? to_string(*how.how)
                            : how.why == connection_end::kind::silent
                                ? "nothing came from its origin for too long"
                                : "its origin has closed it";
    over({false, why});
    close();
}

void agent::over(ending how) {
    if (!std::exchange(is_over_, true))
        over_.set_value(std::move(how));
}

/// Nothing more can be said.
void agent::close() {
    if (!std::exchange(is_closed_, true))
        closed_.set_value();
}

}  // namespace cohort::multihost
