// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/breach.hpp"

namespace cohort::multihost {

const char* to_string(breach b) noexcept {
    switch (b) {
    case breach::noise:
        return "it wrote other things than a greeting";
    case breach::echo:
        return "it sent our own greeting back";
    case breach::direction:
        return "it sent our own frame back";
    case breach::header_checksum:
        return "the checksum of a header is wrong";
    case breach::body_checksum:
        return "the checksum of a body is wrong";
    case breach::length:
        return "the length of a frame is wrong";
    case breach::newline:
        return "a frame does not end with a newline";
    case breach::session:
        return "a frame belongs to another link";
    case breach::kind:
        return "a frame has an unknown kind";
    case breach::flags:
        return "a frame has unknown flags";
    case breach::first:
        return "the first message does not open a link";
    case breach::pieces:
        return "a piece of a message does not follow the one before";
    case breach::large:
        return "a message is too large";
    case breach::body:
        return "the body of a message can't be read";
    case breach::credit:
        return "it sent more than it had credit for";
    case breach::overcredit:
        return "it gave more credit than there is";
    case breach::order:
        return "a message comes at the wrong time";
    }
    return "unknown";
}

}  // namespace cohort::multihost
