// SPDX-License-Identifier: BSL-1.0
// What a pool's workers have added to their memory.
#include "pool/link/memory_looks.hpp"

#include "target_support.hpp"

#include <cstdint>
#include <memory>

#include <sys/mman.h>
#include <unistd.h>

namespace memory_looks_test {

using namespace target_test;

namespace {

constexpr std::uint64_t much = 64 << 20;

bool take_memory() {
    return ::mmap(nullptr, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                  -1, 0) != MAP_FAILED;
}

}  // namespace

TEST_CASE("memory looks: a worker gets its first task after the first look") {
    CHECK(holds([](world& w) {
        const auto pool = std::make_shared<int>();
        pools::memory_looks looks(w.loop, true, false);
        world::called ready, seen;
        std::uint64_t added = 0;
        bool is_ready = false;
        w.run([&] {
            looks.begin(pool, [&, told = seen.task()](pools::worker_id, std::uint64_t bytes) {
                added = bytes;
                told();
            });
            looks.is_ready(1, ::getpid(), [&, told = ready.task()] {
                is_ready = true;
                told();
            });
            w.expect(!is_ready);
        });
        w.expect(ready.comes());
        w.expect(take_memory());
        w.run([&] { looks.finished(1); });
        w.expect(seen.comes());
        w.expect(added >= much);
        w.run([&] { looks.ended(1); });
    }));
}

TEST_CASE("memory looks: where nobody wants to know, a worker is ready at once") {
    CHECK(holds([](world& w) {
        pools::memory_looks looks(w.loop, false, false);
        w.run([&] {
            bool is_ready = false;
            looks.is_ready(1, ::getpid(), [&] { is_ready = true; });
            w.expect(is_ready);
        });
    }));
}

}  // namespace memory_looks_test
