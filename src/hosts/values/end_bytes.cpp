// SPDX-License-Identifier: BSL-1.0
#include "hosts/values/end_bytes.hpp"

#include "base/text/members.hpp"
#include "protocol/record/error_json.hpp"
#include "protocol/record/fields.hpp"

#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort::multihost {
namespace {

constexpr int last_signal_number = 64;
constexpr std::size_t longest_type_name = std::size_t{1} << 16;

/// Writes times as ages, and texts as long as a record may have them.
class end_writer : public wire_writer {
public:
    explicit end_writer(time_point now) noexcept : now_(now) {}

    void begin() { moment(now_.time_since_epoch()); }
    void time(time_point when) { span(std::max(now_ - when, duration::zero())); }
    void clean(const std::string& value, std::size_t most) {
        text(base::clean_and_bounded(value, most));
    }
    void name(const std::string& value, std::size_t most) { text(base::clean_head(value, most)); }
    void result(const std::vector<std::byte>& value) { bytes(value); }
    void captured_text(const shared_text& value) { text(value); }

private:
    time_point now_;
};

class end_reader : public wire_reader {
public:
    end_reader(std::span<const std::byte> bytes, const end_reader_place& here) noexcept
        : wire_reader(bytes, here.workers), here_(here), now_(here.now) {}

    void begin() {
        far_clock sent{0};
        moment(sent);
        now_ = here_.when(sent);
    }

    /// An age beyond the life of the group is not to be believed.
    void time(time_point& value) {
        std::int64_t age = 0;
        number(age);
        const auto longest = std::max(now_ - here_.earliest, duration::zero());
        value =
            now_ - std::clamp(duration(std::chrono::nanoseconds(age)), duration::zero(), longest);
    }
    /// The origin's name for it: an agent does not know that, and may not choose it.
    const std::string& host() const noexcept { return here_.host; }
    std::chrono::system_clock::time_point time_of_day(time_point when) const {
        return here_.time_of_day -
               std::chrono::duration_cast<std::chrono::system_clock::duration>(here_.now - when);
    }
    void clean(std::string& value, std::size_t most) {
        text(value);
        value = base::clean_and_bounded(value, most);
    }
    void name(std::string& value, std::size_t most) {
        text(value);
        value = base::clean_head(value, most);
    }
    void result(std::vector<std::byte>& value) {
        bytes(value, static_cast<std::size_t>(here_.result_limit));
    }
    void captured_text(shared_text& value) {
        std::string came;
        text(came, here_.capture_limit);
        value = shared_text(std::move(came));
    }

private:
    const end_reader_place& here_;
    time_point now_;  // when it was sent
};

template <class T>
concept end_wire = std::same_as<T, end_writer> || std::same_as<T, end_reader>;

template <end_wire W>
void walk_fields(W& w, auto& value);

template <end_wire W>
void walk(W& w, typename W::template of<std::string>& value, const protocol::fields::texts& rule) {
    if (rule.kind == protocol::fields::texts::of::prose)
        return w.clean(value, base::text_limit);
    w.name(value, rule.most);
    if constexpr (W::reads)
        if (rule.kind == protocol::fields::texts::of::digits && !base::bytes_of_hex(value))
            value.clear();
}
template <end_wire W, std::integral N>
void walk(W& w, N& value, const protocol::fields::numbers& rule) {
    using number = std::remove_const_t<N>;
    w.number(value, rule.lowest<number>(), rule.highest<number>());
}
template <end_wire W>
void walk(W& w, typename W::template of<std::chrono::microseconds>& value,
          const protocol::fields::numbers& rule) {
    auto count = value.count();
    walk(w, count, rule);
    if constexpr (W::reads)
        value = std::chrono::microseconds(count);
}
template <end_wire W>
void walk(W& w, typename W::template of<bool>& value, protocol::fields::any) {
    w.flag(value);
}
template <end_wire W>
void walk(W& w, typename W::template of<std::vector<stack_frame>>& frames, protocol::fields::any) {
    w.list(frames, protocol::frame_limit, [&](auto& frame) { walk_fields(w, frame); });
}

template <end_wire W>
void walk_fields(W& w, auto& value) {
    protocol::for_each_field<std::remove_cvref_t<decltype(value)>>(
        [&](const auto& one) { walk(w, value.*one.member, one.rule); });
}

void walk(end_writer& w, const exit_status& status) {
    w.flag(status.known());
    w.flag(status.core_dumped());
    w.number(status.signal());
    w.number(status.exited() ? status.exit_code() : 0);
}

void walk(end_reader& w, exit_status& status) {
    bool is_known = false;
    bool core_dumped = false;
    int signal = 0;
    int code = 0;
    w.flag(is_known);
    w.flag(core_dumped);
    w.number(signal, 0, last_signal_number);
    w.number(code, 0, 255);
    if (is_known)
        status = signal != 0 ? exit_status::from_signal(signal, core_dumped)
                             : exit_status::from_code(code);
}

template <end_wire W>
void walk(W& w, typename W::template of<captured>& stream) {
    w.captured_text(stream.head);
    w.captured_text(stream.tail);
    w.number(stream.total);
    if constexpr (W::reads)
        stream.total =
            std::max<std::uint64_t>(stream.total, stream.head.size() + stream.tail.size());
}

/// A record by the functions for local ones, which bound what a worker may have written.
void walk(end_writer& w, const shared_record<error_record>& error) {
    w.text(error ? protocol::write_error(*error) : "");
}

void walk(end_reader& w, shared_record<error_record>& error) {
    std::string json;
    w.text(json, protocol::record_limit);
    error = protocol::read_error(std::as_bytes(std::span(json)), json.size(), {});
}

void walk(end_writer& w, const shared_record<crash_record>& crash) {
    w.flag(crash.has_value());
    if (crash)
        walk_fields(w, *crash);
}

void walk(end_reader& w, shared_record<crash_record>& crash) {
    bool is_there = false;
    w.flag(is_there);
    if (!is_there)
        return;
    crash_record came;
    walk_fields(w, came);
    crash = std::move(came);
}

template <end_wire W>
void walk(W& w, typename W::template of<detail::judged_work>& work) {
    auto& [is_command, success, merges, has_parents_memory, name, note] = work;
    (void)name;  // the origin knows it
    for (auto* const fact : {&is_command, &success, &merges, &has_parents_memory})
        w.flag(*fact);
    w.clean(note, base::text_limit);
}

template <end_wire W>
void walk(W& w, typename W::template of<detail::result_bytes>& result) {
    auto& [type, cbor] = result;
    w.text(type, longest_type_name);
    w.result(cbor);
}

void walk(end_writer& w, const detail::left_result& result) {
    const auto& [bytes, descriptors] = result;
    const bool leaves = bytes && !descriptors;
    w.flag(leaves);
    if (leaves)
        walk(w, *bytes);
    w.flag(descriptors != nullptr);
}

void walk(end_reader& w, detail::left_result& result, std::string& note) {
    bool is_there = false;
    w.flag(is_there);
    if (is_there) {
        detail::result_bytes came;
        walk(w, came);
        result.bytes = std::make_shared<const detail::result_bytes>(std::move(came));
    }
    bool has_stayed = false;
    w.flag(has_stayed);
    if (has_stayed)
        detail::add_note(note, "its result holds a shared array, queue, event, barrier or mutex, "
                               "which does not leave its machine");
}

/// Without what stands in ended_worker: streams, history and whether the worker starts again.
template <end_wire W>
void walk(W& w, typename W::template of<outcome>& left) {
    detail::outcome_access::members(
        left, [&](auto& index, auto& attempt, auto& host, auto& pid, auto& status, auto& cause,
                  auto& first_failure, auto& started, auto& ended, auto& started_at, auto& ended_at,
                  auto& usage, auto& error, auto& crash, auto& at_stop, auto&, auto&, auto&, auto&,
                  auto& work, auto& result) {
            w.index(index);
            w.number(attempt, 0);
            w.number(pid, 0);
            walk(w, status);
            w.one_of(cause, cause::output_limit);  // that a host is lost its agent can't say
            w.flag(first_failure);
            w.time(started);
            w.time(ended);
            walk_fields(w, usage);
            walk(w, error);
            walk(w, crash);
            w.list(at_stop, protocol::activity_limit, [&](auto& one) { walk_fields(w, one); });
            walk(w, work);
            if constexpr (W::reads) {
                host = w.host();
                walk(w, result, work.note);
                ended = std::max(started, ended);
                started_at = w.time_of_day(started);
                ended_at = w.time_of_day(ended);
            } else {
                (void)host;
                walk(w, result);
            }
        });
}

void walk(end_writer& w, const std::shared_ptr<const outcome>& left) { walk(w, *left); }

void walk(end_reader& w, std::shared_ptr<const outcome>& left) {
    outcome came;
    walk(w, came);
    left = std::make_shared<const outcome>(std::move(came));
}

template <end_wire W>
void walk(W& w, typename W::template of<detail::ended_worker>& worker) {
    auto& [left, out, err, note, restarts, victim, event_time, past] = worker;
    (void)past;
    walk(w, left);
    walk(w, out);
    walk(w, err);
    w.clean(note, base::text_limit);
    w.flag(restarts);
    w.flag(victim);
    w.time(event_time);
    if constexpr (W::reads)
        event_time = std::clamp(event_time, left->started, left->ended);
}

}  // namespace

std::vector<std::byte> write_end(const detail::ended_worker& end, time_point now) {
    end_writer w(now);
    w.begin();
    walk(w, end);
    return w.take();
}

std::vector<std::byte> write_bare_end(const detail::ended_worker& end, time_point now) {
    auto left = std::make_shared<outcome>(*end.left);
    detail::outcome_access::result(*left).reset();
    detail::ended_worker bare;
    bare.out.total = end.out.total;
    bare.err.total = end.err.total;
    bare.note = end.note;
    bare.restarts = end.restarts;
    bare.victim = end.victim;
    bare.event_time = end.event_time;
    bare.left = std::move(left);
    detail::add_note(bare.note, "its result and captured output could not be sent, because its "
                                "agent had no memory for them");
    return write_end(bare, now);
}

read_value<detail::ended_worker> read_end(std::span<const std::byte> bytes,
                                          const end_reader_place& here) noexcept {
    return read_whole<detail::ended_worker>(
        "the end of a worker", end_reader(bytes, here),
        [](end_reader& w, detail::ended_worker& end) {
            w.begin();
            walk(w, end);
        });
}

}  // namespace cohort::multihost
