! fortran_exchange.f90: MPIX_(I)alltoall(v)_compute from Fortran.
!
! Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
module fortran_exchange
  use fortran_work
  implicit none
  private
  public :: test_exchange

  integer, parameter :: n = 900
  integer :: ierror
  type(MPI_Request) :: request
  type(work), target :: p, c

contains

  subroutine test_exchange
    call equal
    call unequal
    call errors
  end subroutine

  ! The columns of what has come, and those who looked.
  subroutine check_columns(received, produced, consumed, what)
    real(c_double), intent(in) :: received(n, 0:ranks - 1)
    integer, intent(in) :: produced, consumed
    character(*), intent(in) :: what
    integer :: r

    call check(ierror == MPI_SUCCESS, what)
    call check(p%wrong == 0 .and. p%produced == produced, what//': what was produced')
    call check(c%wrong == 0 .and. c%consumed == consumed, what//': what was consumed')
    do r = 0, ranks - 1
      call check(all(received(:, r) == values(r, rank, n)), what//': the result')
    end do
  end subroutine

  subroutine equal
    real(c_double), asynchronous :: sent(n, 0:ranks - 1), received(n, 0:ranks - 1)
    integer :: r

    sent = -1
    received = -1
    p = work_of(exchanges)
    c = work_of(exchanges)
    call MPIX_Alltoall_compute(sent, n, MPI_DOUBLE_PRECISION, received, n, MPI_DOUBLE_PRECISION, produce, &
                               c_loc(p), consume, c_loc(c), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check_columns(received, n * ranks, n * ranks, 'alltoall')

    sent = -1
    received = -1
    p = work_of(exchanges)
    c = work_of(exchanges)
    call MPIX_Ialltoall_compute(sent, n, MPI_DOUBLE_PRECISION, received, n, MPI_DOUBLE_PRECISION, &
                                produce_early, c_loc(p), consume_later, c_loc(c), MPIX_Flash_hints(pieces=3), &
                                comm, request)
    call complete_pending(c, request, MPI_SUCCESS, ierror)
    call check_columns(received, n * ranks, n * ranks, 'ialltoall, pending')
    call check(p%calls == 3 * ranks .and. p%last == rank .and. c%first == rank, 'ialltoall: the order')

    do r = 0, ranks - 1
      sent(:, r) = values(rank, r, n)
    end do
    received = -1
    p = work_of(exchanges)
    c = work_of(exchanges)
    call MPIX_Ialltoall_compute(sent, n, MPI_DOUBLE_PRECISION, received, n, MPI_DOUBLE_PRECISION, &
                                MPIX_FLASH_FN_NULL, c_null_ptr, consume, c_loc(c), MPIX_FLASH_HINTS_INIT, comm, &
                                request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_columns(received, 0, n * ranks, 'ialltoall of what is there')
  end subroutine

  ! As many elements as the two ranks' numbers say, differently each way; what comes lies backwards.
  subroutine unequal
    integer, asynchronous :: sendcounts(0:ranks - 1), sdispls(0:ranks - 1)
    integer, asynchronous :: recvcounts(0:ranks - 1), rdispls(0:ranks - 1)
    real(c_double), asynchronous :: sent(n * ranks), received(n * ranks)
    integer :: r, form

    sendcounts = [(50 * (2 * rank + r), r=0, ranks - 1)]
    recvcounts = [(50 * (2 * r + rank), r=0, ranks - 1)]
    sdispls = [(n * r, r=0, ranks - 1)]
    rdispls = [(n * (ranks - 1 - r), r=0, ranks - 1)]
    do form = 1, 2
      sent = -1
      received = -1
      p = work_of(exchanges)
      c = work_of(exchanges)
      if (form == 1) then
        call MPIX_Alltoallv_compute(sent, sendcounts, sdispls, MPI_DOUBLE_PRECISION, received, recvcounts, &
                                    rdispls, MPI_DOUBLE_PRECISION, produce, c_loc(p), consume, c_loc(c), &
                                    MPIX_FLASH_HINTS_INIT, comm, ierror)
      else
        call MPIX_Ialltoallv_compute(sent, sendcounts, sdispls, MPI_DOUBLE_PRECISION, received, recvcounts, &
                                     rdispls, MPI_DOUBLE_PRECISION, produce, c_loc(p), consume, c_loc(c), &
                                     MPIX_Flash_hints(pieces=2), comm, request)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
      end if
      call check(ierror == MPI_SUCCESS .and. p%wrong == 0 .and. c%wrong == 0, 'alltoallv')
      call check(p%produced == sum(sendcounts) .and. c%consumed == sum(recvcounts), 'alltoallv: its callbacks')
      do r = 0, ranks - 1
        call check(all(received(rdispls(r) + 1:rdispls(r) + recvcounts(r)) == values(r, rank, recvcounts(r))), &
                   'alltoallv: the result')
        call check(all(received(rdispls(r) + recvcounts(r) + 1:rdispls(r) + n) == -1), 'alltoallv: between blocks')
      end do
    end do
  end subroutine

  subroutine errors
    real(c_double), asynchronous :: sent(n, ranks), received(n, ranks)

    sent = 0
    c = work_of(exchanges)
    c%fails_with = merge(MPI_ERR_TOPOLOGY, MPI_SUCCESS, rank == ranks - 1)
    call MPIX_Alltoall_compute(sent, n, MPI_DOUBLE_PRECISION, received, n, MPI_DOUBLE_PRECISION, &
                               MPIX_FLASH_FN_NULL, c_null_ptr, consume, c_loc(c), MPIX_FLASH_HINTS_INIT, comm, &
                               ierror)
    call check(ierror == c%fails_with, 'alltoall: an error of a consumer')
    call MPIX_Alltoall_compute(sent, n, MPI_DOUBLE_PRECISION, received, n, MPI_DOUBLE_PRECISION, &
                               MPIX_FLASH_FN_NULL, c_null_ptr, MPIX_FLASH_FN_NULL, c_null_ptr, &
                               MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == MPI_ERR_ARG, 'alltoall without any function')
    call MPIX_Ialltoall_compute(MPI_IN_PLACE, n, MPI_DOUBLE_PRECISION, received, n, MPI_DOUBLE_PRECISION, &
                                produce, c_loc(c), consume, c_loc(c), MPIX_FLASH_HINTS_INIT, comm, request, ierror)
    call check(ierror == MPI_ERR_BUFFER .and. request == MPI_REQUEST_NULL, 'ialltoall, MPI_IN_PLACE')
  end subroutine
end module
