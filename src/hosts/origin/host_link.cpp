// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/host_link.hpp"

#include "base/text/text.hpp"
#include "group/border/create_group.hpp"
#include "hosts/launchers/launcher_group.hpp"
#include "hosts/origin/program_check.hpp"

#include <cohort/detail/duration.hpp>

#include <utility>

namespace cohort::multihost {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t largest_of_agent = std::size_t{1} << 20;
/// Of what was written before a hello, in an error's text.
constexpr std::size_t most_noise = 1000;
/// How long a launcher may take to end whose link has ended, or whose agent has said bye.
constexpr auto time_to_end = 1s;
constexpr auto time_to_leave = 5s;
/// A hello, the answer to the welcome, that it was told to end, and bye.
constexpr int most_heard = 4;

std::error_code protocol_error() { return std::make_error_code(std::errc::protocol_error); }

}  // namespace

host_link::host_link(const origin& from, listener& of, int number, settings how)
    : runtime_(from.services.runtime()), listener_(of), number_(number), how_(std::move(how)) {
    auto to = open_stream(stream_of::launcher_reads);
    auto back = open_stream(stream_of::launcher_writes);
    launcher_ = detail::make_group(
        from.services,
        plan_of_launcher(how_.launcher, std::move(to.theirs), std::move(back.theirs)),
        output::route_names(), from.caller);
    link_ = std::make_shared<connection>(
        runtime_.output(), std::move(back.ours),
        // A copy of this process that held it would keep the agent from seeing that this one ends.
        loop::uncopied_descriptors::own(runtime_, std::move(to.ours)),
        connection::settings{
            side::origin, std::nullopt, largest_of_agent,
            {.host_timeout = how_.answer.host_timeout, .is_in_step = true}});
    parts_ = std::make_shared<link_parts>(runtime_, link_);
}

host_link::~host_link() = default;

void host_link::start() {
    is_.started = true;
    detail::start_group(launcher_, {weak_from_this(), start_operation, true});
    runtime_.output().post([self = shared_from_this()] {
        self->link_->begin(std::shared_ptr<connection::listener>(
            self, static_cast<connection::listener*>(self.get())));
    });
}

// --- from the launcher ---

detail::delivery host_link::complete(detail::operation_id id,
                                     const detail::completion& result) noexcept {
    if (id == start_operation && result.what == detail::completion::kind::done) {
        detail::await_end(launcher_, std::nullopt, {weak_from_this(), end_operation, true});
        return detail::delivery::posted;
    }
    if (result.not_started)
        fail("launcher", result.not_started->code, result.not_started->text);
    launcher_ended(result);
    return detail::delivery::posted;
}

void host_link::launcher_ended(const detail::completion& result) {
    launcher_end_ = launcher_end(result.end);
    is_.launcher_over = true;
    if (!is_.reached && !failure_ && !is_.leaving)
        return with_noise([](host_link& h, const std::string& noise) {
            h.fail_by_end(noise);
            h.go_on();
        });
    if (failure_)
        tell_failure();
    if (loss_ && is_.link_over)
        tell_lost();
    go_on();
}

/// The launcher has ended before the host was reached.
void host_link::fail_by_end(const std::string& noise) {
    const bool is_well = launcher_end_.success();
    auto text = launcher_end_.text() + noise;
    if (is_well && !is_.greeted)  // it has run something, which was no agent
        text += question_of_hello;
    fail(is_well || is_.greeted ? "hello" : "launcher", protocol_error(), text);
    if (failure_)
        tell_failure();
}

// --- from the agent, on the output thread ---

template <class Then>
void host_link::on_engine(Then then) {
    runtime_.loop().post([self = shared_from_this(), then = std::move(then)] { then(*self); });
}

void host_link::heard(message what) {
    if (what.name.group != 0)
        return parts_->hear(std::move(what));
    if (++heard_ > most_heard)
        return link_->refuse(breach::order);
    const auto kind = what.name.kind;
    const bool is_answer = kind == frame_kind::started || kind == frame_kind::not_started;
    if ((kind == frame_kind::hello && heard_ != 1) ||
        (is_answer && heard_ != 2))
        return link_->refuse(breach::order);
    switch (kind) {
    case frame_kind::hello:
        return on_engine(
            [said = read_message<hello>(what.body)](host_link& h) { h.greeted(said); });
    case frame_kind::started:
        return on_engine([](host_link& h) { h.answered(nullptr); });
    case frame_kind::not_started: {
        auto said = read_message<detail::start_failure>(what.body);
        if (!said)
            return link_->refuse(breach::body);
        auto why = std::make_shared<detail::start_failure>(std::move(*said));
        return on_engine([why = std::move(why)](host_link& h) { h.answered(why.get()); });
    }
    case frame_kind::told_to_end: {
        const auto said = read_message<end_order>(what.body);
        if (!said)
            return link_->refuse(breach::body);
        return on_engine([signo = said.value->signo](host_link& h) { h.told_to_end(signo); });
    }
    case frame_kind::bye:  // a child of the launcher's may hold its end of the link for ever
        ended({connection_end::kind::left});
        return link_->abandon();
    default:
        return link_->refuse(breach::order);
    }
}

void host_link::ended(const connection_end& how) {
    on_engine([how, last = link_->times().last_heard()](host_link& h) { h.link_ended(how, last); });
}

// --- from the agent, on the engine's thread ---

void host_link::greeted(const read_value<hello>& said) {
    if (is_.greeted || failure_)
        return;
    is_.greeted = true;
    auto wrong = find_misfit(said, *how_.own);
    if (wrong)
        return fail(wrong->stage, wrong->code, std::move(wrong->text));
    runtime_.output().post([self = shared_from_this()] {
        self->link_->send({frame_kind::welcome}, write_message(self->how_.answer));
    });
}

void host_link::answered(const detail::start_failure* why) {
    if (!is_.greeted || is_.reached || is_.leaving || failure_)
        return;
    if (why != nullptr)
        return fail("hello", why->code, why->text);
    is_.reached = true;
    listener_.reached(number_);
}

/// The link lives on until the agent's groups have ended.
void host_link::told_to_end(int signo) {
    if (is_.leaving || is_.link_over || failure_ || std::exchange(is_.told_to_end, true))
        return;
    loss_ = loss_of({connection_end::kind::left}, host_timeout());
    const auto name = exit_status::from_signal(signo, false).signal_name();
    loss_->why = "its agent was told to end (" + name + ")";
    loss_->last_heard = std::chrono::steady_clock::now();
    if (!is_.reached)
        fail("hello", std::make_error_code(std::errc::interrupted), loss_->why);
}

void host_link::link_ended(const connection_end& how, time_point last_heard) {
    if (std::exchange(is_.link_over, true))
        return;
    if (is_.leaving)
        after(time_to_leave, &host_link::stop);
    else if (is_.reached)
        note_loss(how, last_heard);
    else if (const auto code = code_of(how))
        fail_with_noise(*code, loss_of(how, host_timeout()).why);
    else if (!failure_ && !is_.launcher_over)
        after(time_to_end, &host_link::fail_by_cut);
    go_on();
}

/// With what was written before the hello, which the output thread knows.
void host_link::fail_with_noise(std::error_code code, std::string text) {
    with_noise([code, text = std::move(text)](host_link& h, const std::string& noise) {
        h.fail("hello", code, text + noise);
    });
}

template <class Then>
void host_link::with_noise(Then then) {
    runtime_.output().post([self = shared_from_this(), then = std::move(then)] {
        std::string noise;
        noise = base::clean_and_bounded(self->link_->noise(), most_noise);
        if (!noise.empty())
            noise.insert(0, ", after it had written: ");
        self->on_engine([then, noise](host_link& h) { then(h, noise); });
    });
}

void host_link::fail_by_cut() {
    fail_with_noise(protocol_error(), is_.greeted ? "its link has ended after its hello"
                                                  : "its link has ended without a hello");
}

void host_link::note_loss(const connection_end& how, time_point last_heard) {
    if (is_.told_to_end)
        return tell_lost();
    if (loss_)
        return;
    loss_ = loss_of(how, host_timeout());
    loss_->last_heard = last_heard;
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
    if (is_.launcher_over && !is_.told_to_end) {
        const auto words = launcher_end_.words();
        loss_->why = launcher_end_.text() + (words.empty() ? "" : ", " + words);
    }
    listener_.lost(number_, loss_->why);
    const auto promised = detail::saturating_add(time_point(host_timeout()), parts_->lose(*loss_));
    if (!is_.launcher_over)  // until then the agent sees the loss, and stops its workers
        after(promised.time_since_epoch(), &host_link::stop);
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
    failure_->words = launcher_end_.words();
    listener_.not_reached(number_, *failure_);
}

// --- the parts of groups ---

void host_link::open_part(std::uint32_t group, const std::shared_ptr<part_listener>& part,
                          std::size_t largest) {
    if (is_.told || is_.leaving) {
        const auto how = loss_.value_or(loss_of({connection_end::kind::left}, host_timeout()));
        return runtime_.loop().post([part, how] { part->link_lost(how); });
    }
    parts_->open(group, part, largest);
}

void host_link::give_up_agent(const std::string& why) {
    if (std::exchange(is_.link_over, true))
        return;
    loss_ = loss_of({connection_end::kind::silent}, host_timeout());
    loss_->last_heard = std::chrono::steady_clock::now();
    loss_->why = why;
    runtime_.output().post([self = shared_from_this()] { self->link_->abandon(); });
    tell_lost();
}

// --- the end ---

void host_link::give_up(const std::string& why) {
    fail_with_noise(std::make_error_code(std::errc::timed_out), why);
}

void host_link::leave() {
    if (std::exchange(is_.leaving, true))
        return;
    if (!is_.reached)
        return stop();
    if (is_.link_over)
        return tell_lost();
    after(how_.answer.host_timeout, &host_link::stop);  // the leave may be lost
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
