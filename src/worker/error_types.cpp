// SPDX-License-Identifier: BSL-1.0
#include "worker/error_types.hpp"

#include "worker/exception.hpp"

#include <cohort/detail/codec_error.hpp>

#include <atomic>
#include <ranges>

namespace cohort {
namespace {

// Constant-initialised: types are taught by the initialisers of other translation units.
constinit std::atomic<const detail::error_node*> taught{nullptr};

}  // namespace

void detail::teach(error_node& type) noexcept {
    type.next = taught.load(std::memory_order_relaxed);
    while (!taught.compare_exchange_weak(type.next, &type, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
}

namespace worker {
namespace {

std::exception_ptr restored_one(const error_record& error, const std::exception_ptr& cause) {
    const auto* type = find_error_type(error.type);
    if (type == nullptr)
        return nullptr;
    try {
        type->raise(error, detail::error_record_access::value(error), cause);
    } catch (...) {
        // What a taught type's own code throws is not what the worker threw.
        if (name_of_current_exception() == error.type)
            return std::current_exception();
    }
    return nullptr;
}

}  // namespace

const detail::error_node* find_error_type(std::string_view name) {
    for (const auto* first : {taught.load(std::memory_order_acquire), standard_error_types()})
        for (const auto* type = first; type != nullptr; type = type->next)
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

}  // namespace worker
}  // namespace cohort
