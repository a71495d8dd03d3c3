/* Messages by key: for layers that know themselves which send belongs to which receive.
 *
 * A message meets the receive that names its sender and its key, in whatever order the two are started, and
 * moves while both hosts compute. Nothing is ordered and nothing is matched by wildcards. A key must not be
 * used again between two ranks of a team before both ends of its message are done. */
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

/* Starts to send `bytes` bytes at `buffer` to rank `dest`. Done when the receive, or by
 * offpath_message_store its device, has taken the message. The request ends with INVALID when a message with
 * this key waits at the receiver. */
OFFPATH_API offpath_status_t offpath_message_send(offpath_team_h team, const void* buffer, size_t bytes,
                                                  uint32_t dest, offpath_message_key_t key,
                                                  offpath_request_h* request);

/* Starts to receive the message of rank `source` with this key into `bytes` bytes at `buffer`. A longer one
 * ends the request with OFFPATH_ERR_TRUNCATED, nothing is written, and its sender is done.
 * offpath_request_message tells the message's size; its tag means nothing here. */
OFFPATH_API offpath_status_t offpath_message_recv(offpath_team_h team, void* buffer, size_t bytes,
                                                  uint32_t source, offpath_message_key_t key,
                                                  offpath_request_h* request);

/* Takes a receive back: it ends with OFFPATH_ERR_CANCELED if no message has met it, and as usual otherwise.
 * Returns at once; nothing happens where no receive waits. */
OFFPATH_API offpath_status_t offpath_message_cancel(offpath_team_h team, uint32_t source,
                                                    offpath_message_key_t key);

/* Asks the device of rank `dest` to take in a message of ours that no receive has met, as far as it has room
 * for it. The send can end then, and the receive gets the message from the device. For senders that wait
 * while their receiver may wait for something else. Returns at once. */
OFFPATH_API offpath_status_t offpath_message_store(offpath_team_h team, uint32_t dest,
                                                   offpath_message_key_t key);

#ifdef __cplusplus
}
#endif

#endif
