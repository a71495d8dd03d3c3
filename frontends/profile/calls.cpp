// The profiler's calls that need more than a table: life, messages, and requests. generate.py makes the
// others.
#include "profile/scope.h"

#include <offpath/types.h>

#include <algorithm>
#include <unordered_map>

using namespace offpath::profile;

namespace {

#define SITE __builtin_return_address(0)

constexpr const char* receive = "Recv";

int peer_of(int rank) {
    if (rank == MPI_PROC_NULL) return -2;
    return rank == MPI_ANY_SOURCE ? -1 : rank;
}

int tag_of(int tag) {
    return tag == MPI_ANY_TAG ? -1 : tag;
}

CallKind message(Recorder& recorder, const char* name, const void* site, int count, MPI_Datatype type,
                 int peer, int tag, MPI_Comm comm) {
    CallKind kind = collective_kind(recorder, name, site, comm);
    kind.peer = peer_of(peer);
    kind.tag = tag_of(tag);
    kind.bytes = bytes_of(count, type);
    return kind;
}

// Blocking messages. Neither MPI makes calls of its own from inside one.
template <typename... Words>
bool repeats(const Words&... words) {
    return recorder_of_thread != nullptr && recorder_of_thread->repeats(words...);
}

template <typename Call>
int record_blocking(const Message& its, const Call& call) {
    Scope recording;
    const int result = call();
    if (!recording) return result;
    const auto& [count, type, peer, tag] = its.half;
    CallKind kind = message(*recording.operator->(), its.name, its.site, count, type, peer, tag, its.comm);
    if (its.received.type != MPI_DATATYPE_NULL) {
        kind.other_peer = peer_of(its.received.peer);
        kind.other_tag = tag_of(its.received.tag);
        kind.other_bytes = bytes_of(its.received.count, its.received.type);
    }
    recording->leave(kind, &its);
    return result;
}

// Out of line, so that calls that repeat() have no frame.
using Send = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
[[gnu::noinline]] int record_send(Send host, const char* name, const void* site, const void* buffer,
                                  int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    return record_blocking({name, site, comm, {count, type, dest, tag}, {}},
                           [&] { return host(buffer, count, type, dest, tag, comm); });
}

[[gnu::noinline]] int record_receive(const void* site, void* buffer, int count, MPI_Datatype type, int source,
                                     int tag, MPI_Comm comm, MPI_Status* status) {
    return record_blocking({receive, site, comm, {count, type, source, tag}, {}},
                           [&] { return PMPI_Recv(buffer, count, type, source, tag, comm, status); });
}

// Requests of one completing call: their handles and ages before the host's call.
struct Completing {
    std::vector<MPI_Request> handles;
    std::vector<std::uint64_t> ages, list;
    std::vector<std::size_t> done;  // requests that are complete, by number

    void note(Recorder& recorder, int count, const MPI_Request* requests) {
        handles.assign(requests, requests + std::max(0, count));
        ages.clear();
        list.clear();
        done.clear();
        for (const MPI_Request request : handles)
            ages.push_back(recorder.posts_ago(request));
    }
    void add(std::size_t index) {
        if (ages[index] == 0) return;
        list.push_back(ages[index]);
        done.push_back(index);
    }
    void add_all() {
        for (std::size_t i = 0; i < ages.size(); ++i)
            add(i);
    }
    void record(Recorder& recorder, const char* name, const void* site) {
        CallKind kind = kind_of(name, site);
        kind.list = list;
        recorder.leave(kind);
        const std::uint64_t each = recorder.last_inside() / std::max<std::size_t>(1, list.size());
        for (const std::size_t index : done)
            recorder.completed(handles[index], each);
    }
};
Completing completing;  // used by the thread that records

}  // namespace

// Life

extern "C" OFFPATH_API int MPI_Init(int* argc, char*** argv) {
    const int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS) begin_profile();
    return result;
}

extern "C" OFFPATH_API int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS) begin_profile();
    return result;
}

extern "C" OFFPATH_API int MPI_Finalize() {
    {
        Scope recording;
        if (recording) recording->leave_unrecorded();
    }
    end_profile();
    return PMPI_Finalize();
}

extern "C" OFFPATH_API int MPI_Comm_free(MPI_Comm* comm) {
    Scope recording;
    if (recording) recording->communicator_freed(*comm);
    const int result = PMPI_Comm_free(comm);
    if (recording) recording->leave(kind_of("Comm_free", SITE));
    return result;
}

extern "C" OFFPATH_API int MPI_Comm_disconnect(MPI_Comm* comm) {
    Scope recording;
    if (recording) recording->communicator_freed(*comm);
    const int result = PMPI_Comm_disconnect(comm);
    if (recording) recording->leave(kind_of("Comm_disconnect", SITE));
    return result;
}

extern "C" OFFPATH_API int MPI_Win_free(MPI_Win* win) {
    Scope recording;
    if (!recording) return PMPI_Win_free(win);
    CallKind kind = kind_of("Win_free", SITE);
    kind.window = recording->window(*win);
    recording->window_freed(*win);
    const int result = PMPI_Win_free(win);
    recording->leave(kind);
    return result;
}

extern "C" OFFPATH_API int MPI_Type_free(MPI_Datatype* type) {
    forget_datatypes();
    return PMPI_Type_free(type);
}

// Messages

#define PROFILED_SEND(NAME)                                                                           \
    extern "C" OFFPATH_API int MPI_##NAME(const void* buffer, int count, MPI_Datatype type, int dest, \
                                          int tag, MPI_Comm comm) {                                   \
        if (repeats(#NAME, SITE, comm, Message::Half{count, type, dest, tag}))                        \
            return PMPI_##NAME(buffer, count, type, dest, tag, comm);                                 \
        return record_send(PMPI_##NAME, #NAME, SITE, buffer, count, type, dest, tag, comm);           \
    }
PROFILED_SEND(Send)
PROFILED_SEND(Bsend)
PROFILED_SEND(Ssend)
PROFILED_SEND(Rsend)

#define PROFILED_ISEND(NAME)                                                                           \
    extern "C" OFFPATH_API int MPI_##NAME(const void* buffer, int count, MPI_Datatype type, int dest,  \
                                          int tag, MPI_Comm comm, MPI_Request* request) {              \
        Scope recording;                                                                               \
        const int result = PMPI_##NAME(buffer, count, type, dest, tag, comm, request);                 \
        if (recording)                                                                                 \
            recording->posted(*request, recording->leave(message(*recording.operator->(), #NAME, SITE, \
                                                                 count, type, dest, tag, comm)));      \
        return result;                                                                                 \
    }
PROFILED_ISEND(Isend)
PROFILED_ISEND(Ibsend)
PROFILED_ISEND(Issend)
PROFILED_ISEND(Irsend)

extern "C" OFFPATH_API int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag,
                                    MPI_Comm comm, MPI_Status* status) {
    if (repeats(receive, SITE, comm, Message::Half{count, type, source, tag}))
        return PMPI_Recv(buffer, count, type, source, tag, comm, status);
    return record_receive(SITE, buffer, count, type, source, tag, comm, status);
}

extern "C" OFFPATH_API int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag,
                                     MPI_Comm comm, MPI_Request* request) {
    Scope recording;
    const int result = PMPI_Irecv(buffer, count, type, source, tag, comm, request);
    if (recording)
        recording->posted(*request, recording->leave(message(*recording.operator->(), "Irecv", SITE, count,
                                                             type, source, tag, comm)));
    return result;
}

extern "C" OFFPATH_API int MPI_Sendrecv(const void* sent, int sent_count, MPI_Datatype sent_type, int dest,
                                        int sent_tag, void* received, int received_count,
                                        MPI_Datatype received_type, int source, int received_tag,
                                        MPI_Comm comm, MPI_Status* status) {
    const Message::Half to{sent_count, sent_type, dest, sent_tag};
    const Message::Half from{received_count, received_type, source, received_tag};
    const char* const name = "Sendrecv";
    const auto call = [&] {
        return PMPI_Sendrecv(sent, sent_count, sent_type, dest, sent_tag, received, received_count,
                             received_type, source, received_tag, comm, status);
    };
    return repeats(name, SITE, comm, to, from) ? call() : record_blocking({name, SITE, comm, to, from}, call);
}

extern "C" OFFPATH_API int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int dest,
                                                int sent_tag, int source, int received_tag, MPI_Comm comm,
                                                MPI_Status* status) {
    const Message::Half to{count, type, dest, sent_tag}, from{count, type, source, received_tag};
    return record_blocking({"Sendrecv_replace", SITE, comm, to, from}, [&] {
        return PMPI_Sendrecv_replace(buffer, count, type, dest, sent_tag, source, received_tag, comm, status);
    });
}

extern "C" OFFPATH_API int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    Scope recording;
    const int result = PMPI_Iprobe(source, tag, comm, flag, status);
    if (!recording) return result;
    if (*flag == 0) {
        recording->leave_in_vain();
    } else {
        recording->leave(message(*recording.operator->(), "Iprobe", SITE, 0, MPI_BYTE, source, tag, comm));
    }
    return result;
}

extern "C" OFFPATH_API int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
    Scope recording;
    const int result = PMPI_Probe(source, tag, comm, status);
    if (recording)
        recording->leave(message(*recording.operator->(), "Probe", SITE, 0, MPI_BYTE, source, tag, comm));
    return result;
}

// Matched probes. What receives their messages is recorded as a receive of that message.

namespace {

struct Matched {
    MPI_Comm comm = MPI_COMM_NULL;
    int source = 0, tag = 0;
};
std::unordered_map<MPI_Message, Matched> matched;  // used by the thread that records

// The program's status, or one in its place if it ignores it.
struct KnownStatus {
    explicit KnownStatus(MPI_Status* given) : its(given == MPI_STATUS_IGNORE ? &own : given) {}
    MPI_Status own;
    MPI_Status* const its;
};

void record_matched(Scope& recording, const char* name, const void* site, int source, int tag, MPI_Comm comm,
                    MPI_Message message_handle, const MPI_Status& status) {
    if (!recording) return;
    if (message_handle != MPI_MESSAGE_NULL && message_handle != MPI_MESSAGE_NO_PROC)
        matched[message_handle] = {comm, status.MPI_SOURCE, status.MPI_TAG};
    recording->leave(message(*recording.operator->(), name, site, 0, MPI_BYTE, source, tag, comm));
}

// The kind of a call that receives the message; a bare one if it was matched by a call that was not recorded.
CallKind kind_of_receive(Recorder& recorder, const char* name, const void* site, int count, MPI_Datatype type,
                         MPI_Message message_handle) {
    const auto found = matched.find(message_handle);
    if (found == matched.end()) return kind_of(name, site);
    const Matched its = found->second;
    matched.erase(found);
    return message(recorder, name, site, count, type, its.source, its.tag, its.comm);
}

}  // namespace

extern "C" OFFPATH_API int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message,
                                      MPI_Status* status) {
    Scope recording;
    const KnownStatus known(status);
    const int result = PMPI_Mprobe(source, tag, comm, message, known.its);
    record_matched(recording, "Mprobe", SITE, source, tag, comm, *message, *known.its);
    return result;
}

extern "C" OFFPATH_API int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                                       MPI_Status* status) {
    Scope recording;
    const KnownStatus known(status);
    const int result = PMPI_Improbe(source, tag, comm, flag, message, known.its);
    if (!recording) return result;
    if (*flag == 0) {
        recording->leave_in_vain();
    } else {
        record_matched(recording, "Improbe", SITE, source, tag, comm, *message, *known.its);
    }
    return result;
}

extern "C" OFFPATH_API int MPI_Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
                                     MPI_Status* status) {
    Scope recording;
    const MPI_Message matched_message = *message;
    const int result = PMPI_Mrecv(buffer, count, type, message, status);
    if (recording)
        recording->leave(
            kind_of_receive(*recording.operator->(), "Mrecv", SITE, count, type, matched_message));
    return result;
}

extern "C" OFFPATH_API int MPI_Imrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
                                      MPI_Request* request) {
    Scope recording;
    const MPI_Message matched_message = *message;
    const int result = PMPI_Imrecv(buffer, count, type, message, request);
    if (recording)
        recording->posted(*request, recording->leave(kind_of_receive(*recording.operator->(), "Imrecv", SITE,
                                                                     count, type, matched_message)));
    return result;
}

// Persistent messages: a start is recorded as the non-blocking call.

#define PROFILED_SEND_INIT(NAME)                                                                        \
    extern "C" OFFPATH_API int MPI_##NAME(const void* buffer, int count, MPI_Datatype type, int dest,   \
                                          int tag, MPI_Comm comm, MPI_Request* request) {               \
        Scope recording;                                                                                \
        const int result = PMPI_##NAME(buffer, count, type, dest, tag, comm, request);                  \
        if (!recording) return result;                                                                  \
        recording->leave(kind_of(#NAME, SITE));                                                         \
        recording->persistent(*request, message(*recording.operator->(), "Start of Isend", SITE, count, \
                                                type, dest, tag, comm));                                \
        return result;                                                                                  \
    }
PROFILED_SEND_INIT(Send_init)
PROFILED_SEND_INIT(Bsend_init)
PROFILED_SEND_INIT(Ssend_init)
PROFILED_SEND_INIT(Rsend_init)

extern "C" OFFPATH_API int MPI_Recv_init(void* buffer, int count, MPI_Datatype type, int source, int tag,
                                         MPI_Comm comm, MPI_Request* request) {
    Scope recording;
    const int result = PMPI_Recv_init(buffer, count, type, source, tag, comm, request);
    if (!recording) return result;
    recording->leave(kind_of("Recv_init", SITE));
    recording->persistent(
        *request, message(*recording.operator->(), "Start of Irecv", SITE, count, type, source, tag, comm));
    return result;
}

namespace {

void record_start(Recorder& recorder, MPI_Request request, const void* site) {
    const CallKind* const known = recorder.persistent_kind(request);
    if (known == nullptr) {
        recorder.leave(kind_of("Start", site));
        return;
    }
    CallKind kind = *known;
    kind.site = site;
    recorder.posted(request, recorder.leave(kind));
}

}  // namespace

extern "C" OFFPATH_API int MPI_Start(MPI_Request* request) {
    Scope recording;
    const int result = PMPI_Start(request);
    if (recording) record_start(*recording.operator->(), *request, SITE);
    return result;
}

extern "C" OFFPATH_API int MPI_Startall(int count, MPI_Request* requests) {
    Scope recording;
    const int result = PMPI_Startall(count, requests);
    if (!recording) return result;
    for (int i = 0; i < count; ++i) {
        if (i > 0) recording->enter();
        record_start(*recording.operator->(), requests[i], SITE);
    }
    return result;
}

extern "C" OFFPATH_API int MPI_Request_free(MPI_Request* request) {
    Scope recording;
    if (!recording) return PMPI_Request_free(request);
    recording->completed(*request, 0);
    recording->forget(*request);
    const int result = PMPI_Request_free(request);
    recording->leave(kind_of("Request_free", SITE));
    return result;
}

extern "C" OFFPATH_API int MPI_Cancel(MPI_Request* request) {
    Scope recording;
    if (!recording) return PMPI_Cancel(request);
    completing.note(*recording.operator->(), 1, request);
    const int result = PMPI_Cancel(request);
    CallKind kind = kind_of("Cancel", SITE);
    kind.list = completing.ages;
    recording->leave(kind);
    return result;
}

// Completion

extern "C" OFFPATH_API int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    Scope recording;
    if (!recording) return PMPI_Wait(request, status);
    completing.note(*recording.operator->(), 1, request);
    const int result = PMPI_Wait(request, status);
    completing.add_all();
    completing.record(*recording.operator->(), "Wait", SITE);
    return result;
}

extern "C" OFFPATH_API int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
    Scope recording;
    if (!recording) return PMPI_Waitall(count, requests, statuses);
    completing.note(*recording.operator->(), count, requests);
    const int result = PMPI_Waitall(count, requests, statuses);
    completing.add_all();
    completing.record(*recording.operator->(), "Waitall", SITE);
    return result;
}

extern "C" OFFPATH_API int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
    Scope recording;
    if (!recording) return PMPI_Waitany(count, requests, index, status);
    completing.note(*recording.operator->(), count, requests);
    const int result = PMPI_Waitany(count, requests, index, status);
    if (*index != MPI_UNDEFINED) completing.add(static_cast<std::size_t>(*index));
    completing.record(*recording.operator->(), "Waitany", SITE);
    return result;
}

extern "C" OFFPATH_API int MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices,
                                        MPI_Status* statuses) {
    Scope recording;
    if (!recording) return PMPI_Waitsome(count, requests, done, indices, statuses);
    completing.note(*recording.operator->(), count, requests);
    const int result = PMPI_Waitsome(count, requests, done, indices, statuses);
    for (int i = 0; *done != MPI_UNDEFINED && i < *done; ++i)
        completing.add(static_cast<std::size_t>(indices[i]));
    completing.record(*recording.operator->(), "Waitsome", SITE);
    return result;
}

extern "C" OFFPATH_API int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    Scope recording;
    if (!recording) return PMPI_Test(request, flag, status);
    completing.note(*recording.operator->(), 1, request);
    const int result = PMPI_Test(request, flag, status);
    if (*flag == 0) {
        recording->leave_in_vain();
        return result;
    }
    completing.add_all();
    completing.record(*recording.operator->(), "Test", SITE);
    return result;
}

extern "C" OFFPATH_API int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
    Scope recording;
    if (!recording) return PMPI_Testall(count, requests, flag, statuses);
    completing.note(*recording.operator->(), count, requests);
    const int result = PMPI_Testall(count, requests, flag, statuses);
    if (*flag == 0) {
        recording->leave_in_vain();
        return result;
    }
    completing.add_all();
    completing.record(*recording.operator->(), "Testall", SITE);
    return result;
}

extern "C" OFFPATH_API int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag,
                                       MPI_Status* status) {
    Scope recording;
    if (!recording) return PMPI_Testany(count, requests, index, flag, status);
    completing.note(*recording.operator->(), count, requests);
    const int result = PMPI_Testany(count, requests, index, flag, status);
    if (*flag == 0) {
        recording->leave_in_vain();
        return result;
    }
    if (*index != MPI_UNDEFINED) completing.add(static_cast<std::size_t>(*index));
    completing.record(*recording.operator->(), "Testany", SITE);
    return result;
}

extern "C" OFFPATH_API int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices,
                                        MPI_Status* statuses) {
    Scope recording;
    if (!recording) return PMPI_Testsome(count, requests, done, indices, statuses);
    completing.note(*recording.operator->(), count, requests);
    const int result = PMPI_Testsome(count, requests, done, indices, statuses);
    if (*done == 0) {
        recording->leave_in_vain();
        return result;
    }
    for (int i = 0; *done != MPI_UNDEFINED && i < *done; ++i)
        completing.add(static_cast<std::size_t>(indices[i]));
    completing.record(*recording.operator->(), "Testsome", SITE);
    return result;
}
