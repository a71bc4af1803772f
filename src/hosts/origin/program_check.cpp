// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/program_check.hpp"

#include <fmt/format.h>

namespace cohort::multihost {
namespace {

misfit another_build(const char* what, const std::string& there, const std::string& here) {
    return {"program", std::make_error_code(std::errc::executable_format_error),
            fmt::format("{}: build ID {}, here {}", what, there, here)};
}

}  // namespace

std::optional<misfit> find_misfit(const read_value<hello>& said, const hello& own) {
    const auto protocol_error = std::make_error_code(std::errc::protocol_error);
    if (!said)
        return misfit{"hello", protocol_error, said.problem};
    const auto& agent = *said.value;
    if (agent.version != own.version)
        return misfit{"version", protocol_error,
                      fmt::format("its agent speaks version {} of the protocol, this program {}",
                                  agent.version, own.version)};
    if (own.program.empty() || own.library.empty())  // an empty one equals that of any build
        return misfit{"program", std::make_error_code(std::errc::executable_format_error),
                      "this program has no build ID, by which another build would be known: link "
                      "it with -Wl,--build-id"};
    if (agent.program != own.program)
        return another_build("it runs another build of the program", agent.program, own.program);
    if (agent.library != own.library)
        return another_build("its program has another build of cohort", agent.library, own.library);
    return std::nullopt;
}

}  // namespace cohort::multihost
