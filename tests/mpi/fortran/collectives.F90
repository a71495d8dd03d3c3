! Collectives, communicators and every way to wait for a request, from Fortran. Results are known in advance, so that nothing
! is compared with the library under test.
#include "binding.h"

module checks
  implicit none
  integer :: failures = 0, rank = 0, ranks = 1
contains
  subroutine that(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (good) return
    failures = failures + 1
    write (0, '(a,i0,2a)') 'rank ', rank, ': FAILED ', what
  end subroutine

  ! What `source` sends to `target` at place i of message `tag`.
  pure integer function value(source, target, i, tag)
    integer, intent(in) :: source, target, i, tag
    value = source * 1000003 + target * 10007 + i * 13 + tag * 101
  end function
end module

module programs
  USE_MPI
  use checks
  implicit none
#ifdef INTERFACE_MPIF_H
  include 'mpif.h'
#endif
  integer, parameter :: n = 3000
contains

  subroutine fill_to_all(send, tag)
    integer, intent(out) :: send(n, 0:ranks - 1)
    integer, intent(in) :: tag
    integer :: r, i
    do r = 0, ranks - 1
      do i = 1, n
        send(i, r) = value(rank, r, i, tag)
      end do
    end do
  end subroutine

  logical function came_from_all(recv, tag)
    integer, intent(in) :: recv(n, 0:ranks - 1), tag
    integer :: r, i
    came_from_all = .true.
    do r = 0, ranks - 1
      do i = 1, n
        if (recv(i, r) /= value(r, rank, i, tag)) came_from_all = .false.
      end do
    end do
  end function

  subroutine start_alltoall(send, recv, tag, request)
    integer, intent(inout), asynchronous :: send(n, 0:ranks - 1), recv(n, 0:ranks - 1)
    integer, intent(in) :: tag
    REQUEST_T, intent(out) :: request
    integer :: ierr
    call fill_to_all(send, tag)
    recv = -1
    call MPI_Ialltoall(send, n, MPI_INTEGER, recv, n, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    call that(ierr == MPI_SUCCESS, 'MPI_Ialltoall gives an error')
  end subroutine

  subroutine each_collective()
    integer, allocatable, asynchronous :: send(:, :), recv(:, :), all(:, :), line(:)
    integer, allocatable :: counts(:), places(:)
    integer :: ierr, r, i, root
    logical :: right
    REQUEST_T :: request
    STATUS_T(status)
    allocate (send(n, 0:ranks - 1), recv(n, 0:ranks - 1), all(n, 0:ranks - 1), line(n), counts(ranks), places(ranks))

    call start_alltoall(send, recv, 1, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call that(ierr == MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'MPI_Wait leaves a request')
    call that(came_from_all(recv, 1), 'MPI_Ialltoall')

    call fill_to_all(send, 2)
    call MPI_Ialltoall(MPI_IN_PLACE, n, MPI_INTEGER, send, n, MPI_INTEGER, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, status IERR)
    call that(came_from_all(send, 2), 'MPI_Ialltoall in place')

    ! The blocks in opposite order at the receiver.
    call fill_to_all(send, 3)
    counts = n
    do r = 1, ranks
      places(r) = (ranks - r) * n
    end do
    call MPI_Ialltoallv(send, counts, [(i * n, i = 0, ranks - 1)], MPI_INTEGER, recv, counts, places, MPI_INTEGER, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    all = recv(:, ranks - 1:0:-1)
    call that(came_from_all(all, 3), 'MPI_Ialltoallv')

    all = -1
    all(:, rank) = [(value(rank, 0, i, 4), i = 1, n)]
    call MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INTEGER, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    right = .true.
    do r = 0, ranks - 1
      right = right .and. all(n, r) == value(r, 0, n, 4) .and. all(1, r) == value(r, 0, 1, 4)
    end do
    call that(right, 'MPI_Iallgather in place')

    line = [(value(rank, 0, i, 5), i = 1, n)]
    all = -1
    call MPI_Iallgatherv(line, n, MPI_INTEGER, all, counts, places, MPI_INTEGER, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    do r = 0, ranks - 1
      right = right .and. all(n, ranks - 1 - r) == value(r, 0, n, 5) .and. all(1, ranks - 1 - r) == value(r, 0, 1, 5)
    end do
    call that(right, 'MPI_Iallgatherv')

    do root = 0, ranks - 1
      line = 0
      if (rank == root) line = [(value(root, 0, i, 6), i = 1, n)]
      call MPI_Ibcast(line, n, MPI_INTEGER, root, MPI_COMM_WORLD, request IERR)
      call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
      call that(all_are(line, [(value(root, 0, i, 6), i = 1, n)]), 'MPI_Ibcast')
    end do

    line = rank + [(i, i = 1, n)]
    all(:, 0) = -1
    call MPI_Iallreduce(line, all, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    call that(all_are(all(:, 0), ranks * (ranks - 1) / 2 + ranks * [(i, i = 1, n)]), 'MPI_Iallreduce')
    call MPI_Iallreduce(MPI_IN_PLACE, line, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    call that(all_are(line, ranks - 1 + [(i, i = 1, n)]), 'MPI_Iallreduce in place')

    call MPI_Ibarrier(MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
  end subroutine

  logical function all_are(found, wanted)
    integer, intent(in) :: found(:), wanted(:)
    all_are = all(found == wanted)
  end function

  subroutine absolute_addresses()
    integer, asynchronous :: line(n)
    integer(MPI_ADDRESS_KIND) :: where(1)
    integer :: ierr, i
    TYPE_T :: at_line
    REQUEST_T :: request
    line = merge([(7 * i, i = 1, n)], 0, rank == 0)
    call MPI_Get_address(line, where(1) IERR)
    call MPI_Type_create_struct(1, [n], where, [MPI_INTEGER], at_line IERR)
    call MPI_Type_commit(at_line IERR)
    call MPI_Ibcast(MPI_BOTTOM, 1, at_line, 0, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    call MPI_F_sync(line)
    call that(all_are(line, [(7 * i, i = 1, n)]), 'MPI_Ibcast from MPI_BOTTOM')
    call MPI_Type_free(at_line IERR)
  end subroutine

  subroutine MPI_F_sync(line)
    integer, intent(inout) :: line(*)
    if (failures < 0) line(1) = 0
  end subroutine

  ! Three offloaded requests, a null one, and a message in each direction of a ring.
  subroutine ways_to_wait()
    integer, parameter :: count = 6
    integer, allocatable, asynchronous :: send(:, :, :), recv(:, :, :)
    integer, asynchronous :: out(n), in(n)
    integer :: way, i, k, ierr, index, done, left, indices(count), from
    logical :: flag, seen(count)
    REQUEST_T :: requests(count)
    STATUS_T(status)
    STATUSES_T(statuses, count)
    allocate (send(n, 0:ranks - 1, 3), recv(n, 0:ranks - 1, 3))
    from = modulo(rank - 1, ranks)
    do way = 1, 9
      do i = 1, 3
        call start_alltoall(send(:, :, i), recv(:, :, i), 10 * way + i, requests(i))
      end do
      requests(4) = MPI_REQUEST_NULL
      out = [(value(rank, 0, i, way), i = 1, n)]
      call MPI_Irecv(in, n, MPI_INTEGER, from, way, MPI_COMM_WORLD, requests(5) IERR)
      call MPI_Isend(out, n, MPI_INTEGER, modulo(rank + 1, ranks), way, MPI_COMM_WORLD, requests(6) IERR)
      seen = .false.
      select case (way)
      case (1)
        call MPI_Waitall(count, requests, MPI_STATUSES_IGNORE IERR)
      case (2)
        call MPI_Waitall(count, requests, statuses IERR)
        call that(SOURCE_OF_NTH(statuses, 5) == from, 'MPI_Waitall: the source of a message')
      case (3)
        do k = 1, count - 1
          call MPI_Waitany(count, requests, index, status IERR)
          call that(index >= 1 .and. index <= count .and. index /= 4, 'MPI_Waitany: the index')
          if (index == 5) call that(SOURCE_OF(status) == from .and. TAG_OF(status) == way, 'MPI_Waitany: the status')
          if (index >= 1 .and. index <= count) seen(index) = .true.
        end do
        call that(all(seen .or. [(k == 4, k = 1, count)]), 'MPI_Waitany: an index is missing')
        call MPI_Waitany(count, requests, index, MPI_STATUS_IGNORE IERR)
        call that(is_undefined(index), 'MPI_Waitany: the index of nothing')
      case (4)
        left = count - 1
        do while (left > 0)
          call MPI_Waitsome(count, requests, done, indices, statuses IERR)
          do k = 1, done
            call that(indices(k) >= 1 .and. indices(k) <= count, 'MPI_Waitsome: an index')
            if (indices(k) == 5) call that(SOURCE_OF_NTH(statuses, k) == from, 'MPI_Waitsome: a status')
            seen(indices(k)) = .true.
          end do
          left = left - done
        end do
        call that(all(seen .or. [(k == 4, k = 1, count)]), 'MPI_Waitsome: an index is missing')
        call MPI_Waitsome(count, requests, done, indices, MPI_STATUSES_IGNORE IERR)
        call that(done == MPI_UNDEFINED, 'MPI_Waitsome: the count of nothing')
      case (5)
        do i = 1, count
          flag = .false.
          do while (.not. flag)
            call MPI_Test(requests(i), flag, status IERR)
          end do
        end do
      case (6)
        flag = .false.
        do while (.not. flag)
          call MPI_Testall(count, requests, flag, statuses IERR)
        end do
        call that(SOURCE_OF_NTH(statuses, 5) == from, 'MPI_Testall: the source of a message')
      case (7)
        left = count - 1
        do while (left > 0)
          call MPI_Testany(count, requests, index, flag, status IERR)
          if (.not. flag) cycle
          call that(index >= 1 .and. index <= count .and. index /= 4, 'MPI_Testany: the index')
          left = left - 1
        end do
        call MPI_Testany(count, requests, index, flag, MPI_STATUS_IGNORE IERR)
        call that(flag .and. is_undefined(index), 'MPI_Testany: of nothing')
      case (8)
        left = count - 1
        do while (left > 0)
          call MPI_Testsome(count, requests, done, indices, MPI_STATUSES_IGNORE IERR)
          do k = 1, done
            seen(indices(k)) = .true.
          end do
          left = left - done
        end do
        call that(all(seen .or. [(k == 4, k = 1, count)]), 'MPI_Testsome: an index is missing')
      case (9)
        do i = 1, count
          flag = .false.
          do while (.not. flag)
            call MPI_Request_get_status(requests(i), flag, status IERR)
          end do
          call MPI_Wait(requests(i), MPI_STATUS_IGNORE IERR)
        end do
      end select
      do i = 1, count
        call that(requests(i) == MPI_REQUEST_NULL, 'a request is left')
      end do
      do i = 1, 3
        call that(came_from_all(recv(:, :, i), 10 * way + i), 'what was waited for is not there')
      end do
      call that(all_are(in, [(value(from, 0, i, way), i = 1, n)]), 'a message is not there')
    end do
  end subroutine

  ! MPICH 4.0 adds one to the index from 0 in mpif.h and `use mpi`, whatever it is.
  logical function is_undefined(index)
    integer, intent(in) :: index
    is_undefined = index == MPI_UNDEFINED
#if defined(MPICH) && !defined(INTERFACE_F08)
    is_undefined = index == MPI_UNDEFINED + 1
#endif
  end function

  subroutine one_on(comm, what)
    COMM_T, intent(in) :: comm
    character(len=*), intent(in) :: what
    integer, asynchronous :: line(n)
    integer :: ierr, mine, i
    REQUEST_T :: request
    call MPI_Comm_rank(comm, mine IERR)
    line = merge([(i, i = 1, n)], 0, mine == 0)
    call MPI_Ibcast(line, n, MPI_INTEGER, 0, comm, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    call that(all_are(line, [(i, i = 1, n)]), what)
  end subroutine

  subroutine communicators()
    COMM_T :: made, half, other, merged
    GROUP_T :: group
    integer :: ierr, dims(2), coords(2), indegree, outdegree
    logical :: periods(2), weighted
    call MPI_Comm_dup(MPI_COMM_WORLD, made IERR)
    call one_on(made, 'MPI_Comm_dup')
    call MPI_Comm_free(made IERR)
    call that(made == MPI_COMM_NULL, 'MPI_Comm_free leaves a handle')
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half IERR)
    call one_on(half, 'MPI_Comm_split')
    if (ranks > 1) then
      call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, merge(last(1), last(0), mod(rank, 2) == 0), 5, other IERR)
      call MPI_Intercomm_merge(other, mod(rank, 2) == 0, merged IERR)
      call one_on(merged, 'MPI_Intercomm_merge')
      call MPI_Comm_rank(merged, dims(1) IERR)
      call that((dims(1) >= ranks / 2) .eqv. (mod(rank, 2) == 0), 'MPI_Intercomm_merge: who is high')
      call MPI_Comm_free(merged IERR)
      call MPI_Comm_free(other IERR)
    end if
    call MPI_Comm_disconnect(half IERR)
    call MPI_Comm_group(MPI_COMM_WORLD, group IERR)
    call MPI_Comm_create(MPI_COMM_WORLD, group, made IERR)
    call one_on(made, 'MPI_Comm_create')
    call MPI_Comm_free(made IERR)
    call MPI_Group_free(group IERR)
    call MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, made IERR)
    call that(made == MPI_COMM_NULL, 'MPI_Comm_split to nothing')

    call MPI_Cart_create(MPI_COMM_WORLD, 2, [ranks, 1], [.true., .false.], .false., made IERR)
    call one_on(made, 'MPI_Cart_create')
    call MPI_Cart_get(made, 2, dims, periods, coords IERR)
    call that(periods(1) .and. .not. periods(2) .and. dims(1) == ranks, 'MPI_Cart_create: periods')
    call MPI_Cart_sub(made, [.true., .false.], half IERR)
    call one_on(half, 'MPI_Cart_sub')
    call MPI_Comm_free(half IERR)
    call MPI_Comm_free(made IERR)

    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [modulo(rank - 1, ranks)], MPI_UNWEIGHTED, 1, [modulo(rank + 1, ranks)], &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., made IERR)
    call one_on(made, 'MPI_Dist_graph_create_adjacent')
    call MPI_Dist_graph_neighbors_count(made, indegree, outdegree, weighted IERR)
    call that(indegree == 1 .and. outdegree == 1 .and. .not. weighted, 'MPI_UNWEIGHTED is taken for weights')
    call MPI_Comm_free(made IERR)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [modulo(rank - 1, ranks)], [3], 1, [modulo(rank + 1, ranks)], [4], &
                                        MPI_INFO_NULL, .false., made IERR)
    call MPI_Dist_graph_neighbors_count(made, indegree, outdegree, weighted IERR)
    call that(weighted, 'weights are taken for MPI_UNWEIGHTED')
    call MPI_Comm_free(made IERR)
  contains
    integer function last(parity)  ! MPI_Comm_split ordered by -rank: the leader of each half is its last rank
      integer, intent(in) :: parity
      last = ranks - 1 - modulo(ranks - 1 - parity, 2)
    end function
  end subroutine

  subroutine memory()
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr) :: base
    integer, pointer, contiguous, asynchronous :: line(:)
    integer :: ierr, i
    REQUEST_T :: request
    call MPI_Alloc_mem(int(4 * 100000, MPI_ADDRESS_KIND), MPI_INFO_NULL, base IERR)
    call c_f_pointer(base, line, [100000])
    line = merge([(i, i = 1, 100000)], 0, rank == 0)
    call MPI_Ibcast(line, 100000, MPI_INTEGER, 0, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    call that(all_are(line, [(i, i = 1, 100000)]), 'MPI_Ibcast in memory from MPI_Alloc_mem')
    call MPI_Free_mem(line IERR)
  end subroutine
end module

program collectives
  use programs
  implicit none
  integer :: ierr, provided, all_failures
#ifdef INTERFACE_F08
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided)
#else
  call MPI_Init(ierr)
  provided = MPI_THREAD_FUNNELED
#endif
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks IERR)
  call that(provided >= MPI_THREAD_FUNNELED, 'MPI_Init_thread')
  call each_collective()
  call absolute_addresses()
  call ways_to_wait()
  call communicators()
#ifndef INTERFACE_MPIF_H
  call memory()
#endif
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (all_failures > 0) error stop 1
end program
