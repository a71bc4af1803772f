// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/patiently.hpp"

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace cohort::base {

// Containers of the library's threads: they wait for the memory that they need, see patiently().

template <class T>
using patient_vector = std::vector<T, patient_allocator<T>>;
template <class T>
using patient_deque = std::deque<T, patient_allocator<T>>;
template <class T>
using patient_list = std::list<T, patient_allocator<T>>;
template <class T>
using patient_set = std::set<T, std::less<T>, patient_allocator<T>>;
template <class Key, class T>
using patient_map = std::map<Key, T, std::less<Key>, patient_allocator<std::pair<const Key, T>>>;
template <class T>
using patient_unordered_set =
    std::unordered_set<T, std::hash<T>, std::equal_to<T>, patient_allocator<T>>;
template <class Key, class T>
using patient_unordered_map = std::unordered_map<Key, T, std::hash<Key>, std::equal_to<Key>,
                                                 patient_allocator<std::pair<const Key, T>>>;

}  // namespace cohort::base
