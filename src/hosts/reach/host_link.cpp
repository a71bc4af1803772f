// SPDX-License-Identifier: BSL-1.0
#include "hosts/reach/host_link.hpp"

#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/patiently.hpp"
#include "base/text/text.hpp"
#include "base/values/group_end.hpp"
#include "base/values/last_words.hpp"
#include "base/values/quantity.hpp"
#include "group/border/create_group.hpp"
#include "hosts/agent/agent.hpp"

#include <cohort/detail/duration.hpp>
#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::multihost {
namespace {

using namespace std::chrono_literals;

enum operation : detail::operation_id { start_operation = 1, end_operation = 2 };

/// Bytes of the launcher's stderr.
constexpr std::size_t kept_words = 65'536;
constexpr std::size_t largest_of_agent = std::size_t{1} << 20;
/// Of what was written before a hello, in an error's text.
constexpr std::size_t most_noise = 1000;
/// How long a launcher may take to end whose link has ended, or whose agent has said bye.
constexpr auto time_to_end = 1s;
constexpr auto time_to_leave = 5s;
/// A hello, the answer to the welcome, and bye.
constexpr int most_heard = 3;

struct stream_pair {
    base::unique_fd ours;
    base::unique_fd theirs;
};

/// @throws spawn_error
stream_pair open_stream(bool theirs_reads) {
    std::error_code error;
    auto made = base::make_pipe(error);
    if (error)
        throw spawn_error(error, "pipe for the link to a host", -1, "pipe");
    auto& theirs = theirs_reads ? made.read : made.write;
    // A launcher that does not expect it would fail.
    ::fcntl(theirs.get(), F_SETFL, ::fcntl(theirs.get(), F_GETFL) & ~O_NONBLOCK);
    auto& ours = theirs_reads ? made.write : made.read;
    return {std::move(ours), std::move(theirs)};
}

detail::spawn_plan plan_of(const host_link::settings& how, base::unique_fd in,
                           base::unique_fd out) {
    detail::spawn_plan plan;
    detail::add_program(plan, how.launcher);
    auto& s = plan.settings;
    s.error_file = false;
    s.name = "launcher";
    s.grace_period = time_to_leave;
    s.where.descriptors[STDIN_FILENO] = base::own(std::move(in));
    s.where.descriptors[STDOUT_FILENO] = base::own(std::move(out));
    detail::capture_sink words;
    words.head = 0;
    words.tail = kept_words;
    detail::console_sink shown;
    shown.tag.clear();
    s.where.sinks[STDERR_FILENO] = {words, shown};
    return plan;
}

std::error_code protocol_error() { return std::make_error_code(std::errc::protocol_error); }

}  // namespace

host_link::host_link(const origin& from, listener& of, int number, settings how)
    : runtime_(from.services.runtime()), listener_(of), number_(number), how_(std::move(how)) {
    auto to = open_stream(true);
    auto back = open_stream(false);
    launcher_ = detail::make_group(from.services,
                                   plan_of(how_, std::move(to.theirs), std::move(back.theirs)),
                                   output::route_names(), from.caller);
    link_ = std::make_shared<connection>(
        runtime_.output(), std::move(back.ours), std::move(to.ours),
        connection::settings{
            side::origin, std::nullopt, largest_of_agent, {1s, how_.answer.host_timeout}});
}

host_link::~host_link() = default;

void host_link::start() {
    is_.started = true;
    detail::start_group(launcher_, {weak_from_this(), start_operation});
    runtime_.output().post([self = shared_from_this()] {
        self->link_->begin(std::shared_ptr<connection::listener>(
            self, static_cast<connection::listener*>(self.get())));
    });
}

// --- from the launcher ---

detail::delivery host_link::complete(detail::operation_id id,
                                     const detail::completion& result) noexcept {
    if (id == start_operation && result.what == detail::completion::kind::done) {
        detail::await_end(launcher_, std::nullopt, {weak_from_this(), end_operation});
        return detail::delivery::posted;
    }
    if (result.not_started)
        base::patiently(
            [&] { fail("launcher", result.not_started->code, result.not_started->text); });
    launcher_ended(result);
    return detail::delivery::posted;
}

void host_link::launcher_ended(const detail::completion& result) {
    launcher_end_ = result.end;
    is_.launcher_over = true;
    if (!is_.reached && !failure_)
        base::patiently([&] { fail_by_end(); });
    if (failure_)
        tell_failure();
    if (loss_)
        tell_lost();
    go_on();
}

std::string host_link::words_of_launcher() const {
    if (!launcher_end_ || launcher_end_->workers().empty())
        return {};
    return base::last_words(launcher_end_->workers().front()->err);
}

std::string host_link::end_of_launcher() const {
    if (!launcher_end_ || launcher_end_->workers().empty())
        return "its launcher has ended";
    return "its launcher ended: " + to_string(launcher_end_->workers().front()->left->status);
}

/// The launcher has ended before a hello.
void host_link::fail_by_end() {
    const bool is_well = launcher_end_ && !launcher_end_->workers().empty() &&
                         launcher_end_->workers().front()->left->status.success();
    auto text = end_of_launcher();
    if (!noise_.empty())
        text += ", after it had written: " + noise_;
    if (is_well)  // it has run something, which was no agent
        text += " (does its program begin with cohort::worker_main?)";
    fail(is_well ? "hello" : "launcher", protocol_error(), text);
}

// --- from the agent, on the output thread ---

template <class Then>
void host_link::on_engine(Then then) {
    runtime_.loop().post([self = shared_from_this(), then = std::move(then)] { then(*self); });
}

void host_link::heard(message what) {
    if (what.name.group != 0 || ++heard_ > most_heard)
        return link_->refuse(breach::order);
    switch (what.name.kind) {
    case frame_kind::hello:
        return on_engine(
            [said = read_message<hello>(what.body)](host_link& h) { h.greeted(said); });
    case frame_kind::started:
        return on_engine([](host_link& h) { h.answered(nullptr); });
    case frame_kind::not_started: {
        auto said = read_message<detail::start_failure>(what.body);
        if (!said)
            return link_->refuse(breach::body);
        auto why = base::make_shared_patiently<detail::start_failure>(std::move(*said));
        return on_engine([why = std::move(why)](host_link& h) { h.answered(why.get()); });
    }
    case frame_kind::bye:
        return;
    default:
        return link_->refuse(breach::order);
    }
}

void host_link::ended(const connection_end& how) {
    on_engine([how, noise = link_->noise()](host_link& h) { h.link_ended(how, noise); });
}

// --- from the agent, on the engine's thread ---

void host_link::greeted(const read_value<hello>& said) {
    if (is_.greeted || failure_)
        return;
    is_.greeted = true;
    if (!said)
        return base::patiently([&] { fail("hello", protocol_error(), said.problem); });
    const auto own = hello_of_this_process();
    if (said.value->version != own.version)
        return base::patiently([&] {
            fail("version", protocol_error(),
                 fmt::format("its agent speaks version {} of the protocol, this program {}",
                             said.value->version, own.version));
        });
    if (said.value->program != own.program || said.value->library != own.library)
        return base::patiently([&] {
            fail("program", std::make_error_code(std::errc::executable_format_error),
                 fmt::format("it runs another build of the program: build ID {}, here {}",
                             said.value->program, own.program));
        });
    runtime_.output().post([self = shared_from_this()] {
        self->link_->send({frame_kind::welcome}, write_message(self->how_.answer));
    });
}

void host_link::answered(const detail::start_failure* why) {
    if (!is_.greeted || is_.reached || is_.leaving || failure_)
        return;
    if (why != nullptr)
        return base::patiently([&] { fail("hello", why->code, why->text); });
    is_.reached = true;
    listener_.reached(number_);
}

void host_link::link_ended(const connection_end& how, const std::string& noise) {
    is_.link_over = true;
    base::patiently([&] { noise_ = base::clean_and_bounded(noise, most_noise); });
    if (is_.leaving)
        after(time_to_leave, &host_link::stop);
    else if (is_.reached)
        note_loss(how);
    else if (how.why == connection_end::kind::broken)
        base::patiently([&] {
            fail("hello", protocol_error(),
                 std::string("it broke the protocol: ") + to_string(*how.how) +
                     (noise_.empty() ? "" : ", after it had written: " + noise_));
        });
    else if (!failure_ && !is_.launcher_over)
        after(time_to_end, &host_link::fail_by_cut);
    go_on();
}

void host_link::fail_by_cut() {
    base::patiently([&] { fail("hello", protocol_error(), "its link has ended without a hello"); });
}

void host_link::note_loss(const connection_end& how) {
    base::patiently([&] {
        switch (how.why) {
        case connection_end::kind::left:
        case connection_end::kind::cut:
            loss_ = "its link has ended";
            break;
        case connection_end::kind::silent:
            loss_ = "no beat for " + base::duration_text(how_.answer.host_timeout);
            break;
        case connection_end::kind::broken:
            loss_ = std::string("it broke the protocol: ") + to_string(*how.how);
            break;
        }
    });
    // Its launcher may say more.
    const bool may_end = how.why == connection_end::kind::cut && !is_.launcher_over;
    if (may_end)
        after(time_to_end, &host_link::tell_lost);
    else
        tell_lost();
}

void host_link::tell_lost() {
    if (std::exchange(is_.told, true))
        return;
    base::patiently([&] {
        if (is_.launcher_over) {
            const auto words = words_of_launcher();
            *loss_ = end_of_launcher() + (words.empty() ? "" : ", " + words);
        }
    });
    listener_.lost(number_, *loss_);
    if (!is_.launcher_over)  // the agent keeps its promise meanwhile
        after(how_.answer.host_timeout, &host_link::stop);
}

void host_link::fail(const char* stage, std::error_code code, std::string text) {
    if (failure_ || is_.reached || is_.leaving)
        return;
    failure_ = unreached{how_.name, stage, code, std::move(text), {}};
    stop();
}

/// When the launcher has ended, because only then its words are all there.
void host_link::tell_failure() {
    if (std::exchange(is_.told, true))
        return;
    base::patiently([&] { failure_->words = words_of_launcher(); });
    listener_.not_reached(number_, *failure_);
}

// --- the end ---

void host_link::give_up(const std::string& why) {
    base::patiently([&] { fail("hello", std::make_error_code(std::errc::timed_out), why); });
}

void host_link::leave() {
    if (std::exchange(is_.leaving, true))
        return;
    if (!is_.reached || is_.link_over)
        return stop();
    runtime_.output().post([self = shared_from_this()] { self->link_->send({frame_kind::leave}); });
}

void host_link::stop() {
    is_.leaving = true;
    detail::request_stop(launcher_);
    runtime_.output().post([self = shared_from_this()] { self->link_->abandon(); });
    is_.link_over = true;
    if (!is_.started)
        is_.launcher_over = true;
    go_on();
}

void host_link::go_on() {
    if (!is_.launcher_over || !is_.link_over || std::exchange(is_.gone, true))
        return;
    cancel_timer();
    listener_.gone(number_);
}

void host_link::after(std::chrono::steady_clock::duration pause, void (host_link::*then)()) {
    cancel_timer();
    timer_ =
        runtime_.loop().timer().at(detail::saturating_add(std::chrono::steady_clock::now(), pause),
                                   [weak = weak_from_this(), then] {
                                       if (const auto self = weak.lock()) {
                                           self->timer_.reset();
                                           ((*self).*then)();
                                       }
                                   });
}

void host_link::cancel_timer() {
    if (timer_)
        runtime_.loop().timer().cancel(*std::exchange(timer_, std::nullopt));
}

}  // namespace cohort::multihost
