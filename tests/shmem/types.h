// The types of OpenSHMEM's families, for X(NAME, TYPE).
#pragma once

#include <cstddef>
#include <cstdint>

// clang-format off
#define RMA_TYPES(X) \
    X(float, float) X(double, double) X(longdouble, long double) X(char, char) \
    X(schar, signed char) X(short, short) X(int, int) X(long, long) \
    X(longlong, long long) X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int) \
    X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int8, std::int8_t) X(int16, std::int16_t) \
    X(int32, std::int32_t) X(int64, std::int64_t) X(uint8, std::uint8_t) X(uint16, std::uint16_t) \
    X(uint32, std::uint32_t) X(uint64, std::uint64_t) X(size, std::size_t) X(ptrdiff, std::ptrdiff_t)
#define AMO_TYPES(X) \
    X(int, int) X(long, long) X(longlong, long long) X(uint, unsigned int) \
    X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, std::int32_t) X(int64, std::int64_t) \
    X(uint32, std::uint32_t) X(uint64, std::uint64_t) X(size, std::size_t) X(ptrdiff, std::ptrdiff_t)
#define LOGICAL_TYPES(X) \
    X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) X(int8, std::int8_t) X(int16, std::int16_t) X(int32, std::int32_t) \
    X(int64, std::int64_t) X(uint8, std::uint8_t) X(uint16, std::uint16_t) X(uint32, std::uint32_t) \
    X(uint64, std::uint64_t) X(size, std::size_t)
#define OLD_INTEGERS(X) \
    X(short, short) X(int, int) X(long, long) X(longlong, long long)
#define OLD_REALS(X) \
    X(float, float) X(double, double) X(longdouble, long double)
// clang-format on
