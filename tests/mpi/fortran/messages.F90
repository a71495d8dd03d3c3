! Messages, persistent requests and windows from Fortran.
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
end module

module programs
  USE_MPI
  use, intrinsic :: iso_c_binding, only: c_ptr
  use checks
  implicit none
#ifdef INTERFACE_MPIF_H
  include 'mpif.h'
#endif
  integer, parameter :: n = 40000
  integer :: next, previous, handled
contains

  pure function line_of(source, tag) result(line)
    integer, intent(in) :: source, tag
    integer :: line(n), i
    line = [(source * 100003 + tag * 17 + i, i = 1, n)]
  end function

  subroutine messages()
    integer, asynchronous :: out(n), in(n), both(n)
    integer :: ierr, count
    logical :: flag
    REQUEST_T :: sent, received
    MESSAGE_T :: message
    STATUS_T(status)

    out = line_of(rank, 1)
    call MPI_Irecv(in, n, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, received IERR)
    call MPI_Isend(out, n, MPI_INTEGER, next, 1, MPI_COMM_WORLD, sent IERR)
    call MPI_Wait(received, status IERR)
    call MPI_Wait(sent, MPI_STATUS_IGNORE IERR)
    call MPI_Get_count(status, MPI_INTEGER, count IERR)
    call that(all(in == line_of(previous, 1)), 'MPI_Irecv')
    call that(SOURCE_OF(status) == previous .and. TAG_OF(status) == 1 .and. count == n, 'MPI_Irecv: the status')

    out = line_of(rank, 2)
    in = -1
    call MPI_Sendrecv(out, n, MPI_INTEGER, next, 2, in, n, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, status IERR)
    call that(all(in == line_of(previous, 2)) .and. SOURCE_OF(status) == previous, 'MPI_Sendrecv')
    both = line_of(rank, 3)
    call MPI_Sendrecv_replace(both, n, MPI_INTEGER, next, 3, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
    call that(all(both == line_of(previous, 3)), 'MPI_Sendrecv_replace')

    out = line_of(rank, 4)
    call MPI_Issend(out, n, MPI_INTEGER, next, 4, MPI_COMM_WORLD, sent IERR)
    call MPI_Probe(previous, MPI_ANY_TAG, MPI_COMM_WORLD, status IERR)
    call that(TAG_OF(status) == 4, 'MPI_Probe')
    call MPI_Iprobe(previous, 4, MPI_COMM_WORLD, flag, status IERR)
    call that(flag, 'MPI_Iprobe of what was probed')
    call MPI_Recv(in, n, MPI_INTEGER, previous, 4, MPI_COMM_WORLD, status IERR)
    call MPI_Wait(sent, MPI_STATUS_IGNORE IERR)
    call that(all(in == line_of(previous, 4)), 'MPI_Recv')

    out = line_of(rank, 5)
    call MPI_Isend(out, n, MPI_INTEGER, next, 5, MPI_COMM_WORLD, sent IERR)
    call MPI_Mprobe(previous, 5, MPI_COMM_WORLD, message, status IERR)
    call MPI_Mrecv(in, n, MPI_INTEGER, message, status IERR)
    call that(message == MPI_MESSAGE_NULL, 'MPI_Mrecv leaves a message')
    call MPI_Wait(sent, MPI_STATUS_IGNORE IERR)
    call that(all(in == line_of(previous, 5)) .and. SOURCE_OF(status) == previous, 'MPI_Mrecv')

    call MPI_Recv(in, n, MPI_INTEGER, MPI_PROC_NULL, 5, MPI_COMM_WORLD, status IERR)
    call that(SOURCE_OF(status) == MPI_PROC_NULL, 'MPI_Recv from nobody')
    call MPI_Send(out, n, MPI_INTEGER, MPI_PROC_NULL, 5, MPI_COMM_WORLD IERR)
  end subroutine

  subroutine persistent_requests()
    integer, asynchronous :: out(n), in(n)
    integer :: ierr, round
    REQUEST_T :: requests(2)
    STATUSES_T(statuses, 2)
    call MPI_Send_init(out, n, MPI_INTEGER, next, 6, MPI_COMM_WORLD, requests(1) IERR)
    call MPI_Recv_init(in, n, MPI_INTEGER, previous, 6, MPI_COMM_WORLD, requests(2) IERR)
    do round = 1, 3
      out = line_of(rank, round)
      if (round == 2) then
        call MPI_Start(requests(2) IERR)
        call MPI_Start(requests(1) IERR)
      else
        call MPI_Startall(2, requests IERR)
      end if
      call MPI_Waitall(2, requests, statuses IERR)
      call that(all(in == line_of(previous, round)) .and. SOURCE_OF_NTH(statuses, 2) == previous, 'persistent requests')
      call that(requests(1) /= MPI_REQUEST_NULL, 'a persistent request is gone')
    end do
    call MPI_Request_free(requests(1) IERR)
    call MPI_Request_free(requests(2) IERR)
    call that(requests(1) == MPI_REQUEST_NULL .and. requests(2) == MPI_REQUEST_NULL, 'MPI_Request_free')
  end subroutine

  subroutine windows()
    integer, asynchronous :: memory(n), line(n)
    integer(MPI_ADDRESS_KIND) :: address, told
    integer :: ierr, one, before, size
    logical :: flag
    WIN_T :: win
    GROUP_T :: group
    memory = -1
    line = line_of(rank, 7)
    call MPI_Win_create(memory, int(4 * n, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win IERR)
    call MPI_Get_address(memory, address IERR)
    call MPI_Win_get_attr(win, MPI_WIN_BASE, told, flag IERR)
    call that(flag .and. told == address, 'MPI_WIN_BASE')
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, told, flag IERR)
    call that(flag .and. told == 4 * n, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, told, flag IERR)
    call that(flag .and. told == 4, 'MPI_WIN_DISP_UNIT')
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, told, flag IERR)
    call that(flag .and. told == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
    call MPI_Win_get_group(win, group IERR)
    call MPI_Group_size(group, size IERR)
    call that(size == ranks, 'MPI_Win_get_group')
    call MPI_Group_free(group IERR)
    call MPI_Win_fence(0, win IERR)
    call MPI_Put(line, n, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, n, MPI_INTEGER, win IERR)
    call MPI_Win_fence(0, win IERR)
    call that(all(memory == line_of(previous, 7)), 'MPI_Put')
    line = -1
    call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win IERR)
    call MPI_Get(line, n - 10, MPI_INTEGER, next, 10_MPI_ADDRESS_KIND, n - 10, MPI_INTEGER, win IERR)
    call MPI_Win_flush(next, win IERR)
    call MPI_Win_unlock(next, win IERR)
    call that(line(1) == rank * 100003 + 7 * 17 + 11, 'MPI_Get')
    call MPI_Barrier(MPI_COMM_WORLD IERR)
    call MPI_Win_lock_all(0, win IERR)
    memory(1) = 0
    call MPI_Win_sync(win IERR)
    call MPI_Barrier(MPI_COMM_WORLD IERR)
    one = 1
    call MPI_Fetch_and_op(one, before, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, MPI_SUM, win IERR)
    call MPI_Win_flush(0, win IERR)
    call that(before >= 0 .and. before < 2 * ranks, 'MPI_Fetch_and_op')
    call MPI_Accumulate(one, 1, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, win IERR)
    call MPI_Win_unlock_all(win IERR)
    call MPI_Barrier(MPI_COMM_WORLD IERR)
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win IERR)
    if (rank == 0) call that(memory(1) == 2 * ranks, 'MPI_Accumulate')
    call MPI_Win_unlock(rank, win IERR)
    call MPI_Win_free(win IERR)
    call that(win == MPI_WIN_NULL, 'MPI_Win_free leaves a handle')
  end subroutine

  ! What windows say of themselves, and attributes of the program's own.
  subroutine attributes()
    integer(MPI_ADDRESS_KIND) :: value
#ifdef INTERFACE_F08
    type(c_ptr) :: base
#else
    integer(MPI_ADDRESS_KIND) :: base
#endif
    integer, asynchronous :: memory(n)
    integer :: ierr, key
    logical :: flag
    WIN_T :: win
    call MPI_Win_allocate(int(4 * n, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win IERR)
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag IERR)
    call that(flag .and. value == MPI_WIN_FLAVOR_ALLOCATE, 'the flavor of MPI_Win_allocate')
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag IERR)
    call that(flag .and. value == 4 * n, 'MPI_WIN_SIZE')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND IERR)
    call MPI_Win_get_attr(win, key, value, flag IERR)
    call that(.not. flag, 'an attribute that nobody has set')
    call MPI_Win_set_attr(win, key, -77_MPI_ADDRESS_KIND IERR)
    call MPI_Win_get_attr(win, key, value, flag IERR)
    call that(flag .and. value == -77, 'an attribute of the program')
    call MPI_Win_free(win IERR)
    call MPI_Win_create(memory, int(4 * n, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win IERR)
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag IERR)
    call that(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'the flavor of MPI_Win_create')
    call MPI_Win_free(win IERR)
  end subroutine

  subroutine on_error(comm, code)
    COMM_T :: comm
    integer :: code, ierr
    logical :: flag
    handled = handled + 1
    call that(comm == MPI_COMM_WORLD .and. code /= MPI_SUCCESS, 'what an error handler is told')
    call MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE IERR)
  end subroutine

  subroutine error_handlers()
    integer, asynchronous :: line(n)
    integer :: ierr, error
    ERRHANDLER_T :: handler
    TYPE_T :: never_committed
    call MPI_Comm_create_errhandler(on_error, handler IERR)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler IERR)
    call MPI_Errhandler_free(handler IERR)
    call MPI_Type_contiguous(2, MPI_INTEGER, never_committed IERR)
    handled = 0
    call MPI_Send(line, 10, never_committed, next, 4, MPI_COMM_WORLD, error)
    call that(handled == 1 .and. error /= MPI_SUCCESS, 'an error handler')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL IERR)
    call MPI_Type_free(never_committed IERR)
  end subroutine

  ! One collective, so that the job is known to be offloaded.
  subroutine a_reduction()
    integer, asynchronous :: mine(n), sum(n)
    integer :: ierr
    REQUEST_T :: request
    mine = rank
    call MPI_Iallreduce(mine, sum, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    call that(all(sum == ranks * (ranks - 1) / 2), 'MPI_Iallreduce')
    mine = merge(5, 0, rank == 0)
    call MPI_Ibcast(mine, n, MPI_INTEGER, 0, MPI_COMM_WORLD, request IERR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERR)
    call that(all(mine == 5), 'MPI_Ibcast')
  end subroutine
end module

program messages_and_windows
  use programs
  implicit none
  integer :: ierr, all_failures
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks IERR)
  next = modulo(rank + 1, ranks)
  previous = modulo(rank - 1, ranks)
  call messages()
  call persistent_requests()
  call windows()
  call attributes()
  call error_handlers()
  call a_reduction()
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (all_failures > 0) error stop 1
end program
