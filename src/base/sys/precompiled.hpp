// SPDX-License-Identifier: BSL-1.0
// What most files of the library include: compiled once. Each file names what it uses all the same.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
