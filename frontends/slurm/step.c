#include "slurm/step.h"

#include <stdarg.h>
#include <stdio.h>

void offpath_step_init(offpath_step_t* step) {
    *step = (offpath_step_t){.dir_descriptor = -1, .claims = {-1, -1}, .device = {.handle = -1, .log = -1}};
    offpath_step_options_init(&step->options);
}

void offpath_step_say(const offpath_step_t* step, const char* format, ...) {
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    slurm_spank_log("offpath: %s%s%s", step->node, step->node[0] == '\0' ? "" : ": ", text);
}

bool offpath_step_has(spank_t spank, const char* variable, char* value, size_t bytes) {
    if (spank_getenv(spank, variable, value, (int)bytes) != ESPANK_SUCCESS)
        *value = '\0';  // Slurm leaves a value that does not fit without an end
    return *value != '\0';
}
