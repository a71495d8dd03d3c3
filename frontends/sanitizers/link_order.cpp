// Lets programs that were made with -fsanitize=address start while one of our libraries is preloaded. The
// sanitizer's run time refuses to start unless it is the first library of the process. It asks this function
// for its settings before it checks that. The check is not needed for us: our libraries replace none of the
// C library's functions, so the run time still comes first where it must. ASAN_OPTIONS counts for more, and a
// program's own function of this name replaces this one.
#include <offpath/types.h>

// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer has chosen the name
extern "C" OFFPATH_API const char* __asan_default_options() {
    return "verify_asan_link_order=0";
}
