// SPDX-License-Identifier: BSL-1.0
#include "forkserver/request.hpp"

#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace cohort::forkserver {
namespace {

class writer {
public:
    explicit writer(std::vector<std::byte>& out) : out_(out) {}
    void number(std::int64_t value) { append(&value, sizeof value); }
    void bytes(const void* data, std::size_t size) {
        number(static_cast<std::int64_t>(size));
        append(data, size);
    }
    void text(std::string_view value) { bytes(value.data(), value.size()); }
    void optional_text(const char* value) {
        number(value != nullptr);
        if (value != nullptr)
            text(value);
    }

private:
    void append(const void* data, std::size_t size) {
        const auto* begin = static_cast<const std::byte*>(data);
        out_.insert(out_.end(), begin, begin + size);
    }
    std::vector<std::byte>& out_;
};

class reader {
public:
    explicit reader(std::span<const std::byte> in) : in_(in) {}
    template <class Number = int>
    Number number() {
        std::int64_t value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return static_cast<Number>(value);
    }
    std::span<const std::byte> bytes() { return take(number<std::size_t>()); }
    std::string text() {
        const auto all = bytes();
        return {reinterpret_cast<const char*>(all.data()), all.size()};
    }

private:
    std::span<const std::byte> take(std::size_t size) {
        if (size > in_.size())
            throw std::runtime_error("cohort: a fork request is too short");
        const auto taken = in_.first(size);
        in_ = in_.subspan(size);
        return taken;
    }
    std::span<const std::byte> in_;
};

/// The place of a descriptor among those that are sent; -1 for none.
int sent_at(packed_order& packed, int fd) {
    if (fd < 0)
        return -1;
    packed.descriptors.push_back(fd);
    return static_cast<int>(packed.descriptors.size()) - 1;
}

int arrived(std::span<const int> descriptors, int at) {
    if (at < 0)
        return -1;
    if (static_cast<std::size_t>(at) >= descriptors.size())
        throw std::runtime_error("cohort: a fork request lacks descriptors");
    return descriptors[static_cast<std::size_t>(at)];
}

}  // namespace

packed_order pack(const exec::exec_order& order, copies::copy_channel channel, ino_t record_inode) {
    packed_order packed;
    writer out(packed.text);
    out.number(channel.record);
    out.number(channel.started_event);
    out.number(static_cast<std::int64_t>(record_inode));
    out.number(packed.cgroup = sent_at(packed, order.cgroup));
    out.number(order.cgroup_is_needed);
    out.number(sent_at(packed, order.guard.connection));
    out.number(static_cast<int>(order.guard.message.what));
    out.number(order.guard.message.stop_signal);
    out.number(order.guard.message.grace_ms);
    out.number(sent_at(packed, order.directory_fd));
    out.number(order.parent_death_signal);
    out.number(order.parent);
    out.number(order.own_process_group ? 0 : ::getpgrp());
    out.bytes(order.affinity, order.affinity_size);
    out.optional_text(order.working_directory);
    out.number(static_cast<std::int64_t>(order.descriptors.size()));
    for (const auto& move : order.descriptors) {
        out.number(move.target);
        out.number(sent_at(packed, move.fd));
        out.number(move.open_flags);
        out.optional_text(move.path);
    }
    out.number(static_cast<std::int64_t>(order.envp.size()) - 1);
    for (std::size_t i = 0; i + 1 < order.envp.size(); ++i)
        out.text(order.envp[i]);
    return packed;
}

void unpack(std::span<const std::byte> text, std::span<const int> descriptors,
            unpacked_order& into) {
    reader in(text);
    exec::exec_order& order = into.order;
    // The texts must not move once they are pointed to: all are read first.
    struct {
        bool is_set = false;
        std::size_t at = 0;
    } directory;
    const auto keep = [&into](std::string value) {
        into.texts.push_back(std::move(value));
        return into.texts.size() - 1;
    };
    into.channel.record = in.number();
    into.channel.started_event = in.number();
    into.record_inode = in.number<ino_t>();
    order.cgroup = arrived(descriptors, in.number());
    order.cgroup_is_needed = in.number<bool>();
    order.guard.connection = arrived(descriptors, in.number());
    order.guard.message.what = in.number<orders::guarded>();
    order.guard.message.stop_signal = in.number();
    order.guard.message.grace_ms = in.number();
    order.directory_fd = arrived(descriptors, in.number());
    order.parent_death_signal = in.number();
    order.parent = in.number();
    into.process_group = in.number<pid_t>();
    order.own_process_group = into.process_group == 0;
    const auto affinity = in.bytes();
    into.affinity.assign(affinity.begin(), affinity.end());
    directory.is_set = in.number<bool>();
    if (directory.is_set)
        directory.at = keep(in.text());
    std::vector<std::pair<std::size_t, std::size_t>> paths;  // of which move, which text
    for (auto count = in.number<std::size_t>(); count > 0; --count) {
        exec::descriptor_move move{in.number()};
        move.fd = arrived(descriptors, in.number());
        move.open_flags = in.number();
        const bool has_path = in.number<bool>();
        if (has_path)
            paths.emplace_back(order.descriptors.size(), keep(in.text()));
        if (has_path || move.fd >= 0)
            order.descriptors.push_back(move);
        else
            into.closed.push_back(move.target);
    }
    const auto variables = into.texts.size();
    for (auto count = in.number<std::size_t>(); count > 0; --count)
        keep(in.text());

    if (directory.is_set)
        order.working_directory = into.texts[directory.at].c_str();
    for (const auto& [move, at] : paths)
        order.descriptors[move].path = into.texts[at].c_str();
    for (auto i = variables; i < into.texts.size(); ++i)
        order.envp.push_back(into.texts[i].data());
    order.envp.push_back(nullptr);
    if (!into.affinity.empty()) {
        order.affinity = reinterpret_cast<const cpu_set_t*>(into.affinity.data());
        order.affinity_size = into.affinity.size();
    }
}

void release(shared_progress& progress, std::uint32_t children) noexcept {
    std::uint32_t before = progress.released;
    while (before < children && !progress.released.compare_exchange_weak(before, children)) {
    }
    if (before < children)
        sys::wake(progress.released);
}

}  // namespace cohort::forkserver
