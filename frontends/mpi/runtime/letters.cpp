#include "letters.h"

#include "mailbox.h"
#include "runtime.h"

namespace offpath::mpi {
namespace {

Mailbox<Letter> letterbox(arriving_letter);

}  // namespace

void open_letters() {
    letterbox.open(runtime().service, 1);
}

void close_letters() {
    letterbox.close([](const Letter&) {});
}

void send_letter(int world_rank, Letter letter) {
    letter.from = runtime().rank;
    letterbox.send(world_rank, letter);
}

std::optional<Letter> next_letter() {
    return letterbox.next();
}

}  // namespace offpath::mpi
