// SPDX-License-Identifier: BSL-1.0
#include "protocol/registry/error_types.hpp"

#include "protocol/registry/exception.hpp"
#include "protocol/trace/modules.hpp"

#include <cohort/detail/type_name.hpp>

#include <atomic>
#include <cstdint>
#include <ranges>
#include <string>

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
