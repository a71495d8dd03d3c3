// Lists of CPUs as text.
#pragma once

#include <sched.h>

#include <string>

#include "slurm/cores.h"

// Empty if the text is no list.
inline cpu_set_t set_of(const std::string& text) {
    cpu_set_t set;
    if (!offpath_cpus_parse(text.c_str(), &set)) CPU_ZERO(&set);
    return set;
}

inline std::string text_of(const cpu_set_t& set) {
    char text[256];
    return offpath_cpus_format(&set, text, sizeof text) ? text : "too long";
}
