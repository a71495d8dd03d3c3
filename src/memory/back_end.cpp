#include "memory/host_memory.h"

namespace offpath::memory {

const char* to_string(BackEnd back_end) {
    switch (back_end) {
        case BackEnd::xgvmi:
            return "xgvmi";
        case BackEnd::map:
            return "map";
        case BackEnd::cma:
            return "cma";
        case BackEnd::staged:
            return "staged";
    }
    return "unknown";
}

}  // namespace offpath::memory
