// SPDX-License-Identifier: BSL-1.0
#include "start/cgroup/cgroup_limits.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::start {
namespace {

constexpr auto control_name = "cgroup.subtree_control";

std::error_code write_to(int directory, const char* name, const std::string& text) noexcept {
    const base::unique_fd file(::openat(directory, name, O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    return file && ::write(file.get(), text.data(), text.size()) >= 0 ? std::error_code()
                                                                      : base::last_error();
}

bool has_controller(int directory, const std::string& controller) {
    std::istringstream names(base::read_text("cgroup.controllers", directory));
    for (std::string name; names >> name;)
        if (name == controller)
            return true;
    return false;
}

/// Lets the cgroups in this one have the controller.
limit_failure hand_down(int directory, const std::string& path, const std::string& controller) {
    if (const auto error = write_to(directory, control_name, "+" + controller))
        return {error, fmt::format("writing +{} to {}/{}", controller, path, control_name)};
    return {};
}

limit_failure have_controller(int directory, const std::string& path,
                              const std::string& controller) {
    if (has_controller(directory, controller))
        return {};
    const base::unique_fd above(::openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto place = path.substr(0, path.rfind('/'));
    if (!above || !has_controller(above.get(), controller))
        return {
            std::make_error_code(std::errc::not_supported),
            fmt::format("the controller {} is not in {}/cgroup.controllers", controller, place)};
    return hand_down(above.get(), place, controller);
}

}  // namespace

std::vector<cgroup_limit> limits_of(std::optional<std::uint64_t> memory,
                                    std::optional<double> cores,
                                    std::optional<std::uint64_t> tasks) {
    constexpr double period = 100'000;  // in microseconds, as the kernel's default
    constexpr double shortest = 1'000;  // the kernel's least quota
    std::vector<cgroup_limit> limits;
    if (memory) {
        limits.push_back({"memory", "memory.max", std::to_string(*memory)});
        limits.push_back({"memory", "memory.swap.max", "0", true});
    }
    if (cores)
        limits.push_back(
            {"cpu", "cpu.max",
             fmt::format("{:.0f} {:.0f}", std::max(*cores * period, shortest), period)});
    if (tasks)
        limits.push_back({"pids", "pids.max", std::to_string(*tasks)});
    return limits;
}

limit_failure set_limits(int directory, const std::string& path,
                         std::span<const cgroup_limit> limits) {
    for (const auto& limit : limits) {
        const auto error = write_to(directory, limit.file.c_str(), limit.value);
        if (error && !(limit.may_lack && error == std::errc::no_such_file_or_directory))
            return {error, fmt::format("writing {} to {}/{}", limit.value, path, limit.file)};
    }
    return {};
}

limit_failure set_limits(int directory, const std::string& path, const wanted_limits& wanted) {
    for (const auto& limit : wanted.of_group)
        if (auto failed = have_controller(directory, path, limit.controller))
            return failed;
    for (const auto& controller : wanted.controllers) {
        if (auto failed = have_controller(directory, path, controller))
            return failed;
        if (auto failed = hand_down(directory, path, controller))
            return failed;
    }
    return set_limits(directory, path, std::span(wanted.of_group));
}

std::string wanted_limits::first_file() const {
    return of_group.empty() ? *controllers.begin() + ".max" : of_group.front().file;
}

}  // namespace cohort::start
