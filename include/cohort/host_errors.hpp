// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <memory>
#include <string>
#include <system_error>

namespace cohort {

/// A host could not be reached. The launchers that had been started are stopped and reaped, and the
/// other hosts are let go. A value: copying never throws.
class COHORT_API reach_error : public std::system_error {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param code   why; std::errc::protocol_error if the other end did what no agent does
    /// @param text   what happened
    /// @param host   see host()
    /// @param stage  see stage()
    /// @param words  see last_words()
    reach_error(std::error_code code, const std::string& text, const std::string& host,
                const std::string& stage, const std::string& words);
    ~reach_error() override;

    /// The host's name.
    const std::string& host() const noexcept;
    /// What failed:
    ///  - "launcher": its command could not be started, or has ended with a failure;
    ///  - "hello": no agent has answered in time, or something else has;
    ///  - "program": the program there is another build;
    ///  - "version": its library is another one.
    const std::string& stage() const noexcept;
    /// The last lines that its launcher wrote to standard error: at most 20 lines and 4 KiB, with
    /// control characters replaced.
    const std::string& last_words() const noexcept;
    /// Host, stage, what happened and the last words.
    const char* what() const noexcept override;

private:
    struct details;
    std::shared_ptr<const details> details_;
};

}  // namespace cohort
