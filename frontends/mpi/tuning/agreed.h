// What the ranks of a communicator agree on (agreement.h): the words that each contributes, and what follows
// from their sums.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "agreement.h"
#include "communicators/combined_words.h"
#include "communicators/words_under_way.h"
#include "switches.h"

namespace offpath::mpi {

struct Agreement {
    Agreement(Team& team, bool posted);

    bool posted;  // posted_agreement.h
    bool whole_world;
    Switch known;  // what this rank reports; it may know more later
    std::uint64_t began_ns;
    CombinedWords sums;
    std::unique_ptr<UnderWay> under_way;  // null unless posted
};

// The agreement has ended. Where it was made in a blocking collective of the world, all communicators follow
// a switch; otherwise only this one does. Throws NoAgreement.
void conclude(Team& team, const Agreement& agreed);

// A new team, which follows the switches that its members know, and one that ends.
void list_for_switches(Team& team);
void unlist_for_switches(Team& team);
std::vector<Team*> listed_teams();

}  // namespace offpath::mpi
