// Rescue: messages that a device has lost are sent again by the host's MPI.
//
// A send that is not complete still has its bytes. When its device, or the receiver's, is lost, its process
// copies them, offers them to the receiver in a note, and sends the copy on payload_comm(). The send is then
// complete: no sender waits for a receiver here, so no two ranks can wait for each other.
//
// A receive whose header has come, and whose device has lost the message, takes the offer. It also asks the
// sender, which may not know of the loss. A sender that has no such message any more answers so, and the
// receive fails. It also fails if no answer comes within OFFPATH_LOST_AFTER_S.
//
// Nothing else may write into the buffer of such a receive: its device serves and has ended the operation, or
// it has ended itself. If it is only silent (offpath/loss.h), it must write there by system calls only, with
// none of them under way (base/lost_device.h); otherwise the receive fails.
//
// Offers that no receive takes, because the device had delivered the message before, are received and dropped
// at the end.
//
// Threads: under the lock (lock.h). Before the first loss, it costs a load in each poll, and sends that the
// device has are attended (parcel.h), so calls poll meanwhile.
#pragma once

#include "parcel.h"
#include "rescue_notes.h"

namespace offpath::mpi::p2p {

// A send whose device has lost it: sends its bytes again. False: there is no memory for them.
bool send_again(Parcel& send);
// A receive whose device has lost its message, with its header known. False: it cannot be rescued.
bool begin_rescue(Parcel& receive);
// Progresses such a receive. True: it waits for no offer any more; either it has failed, or `payload` is its
// message.
bool advance_rescue(Parcel& receive);

// Takes in notes. Lets the host's MPI progress.
void answer_rescue_notes();
// Whether it should be called. Any thread.
bool must_answer_rescue_notes();

// Both are collective over the world.
void open_rescue();
void close_rescue();

}  // namespace offpath::mpi::p2p
