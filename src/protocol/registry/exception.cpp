// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/exception.hpp"

#include "protocol/record/traceback.hpp"
#include "protocol/registry/error_types.hpp"
#include "protocol/trace/throws.hpp"

#include <cohort/detail/type_name.hpp>
#include <cohort/errors.hpp>
#include <cohort/host_errors.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <iterator>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <utility>

#include <cxxabi.h>

namespace cohort::protocol {
namespace {

constexpr std::size_t most_nested = 16;

template <class Number>
std::string number_text(Number value) {
    return "a thrown number: " + std::to_string(value);
}

/// The message of the exception that is being handled.
std::string message_of_current() {
    try {
        throw;
    } catch (const std::exception& e) {
        return e.what() == nullptr ? "" : e.what();
    } catch (const std::string& text) {
        return text;
    } catch (const char* text) {
        return text == nullptr ? "" : text;
    } catch (int value) {
        return number_text(value);
    } catch (unsigned value) {
        return number_text(value);
    } catch (long value) {
        return number_text(value);
    } catch (unsigned long value) {
        return number_text(value);
    } catch (...) {
        return "unknown exception";
    }
}

void note_code(error_record& error, const std::error_code& code) {
    error.code = code.value();
    error.category = code.category().name();
}

void describe_code(error_record& error) {
    try {
        throw;
    } catch (const std::system_error& e) {
        note_code(error, e.code());
    } catch (const std::future_error& e) {
        note_code(error, e.code());
    } catch (...) {
    }
}

/// A failure without a record of the worker's own.
error_record failed_worker(const process_exception& e) {
    error_record inner;
    inner.message = inner.trace = e.what();
    inner.worker = e.error_index();
    inner.pid = e.error_pid();
    for (const auto& worker : e.outcomes())
        if (worker.index == e.error_index() && worker.crash)
            inner.frames = worker.crash->frames;
    return inner;
}

/// If the exception is the failure of a group of this worker: adds which of the group's workers
/// failed, and why. @return false: it is another exception
bool describe_own_group(error_record& error) {
    try {
        throw;
    } catch (const process_raised_exception& e) {
        auto inner = e.error();
        inner.worker = e.error_index();
        inner.pid = e.error_pid();
        auto further = std::exchange(inner.nested, {});
        error.nested.push_back(std::move(inner));
        std::ranges::move(further, std::back_inserter(error.nested));
        return true;
    } catch (const process_exited_exception& e) {
        error.nested.push_back(failed_worker(e));
        return true;
    } catch (const host_lost& e) {
        error.nested.push_back(failed_worker(e));
        return true;
    } catch (...) {
        return false;
    }
}

/// Describes the exception itself, without those nested in it. The most important members come
/// first, because the rest is missing when memory runs out.
void describe_one(error_record& error) {
    error.type = name_of_current_exception();
    error.message = message_of_current();
    describe_code(error);
    error.trace = protocol::closing_line(error);
    try {
        if (const auto* type = protocol::find_error_type(error.type))
            detail::error_record_access::value(error) = type->save();
    } catch (...) {
        // The code that was registered for the type has failed: the parent cannot restore the type.
    }
    if (const auto* noted = protocol::throw_of(std::current_exception()))
        error.frames = protocol::locate(noted->stack);
}

/// The exception that is nested in `exception`; null: none.
std::exception_ptr nested_in(const std::exception_ptr& exception) noexcept {
    try {
        std::rethrow_exception(exception);
    } catch (const std::nested_exception& e) {
        return e.nested_ptr();
    } catch (...) {
        return nullptr;
    }
}

void describe_nested(error_record& error) {
    if (describe_own_group(error) || error.nested.size() >= most_nested)
        return;
    const auto nested = nested_in(std::current_exception());
    if (!nested)
        return;
    try {
        std::rethrow_exception(nested);
    } catch (...) {
        describe_one(error.nested.emplace_back());
        describe_nested(error);
    }
}

}  // namespace

std::string name_of_current_exception() {
    const std::type_info* type = abi::__cxa_current_exception_type();  // null: not thrown by C++
    if (type == nullptr)
        return "unknown";
    std::string name = detail::type_name(*type);
    constexpr std::string_view wrapper = "std::_Nested_exception<";
    while (name.starts_with(wrapper) && name.ends_with('>'))
        name = name.substr(wrapper.size(), name.size() - wrapper.size() - 1);
    // The version of the library that threw stands between the two.
    if (name.starts_with("cohort::detail::") && name.ends_with("::raised_with_cause"))
        return "cohort::process_raised_exception";
    return name;
}

std::chrono::steady_clock::time_point time_of(const std::exception_ptr& exception) noexcept {
    auto first = std::chrono::steady_clock::now();
    auto cause = exception;
    for (std::size_t i = 0; cause && i <= most_nested; ++i) {
        if (const auto* noted = protocol::throw_of(cause))
            first = std::min(first, noted->at);
        cause = nested_in(cause);
    }
    return first;
}

error_record describe_current_exception() noexcept {
    error_record error;
    try {
        error.timestamp = std::chrono::system_clock::now() -
                          (std::chrono::steady_clock::now() - time_of(std::current_exception()));
        describe_one(error);
        describe_nested(error);
        if (error.nested.size() > most_nested)
            error.nested.resize(most_nested);
    } catch (...) {
        // No memory for all of it. The reader makes a trace from the members that are there.
    }
    return error;
}

}  // namespace cohort::protocol
