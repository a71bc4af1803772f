// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/exception_json.hpp"

#include <cohort/host_errors.hpp>
#include <cohort/json.hpp>

#include "protocol/record/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cohort {
namespace protocol {
namespace {

/// How long a text may be.
struct text_limits {
    const char* of;  // what has them, for an error's message
    std::size_t bytes;
    std::size_t outcomes;
};
constexpr text_limits exception_limits{"exception", std::size_t{16} << 20, 65'536};
constexpr text_limits report_limits{"report", std::size_t{64} << 20, 1'000'000};

// The values of the member "exception".
constexpr const char* base_name = "process_exception";
constexpr const char* raised_name = "process_raised_exception";
constexpr const char* exited_name = "process_exited_exception";
constexpr const char* host_lost_name = "host_lost";
constexpr const char* stopped_name = "group_stopped";
constexpr const char* timed_out_name = "group_timed_out";

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument("exception_from_json: " + why);
}

base::json outcomes_json(const std::vector<outcome>& outcomes, brevity how) {
    base::json list = base::json::array();
    for (const outcome& one : outcomes)
        list.push_back(json_of(one, how));
    return list;
}

base::json exception_json(const process_exception& e, brevity how) {
    base::json object = base::json::object();
    object["exception"] = base_name;
    object["what"] = how >= brevity::without_details ? base::clean_and_bounded(e.what(), brief_text)
                                                     : base::clean(e.what());
    base::put(object, "error_index", e.error_index(), -1);
    base::put(object, "error_pid", e.error_pid(), 0);
    object["outcomes"] = outcomes_json(e.outcomes(), how);
    if (const auto* raised = dynamic_cast<const process_raised_exception*>(&e)) {
        object["exception"] = raised_name;
        object["error"] = json_of(raised->error(), how);
    } else if (const auto* exited = dynamic_cast<const process_exited_exception*>(&e)) {
        object["exception"] = exited_name;
        object["status"] = json_of(exited->status());
    } else if (const auto* lost = dynamic_cast<const host_lost*>(&e)) {
        object["exception"] = host_lost_name;
        object["host"] = base::clean_and_bounded(lost->host(), brief_text);
    } else if (const auto* late = dynamic_cast<const group_timed_out*>(&e)) {
        object["exception"] = timed_out_name;
        object["limit"] = std::chrono::nanoseconds(late->limit()).count();
    } else if (dynamic_cast<const group_stopped*>(&e) != nullptr) {
        object["exception"] = stopped_name;
    }
    return object;
}

base::json report_json(const report& r, brevity how) {
    base::json object = base::json::object();
    object["success"] = r.success();
    object["elapsed"] = std::chrono::nanoseconds(r.elapsed).count();
    base::put(object, "name", base::clean(r.name));
    base::put(object, "host", base::clean(r.host));
    if (!r.hosts.empty()) {
        auto& hosts = object["hosts"] = base::json::array();
        for (const auto& host : r.hosts)
            hosts.push_back(base::clean(host));
    }
    if (r.time_limit)
        object["time_limit"] = std::chrono::nanoseconds(*r.time_limit).count();
    object["outcomes"] = outcomes_json(r.outcomes, how);
    return object;
}

/// How much text these outcomes have at least. This finds the texts that are too long before they
/// are written: results have no limit of their own, and there may be many streams and attempts.
std::size_t least_size(const std::vector<outcome>& outcomes, brevity how) {
    constexpr std::size_t least_of_one = 100;
    const std::size_t limit = stream_limit(how);
    std::size_t size = 0;
    for (const outcome& one : outcomes) {
        size += least_of_one;
        if (how < brevity::without_details)
            size += least_size(one.history, how);
        for (const captured* text : {&one.out, &one.err})
            size += std::min(limit, text->head.size() + text->tail.size());
        if (const auto* result = detail::outcome_access::result(one);
            result != nullptr && how == brevity::whole)
            size += 2 * result->cbor.size();
    }
    return size;
}

/// The line of JSON that `write` makes, as long as it may be.
template <class Write>
std::string bounded_line(const text_limits& limits, const std::vector<outcome>& outcomes,
                         Write write) {
    if (outcomes.size() > limits.outcomes)
        throw std::length_error(
            fmt::format("to_json: the {} has more than {} outcomes", limits.of, limits.outcomes));
    for (const auto how : {brevity::whole, brevity::without_results, brevity::without_details,
                           brevity::without_streams}) {
        if (least_size(outcomes, how) > limits.bytes)
            continue;
        std::string text = base::line_of(write(how));
        if (text.size() <= limits.bytes)
            return text;
    }
    throw std::length_error(
        fmt::format("to_json: the {} is longer than {} MiB", limits.of, limits.bytes >> 20));
}

process_exception::outcome_list outcomes_in(const base::json& object) {
    const auto list = object.find("outcomes");
    if (list == object.end() || !list->is_array())
        refuse("it has no outcomes");
    if (list->size() > exception_limits.outcomes)
        refuse("it has more than 65,536 outcomes");
    auto outcomes = std::make_shared<std::vector<outcome>>();
    for (const base::json& one : *list) {
        if (!one.is_object())
            refuse("an outcome is no object");
        outcomes->push_back(outcome_in(one));
    }
    return outcomes;
}

/// The index of the failed worker; -1 if it is beyond the outcomes, so that it is safe to look an
/// outcome up by it.
int index_at(const base::json& object, const std::vector<outcome>& outcomes) {
    const int index = base::integer_at<int>(object, "error_index").value_or(-1);
    return index < 0 || (!outcomes.empty() && std::cmp_greater_equal(index, outcomes.size()))
               ? -1
               : index;
}

using raised_maker = std::exception_ptr (*)(const process_raised_exception&);

std::exception_ptr exception_in(const base::json& object, raised_maker raised) {
    const std::string name = base::text_at(object, "exception");
    const auto outcomes = outcomes_in(object);
    if (name == stopped_name)
        return std::make_exception_ptr(group_stopped(outcomes));
    if (name == timed_out_name) {
        const auto limit = base::integer_at<std::int64_t>(object, "limit").value_or(0);
        return std::make_exception_ptr(
            group_timed_out(outcomes, std::chrono::nanoseconds(std::max<std::int64_t>(limit, 0))));
    }
    const std::string what = base::clean(base::text_at(object, "what"));
    const int index = index_at(object, *outcomes);
    const pid_t pid = std::max(0, base::integer_at<pid_t>(object, "error_pid").value_or(0));
    if (name == exited_name)
        return std::make_exception_ptr(
            process_exited_exception(what, index, pid, outcomes, status_at(object)));
    if (name == host_lost_name)
        return std::make_exception_ptr(
            host_lost(what, index, pid, outcomes,
                      base::clean_and_bounded(base::text_at(object, "host"), brief_text)));
    if (name == base_name)
        return std::make_exception_ptr(process_exception(what, index, pid, outcomes));
    if (name != raised_name)
        refuse("it names none of cohort's exceptions");
    const auto error = object.find("error");
    if (error == object.end() || !error->is_object())
        refuse("a process_raised_exception without an error");
    return raised(
        process_raised_exception(what, index, pid, outcomes, error_in(*error, base::text_limit)));
}

}  // namespace

std::exception_ptr exception_in(std::string_view text, raised_maker raised) {
    if (text.size() > exception_limits.bytes)
        refuse("it is longer than 16 MiB");
    const base::json object = base::parsed(text);
    if (object.is_discarded())
        refuse("it is not JSON, or nested too deeply");
    if (!object.is_object())
        refuse("it is no JSON object");
    return exception_in(object, raised);
}

}  // namespace protocol

std::string to_json(const process_exception& e) {
    return protocol::bounded_line(
        protocol::exception_limits, e.outcomes(),
        [&](protocol::brevity how) { return protocol::exception_json(e, how); });
}

std::string to_json(const report& r) {
    return protocol::bounded_line(protocol::report_limits, r.outcomes, [&](protocol::brevity how) {
        return protocol::report_json(r, how);
    });
}

}  // namespace cohort
