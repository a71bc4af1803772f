// SPDX-License-Identifier: BSL-1.0
// The rules of the house that a compiler does not check: which file may include which, how long a
// file may be, that no descriptor is left to what is executed, and that nothing blocks on a process.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace house_test {

namespace fs = std::filesystem;

namespace {

const fs::path root = COHORT_SOURCE_DIR;

/// From the top down, as the first table of src/README.md has them: a file of a room may include
/// its own room's files and those of rooms below.
std::vector<std::string> read_rooms() {
    std::vector<std::string> found;
    std::ifstream page(root / "src/README.md");
    for (std::string line; std::getline(page, line) && !line.starts_with("## ");)
        if (line.starts_with("| `"))
            found.push_back(line.substr(3, line.find('`', 3) - 3));
    return found;
}

const std::vector<std::string> rooms = read_rooms();

/// The room of a path in src; empty if it is in none.
std::string room_of(const std::string& path) {
    std::string found;
    for (const auto& room : rooms)
        if (path.starts_with(room + '/') && room.size() > found.size())
            found = room;
    return found;
}

/// From the top down: a public header may include only those that stand below it.
const std::vector<std::string> headers{
    "cohort.hpp",
    "spawn.hpp",
    "detail/spawn_operation.hpp",
    "detail/work.hpp",
    "sync.hpp",
    "detail/sync_operations.hpp",
    "queue.hpp",
    "detail/queue_operations.hpp",
    "detail/wait_place.hpp",
    "group.hpp",
    "detail/output_operations.hpp",
    "detail/group_operations.hpp",
    "detail/operation.hpp",
    "detail/executors.hpp",
    "detail/completion_service.hpp",
    "detail/operation_registry.hpp",
    "detail/group_handle.hpp",
    "forkserver.hpp",
    "error_type.hpp",
    "closure.hpp",
    "cuda.hpp",
    "dlpack.hpp",
    "shared_array.hpp",
    "detail/queue_codec.hpp",
    "detail/sync_codec.hpp",
    "detail/array_codec.hpp",
    "detail/queue_value.hpp",
    "function.hpp",
    "detail/result.hpp",
    "detail/function_traits.hpp",
    "detail/codec.hpp",
    "detail/codec_containers.hpp",
    "detail/codec_scalars.hpp",
    "detail/codec_core.hpp",
    "detail/encoder.hpp",
    "detail/cbor_events.hpp",
    "detail/cbor.hpp",
    "received.hpp",
    "detail/queue_end.hpp",
    "detail/sync_handles.hpp",
    "detail/patience.hpp",
    "detail/queue_message.hpp",
    "detail/border.hpp",
    "command.hpp",
    "options.hpp",
    "detail/plan.hpp",
    "where_it_runs.hpp",
    "sinks.hpp",
    "detail/gcc12.hpp",
    "detail/argument_text.hpp",
    "detail/array_base.hpp",
    "detail/device_array.hpp",
    "detail/placement.hpp",
    "detail/sink.hpp",
    "policies.hpp",
    "detail/count.hpp",
    "detail/shared_memory.hpp",
    "detail/strided.hpp",
    "detail/shareable.hpp",
    "detail/registration.hpp",
    "detail/error_node.hpp",
    "format.hpp",
    "capabilities.hpp",
    "json.hpp",
    "errors.hpp",
    "outcome.hpp",
    "detail/told_lines.hpp",
    "output.hpp",
    "error_record.hpp",
    "exit_status.hpp",
    "sharing.hpp",
    "worker.hpp",
    "detail/type_name.hpp",
    "detail/duration.hpp",
    "detail/config.hpp",
};

/// Headers that know Asio or user code: the compiled library must not see them.
const std::set<std::string> user_side{
    "cohort.hpp",
    "spawn.hpp",
    "detail/spawn_operation.hpp",
    "group.hpp",
    "sync.hpp",
    "detail/sync_operations.hpp",
    "detail/wait_place.hpp",
    "queue.hpp",
    "detail/work.hpp",
    "detail/queue_operations.hpp",
    "detail/output_operations.hpp",
    "detail/group_operations.hpp",
    "detail/operation.hpp",
    "detail/executors.hpp",
    "detail/completion_service.hpp",
};

struct source_file {
    std::string path;  // relative to the root
    std::vector<std::string> lines;
};

source_file read_source(const fs::path& path) {
    source_file file{fs::relative(path, root).string(), {}};
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);)
        file.lines.push_back(line);
    REQUIRE_FALSE(file.lines.empty());
    return file;
}

std::vector<source_file> files_in(const std::string& folder) {
    std::vector<source_file> found;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
        const auto extension = entry.path().extension();
        if (extension != ".hpp" && extension != ".cpp")
            continue;
        found.push_back(read_source(entry.path()));
    }
    REQUIRE_FALSE(found.empty());
    return found;
}

std::vector<std::string> includes_of(const source_file& file) {
    static const std::regex include(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
    std::vector<std::string> found;
    for (const auto& line : file.lines)
        if (std::smatch match; std::regex_search(line, match, include))
            found.push_back(match[1]);
    return found;
}

/// The place in a list; its size for what is not in it.
std::size_t place(const std::vector<std::string>& list, const std::string& name) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), name) - list.begin());
}

bool starts_with(const std::string& text, const std::string& start) {
    return text.rfind(start, 0) == 0;
}

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

/// A line of code with those that follow: a call's arguments may stand there.
std::string call_at(const source_file& file, std::size_t line) {
    std::string call;
    for (std::size_t i = line; i < file.lines.size() && i < line + 4; ++i)
        call += without_comment(file.lines[i]);
    return call;
}

}  // namespace

TEST_CASE("house: a room includes only rooms below it, and no Asio") {
    for (const auto& file : files_in("src")) {
        const auto own = place(rooms, room_of(file.path.substr(4)));
        CHECK_MESSAGE(own < rooms.size(), file.path << " is in no room");
        for (const auto& include : includes_of(file)) {
            INFO(file.path << " includes " << include);
            CHECK_FALSE(starts_with(include, "asio"));
            if (starts_with(include, "cohort/"))
                CHECK(user_side.count(include.substr(7)) == 0);
            else if (const auto at = place(rooms, room_of(include)); at < rooms.size())
                if (fs::exists(root / "src" / include))  // <sys/mman.h> is not of room sys
                    CHECK(at >= own);
        }
    }
}

TEST_CASE("house: a room has at most 3000 lines") {
    std::map<std::string, std::size_t> lines;
    for (const auto& file : files_in("src"))
        lines[room_of(file.path.substr(4))] += file.lines.size();
    for (const auto& [room, count] : lines)
        CHECK_MESSAGE(count <= 3000, room << " has " << count << " lines");
}

TEST_CASE("house: a public header includes only public headers below it") {
    for (const auto& file : files_in("include")) {
        const auto own = place(headers, file.path.substr(std::string("include/cohort/").size()));
        CHECK_MESSAGE(own < headers.size(), file.path << " has no place in the table");
        for (const auto& include : includes_of(file)) {
            INFO(file.path << " includes " << include);
            CHECK_FALSE(fs::exists(root / "src" / include));
            if (starts_with(include, "cohort/"))
                CHECK(place(headers, include.substr(7)) > own);
        }
    }
}

TEST_CASE("house: headers have at most 300 lines, sources 350, and each names its licence") {
    for (const std::string folder : {"include", "src", "tests", "examples"})
        for (const auto& file : files_in(folder)) {
            INFO(file.path);
            const bool header = file.path.ends_with(".hpp");
            CHECK(file.lines.size() <= (header ? 300U : 350U));
            REQUIRE_FALSE(file.lines.empty());
            CHECK(file.lines[0] == "// SPDX-License-Identifier: BSL-1.0");
        }
}

TEST_CASE("house: files are opened close-on-exec because other threads may execute programs") {
    const std::regex opens(R"re(\W::open(at)?\(|\bSYS_openat\b)re");
    const std::regex leaks(R"re(std::(i|o)?fstream\b|\b(fopen|creat|dup|pipe)\s*\()re");
    for (const std::string folder : {"include", "src"})
        for (const auto& file : files_in(folder))
            for (std::size_t i = 0; i < file.lines.size(); ++i) {
                const auto code = without_comment(file.lines[i]);
                INFO(file.path << ":" << i + 1 << ": " << code);
                CHECK_FALSE(std::regex_search(code, leaks));
                if (std::regex_search(code, opens))
                    CHECK(call_at(file, i).find("O_CLOEXEC") != std::string::npos);
            }
}

TEST_CASE("house: nothing waits for a process in a call that blocks") {
    const std::regex waitid(R"re(\b(waitid|SYS_waitid)\b)re");
    for (const std::string folder : {"include", "src"})
        for (const auto& file : files_in(folder))
            for (std::size_t i = 0; i < file.lines.size(); ++i) {
                const auto code = without_comment(file.lines[i]);
                INFO(file.path << ":" << i + 1 << ": " << code);
                CHECK_FALSE(
                    std::regex_search(code, std::regex(R"re(\b(waitpid|wait[34])\s*\()re")));
                if (std::regex_search(code, waitid))
                    CHECK(call_at(file, i).find("WNOHANG") != std::string::npos);
            }
}

TEST_CASE("house: the inner namespace of the headers carries the version, so that two versions in "
          "one process share no inline function") {
    const std::regex version(R"re(version:\s*'(\d+)\.(\d+)\.)re");
    std::string wanted;
    std::ifstream build(root / "meson.build");
    for (std::string line; wanted.empty() && std::getline(build, line);)
        if (std::smatch match; std::regex_search(line, match, version))
            wanted = "detail::inline v" + match.str(1) + "_" + match.str(2) + " {";
    REQUIRE_FALSE(wanted.empty());
    const std::regex opens(R"re(\bnamespace (cohort::)?detail\b)re");
    for (const auto& file : files_in("include"))
        for (const auto& line : file.lines)
            if (std::regex_search(without_comment(line), opens))
                CHECK_MESSAGE(line.find(wanted) != std::string::npos, file.path << ": " << line);
}

TEST_CASE("house: every name on the page of the rooms exists where the page says") {
    const std::regex name(R"re(`((src|include)/[^:`]+): (\w+)`)re");
    std::ifstream page(root / "src/README.md");
    int found = 0;
    for (std::string line; std::getline(page, line);)
        for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at) {
            ++found;
            std::ifstream file(root / (*at)[1].str());
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            INFO((*at)[1].str() << ": " << (*at)[3].str());
            CHECK(std::regex_search(text, std::regex("\\b" + (*at)[3].str() + "\\b")));
        }
    CHECK(found >= 15);
}

TEST_CASE("house: the way down has at most 7 stops, the way up at most 8") {
    std::map<std::string, int> stops;
    std::string heading;
    for (const auto& line : read_source(root / "src/README.md").lines) {
        if (line.starts_with("## "))
            heading = line.substr(3);
        else if (std::regex_search(line, std::regex(R"(^\d+\. )")))
            ++stops[heading];
    }
    CHECK(stops.size() == 3);
    CHECK(stops["From the example to the system call"] <= 7);
    CHECK(stops["From a worker's end to the exception"] <= 8);
    CHECK(stops["From a worker's write to the reader"] <= 8);
}

TEST_CASE("house: a test file's cases have its stem as prefix and stand in its namespace") {
    const std::regex opens(R"re(^(TEST_CASE\w*|GROUP_TEST)\()re");
    const std::regex prefix(R"re(^\w+\(\s*"([^:"]+): )re");
    for (const auto& file : files_in("tests")) {
        if (!file.path.ends_with("_test.cpp"))
            continue;
        auto stem = fs::path(file.path).stem().string();
        const auto inside = place(file.lines, "namespace " + stem + " {");
        stem.resize(stem.size() - std::string("_test").size());
        std::replace(stem.begin(), stem.end(), '_', ' ');
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            if (!std::regex_search(file.lines[i], opens))
                continue;
            INFO(file.path << ":" << i + 1);
            const auto title = file.lines[i] + (i + 1 < file.lines.size() ? file.lines[i + 1] : "");
            std::smatch found;
            REQUIRE(std::regex_search(title, found, prefix));
            CHECK(found[1] == stem);
            CHECK((inside < i || file.path.find("tests/chaos/") == 0));  // compiled one by one
        }
    }
}

TEST_CASE("house: the README has at most 1300 words, 180 lines and 100 columns") {
    std::ifstream page(root / "README.md");
    std::size_t words = 0;
    std::size_t lines = 0;
    for (std::string line; std::getline(page, line); ++lines) {
        INFO("line " << lines + 1 << ": " << line);
        const auto is_inside = [](char c) { return (c & 0xc0) == 0x80; };  // of a UTF-8 character
        CHECK(line.size() - std::count_if(line.begin(), line.end(), is_inside) <= 100);
        std::istringstream in(line);
        for (std::string word; in >> word;)
            ++words;
    }
    CHECK(words <= 1300);
    CHECK(lines <= 180);
}

}  // namespace house_test
