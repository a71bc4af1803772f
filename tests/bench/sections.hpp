// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "arguments.hpp"

namespace bench {

// Each section measures one thing in this process and prints one line of JSON. Its arguments:

/// peer= program= waves= at_once= ticker=0|1 memory=<MiB> descriptors=
void short_lived(const arguments&);

/// peer=cohort|boost program= commands= at_once=
void batch(const arguments&);

/// peer=cohort|raw program= workers= idle_ms=
void scale(const arguments&);

/// peer=cohort|epoll program= workers= runs=   one worker: after its exit; more: after a failure
void latency(const arguments&);

/// peer=spawn|fork|forkserver workers= runs= memory=<MiB>   from request to inside the function
void methods(const arguments&);

/// peer=host|worker throws= depth=   a throw that is caught
void throws(const arguments&);

/// peer=cohort|parent|array|raw|boost|pool|pool_raw|process bytes= trips=   there and back; without
/// bytes= they are 64
void round_trip(const arguments&);

/// peer=cohort|batches|raw|boost messages=   of 64 bytes, in one direction
void one_way(const arguments&);

/// peer=file_descriptor|file_system|raw bytes= count=   an array is made, touched and dropped
void arrays(const arguments&);

/// method=spawn|fork|forkserver runs=   a start with arrays and queues as arguments, and one
/// without
void laden_start(const arguments&);

/// peer=cohort|nothing bytes= trips= ms=   how late the loop is that awaits large values
void late_loop(const arguments&);

/// runs= thrown=0|1   from the death of a barrier's party to the exceptions of the others; thrown:
/// they have thrown before
void broken_barrier(const arguments&);

/// waits=get|put|bounded_put how=blocking|awaited idle_ms=   what an operation costs while it waits
void idle_queue(const arguments&);

/// what=array|file_system_array|queue|bounded_queue count=   what each costs this process
void sharing_memory(const arguments&);

/// peer=console|file|splice|boost program= workers= bytes=   passes on what workers write
void tee(const arguments&);

/// how=block|drop program= workers= bytes=   all lines are read, by output_batch
/// how=nobody|null|splice program= bytes= formatted=0|1   how long a worker takes that nobody reads
void worker_lines(const arguments&);

/// peer=inherit|file|path|files|captures|boost program= starts= directory=   one at a time; file:
/// its path has no directory
void stream_starts(const arguments&);

/// pauses= writer= flooding= joins=   how late join(50 ms) gives up, beside `flooding` workers
/// whose lines nobody reads
void punctual(const arguments&);

/// program= writer= runs= captures=0|1 grandchild=0|1 flooding=   from an exit to its outcome
void told(const arguments&);

/// peer=kept|fresh|host bytes= trips=   an array on a CUDA device, to another process
void device(const arguments&);

/// workers= in_flight= calls=   us for each call
void pool_rate(const arguments&);

/// peer=cohort|nothing pauses= bytes= joins=   how late join(10 ms) gives up beside large calls
void pool_late(const arguments&);

/// peer=pool|group signal= runs=   from a worker's death to its exception and to the next call
void pool_crash(const arguments&);

/// workers= idle_ms=   what a pool costs that has nothing to do
void pool_idle(const arguments&);

// In these hosts= is how many agents on this machine run the workers; 0: none, the group is local.

/// hosts= workers= runs=   functions that end at once: start and join
void hosts_start(const arguments&);

/// hosts=0|2 how=exit|throw program= runs=   from a worker's failure to SIGTERM in the other one
void hosts_failure(const arguments&);

/// hosts=0|1 program= bytes=   all lines of one worker are read, by output_batch
void hosts_lines(const arguments&);

/// hosts= idle_ms=   what hosts cost that have nothing to do
void hosts_idle(const arguments&);

/// peer=hosts|group|posix_spawn count=   agents are reached; this program is started
void hosts_reach(const arguments&);

/// Ends at once.
void nothing(const arguments&);

}  // namespace bench
