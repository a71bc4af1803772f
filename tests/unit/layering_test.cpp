// SPDX-License-Identifier: BSL-1.0
// Which file may include which: the rules of the table in src/README.md.
#include "header_order.hpp"
#include "source_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace layering_test {

using namespace cohort::test;

namespace {

/// A row of the first table in src/README.md.
struct area {
    std::string name;
    std::vector<std::string> rooms;
    std::vector<std::string> may_use;
    std::vector<std::string> may_not_use;
};

/// The names in backquotes.
std::vector<std::string> names_in(const std::string& cell) {
    static const std::regex name("`([^`]+)`");
    std::vector<std::string> found;
    for (std::sregex_iterator at(cell.begin(), cell.end(), name), end; at != end; ++at)
        found.push_back((*at)[1]);
    return found;
}

std::vector<std::string> cells_of(const std::string& row) {
    std::vector<std::string> cells;
    std::istringstream in(row);
    for (std::string cell; std::getline(in, cell, '|');)
        cells.push_back(cell);
    return cells;
}

/// The rows of the first table under a heading; "" is what stands before all headings.
std::vector<std::vector<std::string>> rows_under(const std::string& heading) {
    std::vector<std::vector<std::string>> rows;
    std::string current;
    for (const auto& line : read_source(root / "src/README.md").lines)
        if (starts_with(line, "## "))
            current = line.substr(3);
        else if (current == heading && starts_with(line, "| `"))
            rows.push_back(cells_of(line));
    REQUIRE_FALSE(rows.empty());
    return rows;
}

/// The areas from the top down.
std::vector<area> read_areas() {
    std::vector<area> areas;
    for (const auto& cells : rows_under("")) {
        REQUIRE(cells.size() == 5);
        const auto no = cells[4].find("may not use");
        areas.push_back(
            {names_in(cells[1]).at(0), names_in(cells[3]), names_in(cells[4].substr(0, no)),
             no == std::string::npos ? std::vector<std::string>() : names_in(cells[4].substr(no))});
    }
    return areas;
}

bool has(const std::vector<std::string>& list, const std::string& name) {
    return place(list, name) < list.size();
}

/// The area and the room of a path in src.
std::pair<std::string, std::string> room_of(const std::string& path) {
    const auto area = path.find('/');
    const auto room = area == std::string::npos ? area : path.find('/', area + 1);
    if (room == std::string::npos)
        return {};
    return {path.substr(0, area), path.substr(area + 1, room - area - 1)};
}

std::vector<std::string> folders_in(const fs::path& folder) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.is_directory() && entry.path().filename() != "package")
            found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
}

bool has_word(const std::string& text, const std::string& word) {
    const auto is_part = [&](std::size_t at) {
        return at < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
    };
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        if ((at == 0 || !is_part(at - 1)) && !is_part(at + word.size()))
            return true;
    return false;
}

std::vector<std::string> sorted(std::vector<std::string> list) {
    std::sort(list.begin(), list.end());
    return list;
}

}  // namespace

TEST_CASE("layering: a file includes only what its area may use, and no Asio") {
    const auto areas = read_areas();
    for (const auto& file : files_in("src")) {
        const auto [own_area, own_room] = room_of(file.path.substr(4));
        const auto own = std::find_if(areas.begin(), areas.end(),
                                      [&](const area& a) { return a.name == own_area; });
        INFO(file.path);
        REQUIRE(own != areas.end());
        REQUIRE(has(own->rooms, own_room));
        for (const auto& include : includes_of(file)) {
            INFO(file.path << " includes " << include);
            CHECK_FALSE(starts_with(include, "asio"));
            CHECK_FALSE(starts_with(include, "boost"));
            if (starts_with(include, "cohort/"))
                CHECK(user_side.count(include.substr(7)) == 0);
            if (!fs::exists(root / "src" / include))
                continue;
            const auto [its_area, its_room] = room_of(include);
            if (its_area == own_area)
                CHECK(place(own->rooms, its_room) >= place(own->rooms, own_room));
            else
                CHECK(has(own->may_use, its_area));
        }
    }
}

TEST_CASE("layering: an area uses only areas below it") {
    const auto areas = read_areas();
    for (auto at = areas.begin(); at != areas.end(); ++at)
        for (const auto& used : at->may_use) {
            INFO(at->name << " may use " << used);
            CHECK(std::any_of(at + 1, areas.end(),
                              [&](const area& below) { return below.name == used; }));
            CHECK_FALSE(has(at->may_not_use, used));
        }
}

TEST_CASE("layering: the table names every area and every room, at most seven in an area") {
    const auto areas = read_areas();
    std::vector<std::string> names;
    std::vector<std::string> rooms;
    for (const auto& area : areas) {
        names.push_back(area.name);
        INFO(area.name);
        CHECK(area.rooms.size() <= 7);
        CHECK(sorted(area.rooms) == folders_in(root / "src" / area.name));
        for (const auto& room : area.rooms)
            rooms.push_back(area.name + '/' + room);
    }
    CHECK(sorted(names) == folders_in(root / "src"));
    std::vector<std::string> described;
    for (const auto& cells : rows_under("Rooms"))
        described.push_back(names_in(cells.at(1)).at(0));
    CHECK(described == rooms);
}

TEST_CASE("layering: a room has at most 3200 lines") {
    std::map<std::string, std::size_t> lines;
    for (const auto& file : files_in("src")) {
        const auto [area, room] = room_of(file.path.substr(4));
        lines[area + '/' + room] += file.lines.size();
    }
    for (const auto& [room, count] : lines)
        CHECK_MESSAGE(count <= 3200, room << " has " << count << " lines");
}

TEST_CASE("layering: a public header includes only public headers below it") {
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

TEST_CASE("layering: every name on the page of the rooms exists where the page says") {
    const std::regex name(R"re(`((src|include)/[^:`]+): (\w+)`)re");
    std::ifstream page(root / "src/README.md");
    int found = 0;
    for (std::string line; std::getline(page, line);)
        for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at) {
            ++found;
            std::ifstream file(root / (*at)[1].str());
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            INFO((*at)[1].str() << ": " << (*at)[3].str());
            CHECK(has_word(text, (*at)[3].str()));
        }
    CHECK(found >= 15);
}

TEST_CASE("layering: the way down has at most 7 stops, the way up at most 8") {
    const std::regex step(R"(^\d+\. )");
    std::map<std::string, int> stops;
    std::string heading;
    for (const auto& line : read_source(root / "src/README.md").lines) {
        if (line.starts_with("## "))
            heading = line.substr(3);
        else if (std::regex_search(line, step))
            ++stops[heading];
    }
    CHECK(stops.size() == 6);
    CHECK(stops["From the example to the system call"] <= 7);
    CHECK(stops["From a worker's end to the exception"] <= 8);
    CHECK(stops["From a worker's write to the reader"] <= 8);
    CHECK(stops["From a task to its value"] <= 8);
    CHECK(stops["From a host's name to its agent"] <= 7);
    CHECK(stops["From a group on hosts to a worker's end"] <= 7);
}

}  // namespace layering_test
