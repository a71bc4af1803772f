// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "record/control.hpp"
#include "worker/mark.hpp"

#include <cohort/detail/registration.hpp>
#include <cohort/outcome.hpp>

#include <cstddef>
#include <span>
#include <system_error>

#include <sys/types.h>

namespace cohort::worker {

/// Writes what becomes of this worker into its control file. Nothing throws: what cannot be written
/// whole is written shorter, and a control file that the program has closed is left alone.
class report {
public:
    explicit report(const mark& control) noexcept : control_(control) {}

    void entered() noexcept;
    /// @return false: the result could not be written, and a record of that was written in its
    /// place
    bool returned(const detail::function_result& result) noexcept;
    void raised(const error_record& error) noexcept;

private:
    std::error_code write(std::span<const std::byte> bytes, std::uint64_t offset) noexcept;
    void finish(record::payload_kind kind, std::size_t type_length,
                std::size_t payload_length) noexcept;

    mark control_;
    record::control_progress progress_;
};

/// The exception that is being handled. Call it in a catch block. noexcept: what does not fit into
/// memory is shortened or left out.
error_record describe_current_exception() noexcept;

}  // namespace cohort::worker
