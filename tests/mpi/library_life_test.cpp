// MPI that begins before main, or ends after it (library_life.cpp), with communication in between.
#include "library_life.h"

#include <cstdlib>
#include <string>

#include "check.h"

int main(int argc, char** argv) {
    const char* const value = std::getenv("LIFE");
    const std::string life = value == nullptr ? "" : value;
    if (life.starts_with("program")) MPI_Init(&argc, &argv);
    for (const int seed : {1, 2})
        check::that(exchange(seed), "exchange {}", seed);
    if (life.ends_with("program")) return check::finish();
    return check::failures.load() == 0 ? 0 : 1;
}
