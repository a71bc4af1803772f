// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace faults {

/// The host's end of its connection to the judge. No call on it is watched.
inline constexpr int channel_number = 900;
/// prctl with this number says that a program is loaded: its calls are the library's from now on.
inline constexpr int is_loaded = 0x436f6846;

/// From now on the judge hears of all watched calls of this process and its children, and answers
/// them. @return the errno that hinders it; 0: none
int submit_to_judge();

}  // namespace faults
