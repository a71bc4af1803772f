// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <stdexcept>
#include <string>
#include <typeinfo>

namespace cohort {

/// An argument or a result that could not be encoded, or decoded on the other side.
/// what(): `argument 2 of 3 (std::vector<int>) could not be decoded: ...`; the worker's index is
/// not counted.
class COHORT_API codec_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    ~codec_error() override;
};

namespace detail::inline v0_1 {

/// The name of a C++ type for people: "std::vector<int>".
COHORT_API std::string type_name(const std::type_info& type);

}  // namespace detail::inline v0_1
}  // namespace cohort
