// SPDX-License-Identifier: BSL-1.0
#include "hosts/values/messages.hpp"

#include "base/text/text.hpp"
#include "hosts/values/plan_parts.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace cohort::multihost {
namespace {

constexpr std::size_t longest_name = 4096;
constexpr std::size_t most_abilities = 256;
constexpr int last_error_number = 4095;

/// A text for people.
template <wire W>
void walk_clean(W& w, typename W::template of<std::string>& value, std::size_t most) {
    if constexpr (W::reads) {
        w.text(value);
        value = base::clean_and_bounded(value, most);
    } else {
        w.text(base::clean_and_bounded(value, most));
    }
}

template <wire W>
void walk(W& w, typename W::template of<hello>& said) {
    auto& [version, program, library, host, abilities, pid] = said;
    w.number(version);
    walk_clean(w, program, longest_name);
    walk_clean(w, library, longest_name);
    walk_clean(w, host, longest_name);
    w.list(abilities, most_abilities, [&](auto& one) { walk_clean(w, one, longest_name); });
    w.number(pid, 0);
}

template <wire W>
void walk(W& w, typename W::template of<welcome>& said) {
    auto& [env, working_directory, host_timeout, must_enter] = said;
    w.list(env, unlimited, [&](auto& change) { walk(w, change); });
    maybe_word(w, working_directory);
    w.span(host_timeout);
    w.flag(must_enter);
}

template <wire W>
void walk(W& w, typename W::template of<started_workers>& said) {
    auto& [pids] = said;
    std::size_t most = unlimited;
    if constexpr (W::reads)
        most = static_cast<std::size_t>(std::max(w.workers(), 0));
    w.list(pids, most, [&](auto& pid) { w.number(pid, 0); });
    if constexpr (W::reads)
        if (pids.size() != most)
            throw unreadable(fmt::format("{} process IDs of {} workers", pids.size(), most));
}

template <wire W>
void walk(W& w, typename W::template of<worker_usage>& used) {
    auto& [index, cpu_time, resident, threads, state] = used;
    w.index(index);
    auto time = cpu_time.count();
    w.number(time, 0);
    if constexpr (W::reads)
        cpu_time = std::chrono::nanoseconds(time);
    w.number(resident);
    w.number(threads, 0);
    w.number(state, ' ' + 1, '~');
}

template <wire W>
void walk(W& w, typename W::template of<used_resources>& said) {
    auto& [workers, error] = said;
    std::size_t most = unlimited;
    if constexpr (W::reads)
        most = static_cast<std::size_t>(std::max(w.workers(), 0));
    w.list(workers, most, [&](auto& one) { walk(w, one); });
    w.number(error, 0, last_error_number);
}

template <wire W>
void walk(W& w, typename W::template of<ladder_spans>& said) {
    auto& [grace_period, kill_timeout] = said;
    w.span(grace_period);
    w.span(kill_timeout);
}

template <wire W>
void walk(W& w, typename W::template of<begun_worker>& said) {
    auto& [index, pid] = said;
    w.index(index);
    w.number(pid, 1);
}

template <wire W>
void walk(W& w, typename W::template of<failed_worker>& said) {
    auto& [index, at] = said;
    w.index(index);
    w.moment(at);
}

template <wire W>
void walk(W& w, typename W::template of<signal_request>& said) {
    auto& [index, signo] = said;
    w.maybe(index, [&](auto& one) { w.index(one); });
    w.number(signo, 1, last_signal);
}

template <wire W>
void walk(W& w, typename W::template of<end_order>& said) {
    auto& [signo] = said;
    w.number(signo, 1, last_signal);
}

template <wire W>
void walk(W& w, typename W::template of<stream_credit>& said) {
    auto& [index, from, bytes] = said;
    w.maybe(index, [&](auto& one) { w.index(one); });
    w.one_of(from, stream::err);
    w.number(bytes);
}

template <wire W>
void walk(W& w, typename W::template of<stream_head>& head) {
    auto& [index, attempt, from, is_end, lost_lines, lost_bytes] = head;
    w.index(index);
    w.number(attempt, 0);
    w.one_of(from, stream::err);
    w.flag(is_end);
    w.number(lost_lines);
    w.number(lost_bytes);
}

template <wire W>
void walk(W& w, typename W::template of<input_head>& head) {
    auto& [index, is_end] = head;
    w.index(index);
    w.flag(is_end);
}

template <wire W>
void walk(W& w, typename W::template of<input_answer>& said) {
    auto& [index, is_taken] = said;
    w.index(index);
    w.flag(is_taken);
}

/// By the two categories that a start fails with. A code of another one becomes EIO.
void walk(wire_writer& w, const std::error_code& code) {
    const bool is_generic = code.category() == std::generic_category();
    w.flag(is_generic);
    w.number(is_generic || code.category() == std::system_category() ? code.value() : EIO);
}

void walk(wire_reader& w, std::error_code& code) {
    bool is_generic = false;
    int value = 0;
    w.flag(is_generic);
    w.number(value);
    code = {value, is_generic ? std::generic_category() : std::system_category()};
}

template <wire W>
void walk(W& w, typename W::template of<detail::start_failure>& failure) {
    auto& [code, text, index, stage] = failure;
    walk(w, code);
    walk_clean(w, text, base::text_limit);
    if constexpr (W::reads)
        w.number(index, -1, w.workers() - 1);
    else
        w.number(index);
    walk_clean(w, stage, longest_name);
}

}  // namespace

template <class Message>
std::vector<std::byte> write_message(const Message& message) {
    wire_writer w;
    walk(w, message);
    return w.take();
}

template <class Message>
read_value<Message> read_message(std::span<const std::byte> bytes, int workers) noexcept {
    return read_whole<Message>("a message", wire_reader(bytes, workers),
                               [](wire_reader& w, Message& message) {
                                   if constexpr (std::is_same_v<Message, hello>) {
                                       auto ahead = w;
                                       ahead.number(message.version);
                                       if (message.version != hello::current_version)
                                           return w.skip();
                                   }
                                   walk(w, message);
                               });
}

template <class Head>
std::vector<std::byte> write_data(const Head& head, std::span<const std::byte> data) {
    const auto first = write_message(head);
    std::vector<std::byte> all;
    all.reserve(1 + first.size() + data.size());
    all.push_back(static_cast<std::byte>(first.size()));
    all.insert(all.end(), first.begin(), first.end());
    all.insert(all.end(), data.begin(), data.end());
    return all;
}

template <class Head>
read_data_value<Head> read_data(std::span<const std::byte> bytes, int workers) noexcept {
    const auto size = bytes.empty() ? 0 : std::to_integer<std::size_t>(bytes.front());
    const auto rest = bytes.subspan(std::min<std::size_t>(bytes.size(), 1));
    const auto first = rest.first(std::min(size, rest.size()));
    return {read_message<Head>(first, workers), rest.subspan(first.size())};
}

template std::vector<std::byte> write_message(const hello&);
template std::vector<std::byte> write_message(const welcome&);
template std::vector<std::byte> write_message(const started_workers&);
template std::vector<std::byte> write_message(const used_resources&);
template std::vector<std::byte> write_message(const ladder_spans&);
template std::vector<std::byte> write_message(const begun_worker&);
template std::vector<std::byte> write_message(const failed_worker&);
template std::vector<std::byte> write_message(const signal_request&);
template std::vector<std::byte> write_message(const end_order&);
template std::vector<std::byte> write_message(const stream_credit&);
template std::vector<std::byte> write_message(const stream_head&);
template std::vector<std::byte> write_message(const input_head&);
template std::vector<std::byte> write_message(const input_answer&);
template std::vector<std::byte> write_message(const detail::start_failure&);
template read_value<hello> read_message(std::span<const std::byte>, int) noexcept;
template read_value<welcome> read_message(std::span<const std::byte>, int) noexcept;
template read_value<started_workers> read_message(std::span<const std::byte>, int) noexcept;
template read_value<used_resources> read_message(std::span<const std::byte>, int) noexcept;
template read_value<ladder_spans> read_message(std::span<const std::byte>, int) noexcept;
template read_value<begun_worker> read_message(std::span<const std::byte>, int) noexcept;
template read_value<failed_worker> read_message(std::span<const std::byte>, int) noexcept;
template read_value<signal_request> read_message(std::span<const std::byte>, int) noexcept;
template read_value<end_order> read_message(std::span<const std::byte>, int) noexcept;
template read_value<stream_credit> read_message(std::span<const std::byte>, int) noexcept;
template read_value<stream_head> read_message(std::span<const std::byte>, int) noexcept;
template read_value<input_head> read_message(std::span<const std::byte>, int) noexcept;
template read_value<input_answer> read_message(std::span<const std::byte>, int) noexcept;
template read_value<detail::start_failure> read_message(std::span<const std::byte>, int) noexcept;
template std::vector<std::byte> write_data(const stream_head&, std::span<const std::byte>);
template read_data_value<stream_head> read_data(std::span<const std::byte>, int) noexcept;
template std::vector<std::byte> write_data(const input_head&, std::span<const std::byte>);
template read_data_value<input_head> read_data(std::span<const std::byte>, int) noexcept;

}  // namespace cohort::multihost
