#include "collectives/collectives.h"
#include "collectives/patterns/dissemination.h"
#include "schedule/builder.h"

namespace offpath::collectives {

Schedule barrier_dissemination(TeamShape team) {
    schedule::Builder builder(team.rank, team.size);
    const Dissemination pattern{team.rank, team.size};
    schedule::OpId heard = 0;
    for (std::uint32_t round = 0; round < pattern.rounds(); ++round) {
        const schedule::OpId signal = builder.signal(pattern.target(round), round);
        if (round > 0) builder.depend(signal, heard);
        const schedule::OpId wait = builder.wait(round, 1);
        if (round > 0) builder.depend(wait, heard);
        heard = wait;
    }
    return builder.finish();
}

}  // namespace offpath::collectives
