// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/error_types.hpp"

#include "base/sys/leaked.hpp"

#include <cohort/errors.hpp>

#include <algorithm>
#include <any>
#include <array>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <typeinfo>
#include <variant>

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
