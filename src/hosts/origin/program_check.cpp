// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/program_check.hpp"

#include <fmt/format.h>

namespace cohort::multihost {

std::optional<misfit> find_misfit(const read_value<hello>& said, const hello& own) {
    const auto protocol_error = std::make_error_code(std::errc::protocol_error);
    if (!said)
        return misfit{"hello", protocol_error, said.problem};
    const auto& agent = *said.value;
    if (agent.version != own.version)
        return misfit{"version", protocol_error,
                      fmt::format("its agent speaks version {} of the protocol, this program {}",
                                  agent.version, own.version)};
    if (agent.program != own.program || agent.library != own.library)
        return misfit{"program", std::make_error_code(std::errc::executable_format_error),
                      fmt::format("it runs another build of the program: build ID {}, here {}",
                                  agent.program, own.program)};
    return std::nullopt;
}

}  // namespace cohort::multihost
