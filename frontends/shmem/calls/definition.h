// How a call of shmem.h is defined: under its profiling name, with the usual name as a weak alias.
#pragma once

#define OFFPATH_SHMEM_EXPORT extern "C" __attribute__((visibility("default")))

// DEFINE(int, shmem_my_pe, (void)) { ... }
#define DEFINE(result, name, parameters)                                                 \
    OFFPATH_SHMEM_EXPORT result p##name parameters;                                      \
    OFFPATH_SHMEM_EXPORT __attribute__((weak, alias("p" #name))) decltype(p##name) name; \
    OFFPATH_SHMEM_EXPORT result p##name parameters
