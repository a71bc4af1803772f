// SPDX-License-Identifier: BSL-1.0
#include <cohort/host_errors.hpp>

#include <fmt/format.h>

#include <utility>

namespace cohort {

struct reach_error::details {
    std::string host;
    std::string stage;
    std::string words;
    std::string what;
};

reach_error::reach_error(std::error_code code, const std::string& text, const std::string& host,
                         const std::string& stage, const std::string& words)
    : std::system_error(code, text),
      details_(std::make_shared<const details>(
          details{host, stage, words,
                  fmt::format("cohort: host {} was not reached ({}): {}{}{}", host, stage,
                              std::system_error::what(), words.empty() ? "" : "\n", words)})) {}

reach_error::~reach_error() = default;

const std::string& reach_error::host() const noexcept { return details_->host; }
const std::string& reach_error::stage() const noexcept { return details_->stage; }
const std::string& reach_error::last_words() const noexcept { return details_->words; }
const char* reach_error::what() const noexcept { return details_->what.c_str(); }

host_lost::host_lost(const std::string& text, int error_index, pid_t error_pid,
                     outcome_list outcomes, const std::string& host)
    : process_exception(text, error_index, error_pid, std::move(outcomes)),
      host_(std::make_shared<const std::string>(host)) {}

host_lost::~host_lost() = default;

}  // namespace cohort
