// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec.hpp>
#include <cohort/detail/type_name.hpp>
#include <cohort/errors.hpp>
#include <cohort/outcome.hpp>

#include <string>
#include <type_traits>
#include <typeinfo>

namespace cohort {

template <class T>
T outcome::result() const {
    static_assert(std::is_same_v<T, std::remove_cvref_t<T>> && !std::is_void_v<T>,
                  "cohort: result<T>() gives a value: name the type without const and &.");
    const auto& cbor = result_cbor(typeid(T).name());
    try {
        return detail::decode_value<T>(cbor, result_descriptors());
    } catch (const std::exception& e) {
        throw result_error("the result of worker " + std::to_string(index) + " (" +
                           detail::type_name(typeid(T)) + ") could not be decoded: " + e.what());
    }
}

}  // namespace cohort
