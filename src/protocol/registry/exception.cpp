// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/exception.hpp"

#include "base/sys/leaked.hpp"
#include "protocol/record/traceback.hpp"
#include "protocol/trace/names.hpp"
#include "protocol/trace/throws.hpp"

#include <cohort/detail/type_name.hpp>
#include <cohort/errors.hpp>
#include <cohort/host_errors.hpp>

#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <variant>

#include <cxxabi.h>

namespace cohort {
namespace {

/// An error type that the program has registered. Leaked, so that it outlives the type's module.
struct lesson {
    const detail::error_node* type;
    std::string name;
    lesson* next;

    bool is_there() const noexcept {
        protocol::module in;
        return protocol::find_module(reinterpret_cast<std::uintptr_t>(type), in);
    }
};

// Constant-initialised, because initialisers of other translation units register types.
constinit std::atomic<lesson*> taught{nullptr};

}  // namespace

void detail::teach(error_node& type) noexcept {
    auto* added = new lesson{&type, type_name(type.type()), taught.load(std::memory_order_relaxed)};
    while (!taught.compare_exchange_weak(added->next, added, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
}

namespace protocol {
namespace {

std::exception_ptr restored_one(const error_record& error, const std::exception_ptr& cause) {
    const auto* type = find_error_type(error.type);
    if (type == nullptr)
        return nullptr;
    try {
        type->raise(error, detail::error_record_access::value(error), cause);
    } catch (...) {
        // The code of a registered type may throw something else than the worker threw.
        if (protocol::name_of_current_exception() == error.type)
            return std::current_exception();
    }
    return nullptr;
}

}  // namespace

const detail::error_node* find_error_type(std::string_view name) {
    for (auto* each = taught.load(std::memory_order_acquire); each != nullptr; each = each->next)
        if (each->name == name && each->is_there())
            return each->type;
    for (auto* type = standard_error_types(); type != nullptr; type = type->next)
        if (detail::type_name(type->type()) == name)
            return type;
    return nullptr;
}

std::exception_ptr restored(const error_record& error) noexcept {
    try {
        std::exception_ptr cause;
        for (const auto& nested : error.nested | std::views::reverse)
            cause = nested.worker < 0 ? restored_one(nested, cause) : nullptr;
        return restored_one(error, cause);
    } catch (...) {
        return nullptr;  // no memory
    }
}

}  // namespace protocol
}  // namespace cohort

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

// The exceptions of the standard library. Most can be made from the record alone; file system and
// regex errors save more.
namespace cohort::protocol {
namespace {

using detail::error_node;
using detail::throw_on_account_of;

/// An exception without a message of its own: its type is enough to make it.
template <class Error>
struct bare final : error_node {
    bare() noexcept : error_node(typeid(Error)) {}
    std::string save() const override { return {}; }
    [[noreturn]] void raise(const error_record&, const std::string&,
                            const std::exception_ptr& cause) const override {
        throw_on_account_of(Error(), cause);
    }
};

/// An exception that is made from its message.
template <class Error>
struct text final : error_node {
    text() noexcept : error_node(typeid(Error)) {}
    std::string save() const override { return {}; }
    [[noreturn]] void raise(const error_record& error, const std::string&,
                            const std::exception_ptr& cause) const override {
        throw_on_account_of(Error(error.message), cause);
    }
};

const std::error_category& category_of(const std::string& name) {
    for (const std::error_category* known : {&std::generic_category(), &std::system_category(),
                                             &std::iostream_category(), &std::future_category()})
        if (name == known->name())
            return *known;
    throw std::invalid_argument("an error category of the program's own: " + name);
}

/// The text that was given to a system_error's constructor. Its what() is that text, ": " and the
/// code's message.
std::string without_code(std::string what, const std::error_code& code) {
    const std::string end = code.message();
    if (what == end)
        return {};
    if (what.ends_with(": " + end))
        what.resize(what.size() - end.size() - 2);
    return what;
}

template <class Error>
Error made_of_code(const std::error_code& code, const std::string& what) {
    const auto given = without_code(what, code);
    if constexpr (std::is_constructible_v<Error, std::error_code, const std::string&>)
        return given.empty() ? Error(code) : Error(code, given);
    else
        return Error(given, code);
}

/// A system_error, or a type with the same constructor.
template <class Error>
struct coded final : error_node {
    coded() noexcept : error_node(typeid(Error)) {}
    std::string save() const override { return {}; }
    [[noreturn]] void raise(const error_record& error, const std::string&,
                            const std::exception_ptr& cause) const override {
        const std::error_code code(error.code, category_of(error.category));
        throw_on_account_of(made_of_code<Error>(code, error.message), cause);
    }
};

/// Saves its two paths, and its what() without them. Each ends with a NUL, which no path contains.
struct file_system final : error_node {
    using filesystem_error = std::filesystem::filesystem_error;

    file_system() noexcept : error_node(typeid(filesystem_error)) {}
    std::string save() const override {
        try {
            throw;
        } catch (const filesystem_error& e) {
            std::string saved;
            for (const auto& part : {e.path1().string(), e.path2().string(),
                                     without_code(e.std::system_error::what(), e.code())})
                (saved += part) += '\0';
            return saved;
        }
    }
    [[noreturn]] void raise(const error_record& error, const std::string& saved,
                            const std::exception_ptr& cause) const override {
        std::array<std::string, 3> parts;
        std::size_t at = 0;
        for (auto& part : parts) {
            part = saved.substr(at, saved.find('\0', at) - at);
            at = std::min(at + part.size() + 1, saved.size());
        }
        const std::error_code code(error.code, category_of(error.category));
        throw_on_account_of(filesystem_error(parts[2], parts[0], parts[1], code), cause);
    }
};

struct promised final : error_node {
    promised() noexcept : error_node(typeid(std::future_error)) {}
    std::string save() const override { return {}; }
    [[noreturn]] void raise(const error_record& error, const std::string&,
                            const std::exception_ptr& cause) const override {
        throw_on_account_of(std::future_error(static_cast<std::future_errc>(error.code)), cause);
    }
};

/// std::regex_error is made from its code; its constructor takes no text.
struct regular final : error_node {
    regular() noexcept : error_node(typeid(std::regex_error)) {}
    std::string save() const override {
        try {
            throw;
        } catch (const std::regex_error& e) {
            return std::to_string(static_cast<int>(e.code()));
        }
    }
    [[noreturn]] void raise(const error_record&, const std::string& saved,
                            const std::exception_ptr& cause) const override {
        const auto code = static_cast<std::regex_constants::error_type>(std::stoi(saved));
        throw_on_account_of(std::regex_error(code), cause);
    }
};

template <class... Nodes>
class node_list {
public:
    node_list() noexcept {
        std::apply([&](auto&... node) { ((node.next = first_, first_ = &node), ...); }, nodes_);
    }
    node_list(const node_list&) = delete;
    node_list& operator=(const node_list&) = delete;
    const error_node* first() const noexcept { return first_; }

private:
    std::tuple<Nodes...> nodes_;
    const error_node* first_ = nullptr;
};

}  // namespace

const error_node* standard_error_types() noexcept {
    using known =
        node_list<text<std::logic_error>, text<std::invalid_argument>, text<std::domain_error>,
                  text<std::length_error>, text<std::out_of_range>, text<std::runtime_error>,
                  text<std::range_error>, text<std::overflow_error>, text<std::underflow_error>,
                  text<std::string>, text<result_error>, coded<std::system_error>,
                  coded<std::ios_base::failure>, file_system, promised, regular,
                  bare<std::exception>, bare<std::bad_exception>, bare<std::bad_alloc>,
                  bare<std::bad_array_new_length>, bare<std::bad_cast>, bare<std::bad_typeid>,
                  bare<std::bad_function_call>, bare<std::bad_weak_ptr>, bare<std::bad_any_cast>,
                  bare<std::bad_optional_access>, bare<std::bad_variant_access>>;
    return base::leaked([] { return known(); }).first();
}

}  // namespace cohort::protocol
