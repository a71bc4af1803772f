// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/errors.hpp>

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

    /// The host's name. Empty: the command failed that tells the names of the hosts.
    const std::string& host() const noexcept;
    /// What failed:
    ///  - "launcher": its command could not be started, or has ended with a failure;
    ///  - "hello": no agent has answered in time, or something else has;
    ///  - "program": the program there, or its library, is another build, or this program has no
    ///    build ID to compare;
    ///  - "version": its agent speaks another version of the protocol.
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

/// A host was lost before its workers had ended, and no worker had failed before. The status of
/// these workers is unknown, and their outcomes have cause::host_lost. They are ended by their
/// agent, which ends with its link. The workers of the other hosts have been stopped and reaped. A
/// value: copying never throws.
///
/// error_index() is the lowest index of the workers that were lost with the host, and error_pid()
/// its process ID there. what() says why the host is lost, and which workers were:
/// `host node03 was lost: no beat for 10 s (workers 8 to 15)`.
///
/// The call that starts a group throws it when a host is lost before all workers have started. The
/// group never was then: error_pid() is 0 and outcomes() is empty.
class COHORT_API host_lost : public process_exception {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param text         the text of what()
    /// @param error_index  the lowest index of the workers that were lost
    /// @param error_pid    the process ID of that worker
    /// @param outcomes     how each worker ended, by index
    /// @param host         see host()
    host_lost(const std::string& text, int error_index, pid_t error_pid, outcome_list outcomes,
              const std::string& host);
    ~host_lost() override;

    /// The host's name.
    const std::string& host() const noexcept { return *host_; }

private:
    std::shared_ptr<const std::string> host_;
};

}  // namespace cohort
