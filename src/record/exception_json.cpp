// SPDX-License-Identifier: BSL-1.0
#include "record/exception_json.hpp"

#include <cohort/json.hpp>

#include "record/error_members.hpp"
#include "record/outcome_members.hpp"

#include <stdexcept>
#include <utility>

namespace cohort {
namespace record {
namespace {

constexpr std::size_t exception_limit = std::size_t{16} << 20;
constexpr std::size_t outcome_limit = 65'536;

// The values of the member "exception".
constexpr const char* base_name = "process_exception";
constexpr const char* raised_name = "process_raised_exception";
constexpr const char* exited_name = "process_exited_exception";
constexpr const char* stopped_name = "group_stopped";

[[noreturn]] void refuse(const std::string& why) {
    throw std::invalid_argument("exception_from_json: " + why);
}

text::json exception_json(const process_exception& e, brevity how) {
    text::json object = text::json::object();
    object["exception"] = base_name;
    object["what"] = how == brevity::without_details ? text::clean_and_bounded(e.what(), brief_text)
                                                     : text::clean(e.what());
    text::put(object, "error_index", e.error_index(), -1);
    text::put(object, "error_pid", e.error_pid(), 0);
    object["outcomes"] = text::json::array();
    for (const outcome& one : e.outcomes())
        object["outcomes"].push_back(json_of(one, how));
    if (const auto* raised = dynamic_cast<const process_raised_exception*>(&e)) {
        object["exception"] = raised_name;
        object["error"] = json_of(raised->error(), how);
    } else if (const auto* exited = dynamic_cast<const process_exited_exception*>(&e)) {
        object["exception"] = exited_name;
        object["status"] = json_of(exited->status());
    } else if (dynamic_cast<const group_stopped*>(&e) != nullptr) {
        object["exception"] = stopped_name;
    }
    return object;
}

/// Results have no limit of their own. This check finds those that are too long before they are
/// written.
bool has_short_results(const process_exception& e) {
    std::size_t digits = 0;
    for (const outcome& one : e.outcomes())
        if (const auto* result = detail::outcome_access::result(one))
            digits += 2 * result->cbor.size();
    return digits <= exception_limit;
}

process_exception::outcome_list outcomes_in(const text::json& object) {
    const auto list = object.find("outcomes");
    if (list == object.end() || !list->is_array())
        refuse("it has no outcomes");
    if (list->size() > outcome_limit)
        refuse("it has more than 65,536 outcomes");
    auto outcomes = std::make_shared<std::vector<outcome>>();
    for (const text::json& one : *list) {
        if (!one.is_object())
            refuse("an outcome is no object");
        outcomes->push_back(outcome_in(one));
    }
    return outcomes;
}

/// The index of the failed worker; -1 if it is beyond the outcomes, so that it is safe to look an
/// outcome up by it.
int index_at(const text::json& object, const std::vector<outcome>& outcomes) {
    const int index = text::integer_at<int>(object, "error_index").value_or(-1);
    return index < 0 || (!outcomes.empty() && std::cmp_greater_equal(index, outcomes.size()))
               ? -1
               : index;
}

using raised_maker = std::exception_ptr (*)(const process_raised_exception&);

std::exception_ptr exception_in(const text::json& object, raised_maker raised) {
    const std::string name = text::text_at(object, "exception");
    const auto outcomes = outcomes_in(object);
    if (name == stopped_name)
        return std::make_exception_ptr(group_stopped(outcomes));
    const std::string what = text::clean(text::text_at(object, "what"));
    const int index = index_at(object, *outcomes);
    const pid_t pid = std::max(0, text::integer_at<pid_t>(object, "error_pid").value_or(0));
    if (name == exited_name)
        return std::make_exception_ptr(
            process_exited_exception(what, index, pid, outcomes, status_at(object)));
    if (name == base_name)
        return std::make_exception_ptr(process_exception(what, index, pid, outcomes));
    if (name != raised_name)
        refuse("it names none of cohort's exceptions");
    const auto error = object.find("error");
    if (error == object.end() || !error->is_object())
        refuse("a process_raised_exception without an error");
    return raised(
        process_raised_exception(what, index, pid, outcomes, error_in(*error, text::text_limit)));
}

}  // namespace

std::exception_ptr exception_in(std::string_view text, raised_maker raised) {
    if (text.size() > exception_limit)
        refuse("it is longer than 16 MiB");
    const text::json object = text::parsed(text);
    if (object.is_discarded())
        refuse("it is not JSON, or nested too deeply");
    if (!object.is_object())
        refuse("it is no JSON object");
    return exception_in(object, raised);
}

}  // namespace record

std::string to_json(const process_exception& e) {
    using record::brevity;
    if (e.outcomes().size() <= record::outcome_limit) {
        for (const auto how :
             {brevity::whole, brevity::without_results, brevity::without_details}) {
            if (how == brevity::whole && !record::has_short_results(e))
                continue;
            std::string text = text::line_of(record::exception_json(e, how));
            if (text.size() <= record::exception_limit)
                return text;
        }
    }
    throw std::length_error(e.outcomes().size() > record::outcome_limit
                                ? "to_json: the exception has more than 65536 outcomes"
                                : "to_json: the exception is longer than 16 MiB");
}

}  // namespace cohort
