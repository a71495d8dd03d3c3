#include "transport/ucx/exported_memory.h"
#include "transport/ucx/tuning.h"
#include "transport/ucx/ucx_transport.h"

#include <fmt/format.h>

namespace offpath::transport {

UcxFacts ucx_facts(const UcxConfig& config) {
    UcxFacts facts;
    facts.compiled_version = fmt::format("{}.{}", UCP_API_MAJOR, UCP_API_MINOR);
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    facts.loaded_version = fmt::format("{}.{}.{}", major, minor, release);
    const ucx::Context context =
        ucx::open_context(config, UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, facts.problem);
    if (context) facts.resources = ucx::resources_of(context.get());
    const ExportedMemoryProbe probe = probe_exported_memory(config);
    facts.exported_memory_compiled = probe.compiled;
    facts.exported_memory_works = probe.works;
    facts.exported_memory_probe = probe.result;
    return facts;
}

}  // namespace offpath::transport
