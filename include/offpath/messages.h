/* Messages by key: for layers that know which send belongs to which receive.
 *
 * A message meets the receive that names its sender and its key, whichever of the two starts first. It moves
 * while both hosts compute. Messages have no order and there are no wildcards. A key must not be used again
 * between two ranks of a team before both ends of its message are done.
 *
 * Errors of all calls: INVALID (null, a rank that is not in the team, more than 2^47 bytes, a destroyed
 * team), PEER_LOST (the device of this process is lost). A request can also end with ACCESS. Threads: as the
 * context (types.h). */
#ifndef OFFPATH_MESSAGES_H
#define OFFPATH_MESSAGES_H

#include <offpath/request.h>
#include <offpath/team.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct offpath_message_key {
    uint64_t high, low;
} offpath_message_key_t;

/* Starts to send `bytes` bytes at `buffer` to rank `dest`. The request is done when the receive has taken
 * the message, or when the receiver's device has stored it (offpath_message_store). It ends with INVALID if
 * another message with this key waits at the receiver. */
OFFPATH_API offpath_status_t offpath_message_send(offpath_team_h team, const void* buffer, size_t bytes,
                                                  uint32_t dest, offpath_message_key_t key,
                                                  offpath_request_h* request);

/* Starts to receive the message of rank `source` with this key into `bytes` bytes at `buffer`. A longer
 * message ends the request with TRUNCATED; then nothing is written, and the send ends without an error.
 * offpath_request_message gives the size of the message; its `tag` has no meaning here. */
OFFPATH_API offpath_status_t offpath_message_recv(offpath_team_h team, void* buffer, size_t bytes,
                                                  uint32_t source, offpath_message_key_t key,
                                                  offpath_request_h* request);

/* Cancels a receive: it ends with CANCELED if no message has met it, and as usual otherwise. Returns at
 * once. Does nothing if there is no such receive. */
OFFPATH_API offpath_status_t offpath_message_cancel(offpath_team_h team, uint32_t source,
                                                    offpath_message_key_t key);

/* Asks the device of rank `dest` to store a message of this process that no receive has met, as far as it
 * has room. The send is then done, and a later receive gets the message from the device. It is for a sender
 * that waits while its receiver may wait for something else. Returns at once. */
OFFPATH_API offpath_status_t offpath_message_store(offpath_team_h team, uint32_t dest,
                                                   offpath_message_key_t key);

#ifdef __cplusplus
}
#endif

#endif
