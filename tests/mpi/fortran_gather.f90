! fortran_gather.f90: MPIX_(I)allgather(v)_compute from Fortran.
!
! Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
module fortran_gather
  use fortran_work
  implicit none
  private
  public :: test_gather

  integer, parameter :: n = 1500
  integer :: ierror
  type(MPI_Request) :: request

contains

  subroutine test_gather
    call sections
    call in_place
    call unequal
    call typed
    call own
    call merged
    call nothing
    call pending
    call errors
    call gaps
    call bottom
    call many
  end subroutine

  ! Looks at what was gathered, and at what the callbacks have seen of it.
  subroutine check_blocks(gathered, displs, counts, w, what)
    real(c_double), intent(in) :: gathered(0:*)
    integer, intent(in) :: displs(0:), counts(0:)
    type(work), intent(in) :: w
    character(*), intent(in) :: what
    integer :: r

    call check(ierror == MPI_SUCCESS, what)
    call check(w%wrong == 0 .and. w%consumed == sum(counts), what//': the callbacks')
    if (counts(rank) > 0) call check(w%first == rank, what//': the own block first')
    do r = 0, ranks - 1
      call check(all(gathered(displs(r):displs(r) + counts(r) - 1) == values(r, 0, counts(r))), &
                 what//': the result')
    end do
  end subroutine

  subroutine check_equal(gathered, w, what)
    real(c_double), intent(in) :: gathered(*)
    type(work), intent(in) :: w
    character(*), intent(in) :: what
    integer :: r

    call check_blocks(gathered, [(r * n, r=0, ranks - 1)], [(n, r=1, ranks)], w, what)
  end subroutine

  ! Contiguous ones, whose dimensions of length 1 have strides of the whole; an element; all.
  subroutine sections
    type(work), target :: w
    real(c_double), asynchronous :: mine(n, 2, 2), gathered(n, ranks)

    mine = -1
    mine(:, 2, 2) = values(rank, 0, n)
    gathered = -1
    w = work_of(gathers)
    call MPIX_Allgather_compute(mine(:, 2:2, 2:2), n, MPI_DOUBLE_PRECISION, gathered, n, &
                                MPI_DOUBLE_PRECISION, consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check_equal(gathered, w, 'allgather')

    gathered = -1
    w = work_of(gathers)
    w%row = 7
    call MPIX_Iallgather_compute(mine(1, 2, 2), n, MPI_DOUBLE_PRECISION, gathered(1:n, :), n, &
                                 MPI_DOUBLE_PRECISION, consume, c_loc(w), MPIX_Flash_hints(pieces=4, row=7), &
                                 comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_equal(gathered, w, 'iallgather')
    call check(w%calls == 4 * ranks, 'iallgather: four pieces to a block')
  end subroutine

  subroutine in_place
    type(work), target :: w
    real(c_double), asynchronous :: gathered(n, 0:ranks - 1)

    gathered = -1
    gathered(:, rank) = values(rank, 0, n)
    w = work_of(gathers)
    call MPIX_Iallgather_compute(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, n, MPI_DOUBLE_PRECISION, &
                                 consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_equal(gathered, w, 'iallgather, MPI_IN_PLACE')

    w = work_of(gathers)
    call MPIX_Allgather_compute(gathered, n, MPI_DOUBLE_PRECISION, MPI_IN_PLACE, n, MPI_DOUBLE_PRECISION, &
                                consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == MPI_ERR_BUFFER, 'allgather to MPI_IN_PLACE')
  end subroutine

  ! Blocks of unequal length, of none too, apart from each other.
  subroutine unequal
    type(work), target :: w
    integer, asynchronous :: counts(0:ranks - 1), displs(0:ranks - 1)
    real(c_double), allocatable, asynchronous :: gathered(:), mine(:)
    integer :: r

    counts = [(1000 * mod(r + 1, 3), r=0, ranks - 1)]
    displs = [(2500 * (ranks - 1 - r), r=0, ranks - 1)]
    allocate (gathered(0:2500 * ranks), mine(counts(rank)))
    mine = values(rank, 0, counts(rank))
    gathered = -1
    w = work_of(gathers)
    call MPIX_Iallgatherv_compute(mine, counts(rank), MPI_DOUBLE_PRECISION, gathered, counts, displs, &
                                  MPI_DOUBLE_PRECISION, consume, c_loc(w), MPIX_Flash_hints(pieces=3), comm, &
                                  request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_blocks(gathered, displs, counts, w, 'iallgatherv')
    call check(all(gathered(2000:2499) == -1), 'iallgatherv: between blocks')

    gathered = -1
    gathered(displs(rank):displs(rank) + counts(rank) - 1) = mine
    w = work_of(gathers)
    call MPIX_Allgatherv_compute(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, counts, displs, &
                                 MPI_DOUBLE_PRECISION, consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check_blocks(gathered, displs, counts, w, 'allgatherv, MPI_IN_PLACE')
  end subroutine

  ! The first row of a matrix, by a type that mpi_f08 has made: each third number.
  subroutine typed
    type(work), target :: w
    real(c_double), asynchronous :: mine(n), gathered(3, n * ranks)
    type(MPI_Datatype) :: third

    call MPI_Type_create_resized(MPI_DOUBLE_PRECISION, 0_MPI_ADDRESS_KIND, 24_MPI_ADDRESS_KIND, third)
    call MPI_Type_commit(third)
    mine = values(rank, 0, n)
    gathered = -1
    w = work_of(gathers)
    w%datatype = third
    w%width = 3
    call MPIX_Iallgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, third, consume, c_loc(w), &
                                 MPIX_Flash_hints(pieces=2), comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_equal(gathered(1, :), w, 'iallgather of a derived type')
    call check(all(gathered(2:, :) == -1), 'iallgather of a derived type: its gaps')
    call MPI_Type_free(third)
  end subroutine

  ! The own block is produced, by a function in the hints, and nothing or something consumes.
  subroutine own
    type(work), target :: w, produced
    type(MPIX_Flash_hints) :: hints
    real(c_double), asynchronous :: mine(n), gathered(n, ranks)

    hints%own = c_funloc(produce)
    hints%own_arg = c_loc(produced)
    hints%pieces = 5
    mine = -1
    gathered = -1
    w = work_of(gathers)
    produced = work_of(gathers)
    call MPIX_Iallgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, consume, &
                                 c_loc(w), hints, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_equal(gathered, w, 'iallgather of what is produced')
    call check(produced%produced == n .and. produced%wrong == 0 .and. produced%last == rank, &
               'iallgather: what produced')

    mine = -1
    gathered = -1
    call MPIX_Allgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, &
                                MPIX_FLASH_FN_NULL, c_null_ptr, hints, comm, ierror)
    call check_equal(gathered, w, 'allgather of what is produced, MPIX_FLASH_FN_NULL')

    call MPIX_Allgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, &
                                MPIX_FLASH_FN_NULL, c_null_ptr, MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == MPI_ERR_ARG, 'allgather without any function')
  end subroutine

  ! One callback for all blocks.
  subroutine merged
    type(work), target :: w
    real(c_double), asynchronous :: mine(n), gathered(n, ranks)

    mine = values(rank, 0, n)
    gathered = -1
    w = work_of(gathers)
    call MPIX_Iallgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, &
                                 consume_all, c_loc(w), MPIX_Flash_hints(merge=1), comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(ierror == MPI_SUCCESS .and. w%calls == 1 .and. w%wrong == 0, 'iallgather, merged')
  end subroutine

  integer(c_int) function consume_all(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    type(work), pointer :: w
    real(c_double), pointer :: x(:, :)
    integer :: r

    consume_all = MPI_SUCCESS
    call look_at_all(block, arg, n, w, x)
    if (.not. associated(x)) return
    do r = 0, ranks - 1
      if (any(x(:, r + 1) /= values(r, 0, n))) w%wrong = w%wrong + 1
    end do
  end function

  subroutine nothing
    type(work), target :: w
    real(c_double), asynchronous :: none(0), gathered(1)

    gathered = -1
    w = work_of(gathers)
    call MPIX_Iallgather_compute(none, 0, MPI_DOUBLE_PRECISION, gathered, 0, MPI_DOUBLE_PRECISION, consume, &
                                 c_loc(w), MPIX_FLASH_HINTS_INIT, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(ierror == MPI_SUCCESS .and. w%calls == 0 .and. gathered(1) == -1, 'iallgather of nothing')
    call MPIX_Allgather_compute(MPI_BOTTOM, 0, MPI_DOUBLE_PRECISION, MPI_BOTTOM, 0, MPI_DOUBLE_PRECISION, &
                                consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == MPI_SUCCESS .and. w%calls == 0, 'allgather of nothing, MPI_BOTTOM')
  end subroutine

  subroutine pending
    type(work), target :: w
    real(c_double), asynchronous :: mine(n), gathered(n, ranks)

    mine = values(rank, 0, n)
    gathered = -1
    w = work_of(gathers)
    call MPIX_Iallgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, &
                                 consume_later, c_loc(w), MPIX_Flash_hints(pieces=6), comm, request)
    call complete_pending(w, request, MPI_SUCCESS, ierror)
    call check_equal(gathered, w, 'iallgather, pending')
    call check(w%pending == 0 .and. w%calls == 6 * ranks, 'iallgather: all that was pending')

    w = work_of(gathers)
    call MPIX_Iallgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, &
                                 consume_later, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, request)
    call complete_pending(w, request, MPI_ERR_TOPOLOGY, ierror)
    call check(ierror == MPI_ERR_TOPOLOGY, 'iallgather, pending, that failed')
    call MPIX_Flash_complete(MPIX_Flash_handle(), MPI_SUCCESS, ierror)
    call check(ierror == MPI_ERR_ARG, 'complete what is nothing')
  end subroutine

  ! A callback's error is its own rank's.
  subroutine errors
    type(work), target :: w
    real(c_double), asynchronous :: mine(n), gathered(n, ranks)
    integer :: right

    right = merge(MPI_ERR_TOPOLOGY, MPI_SUCCESS, rank == 0)
    mine = values(rank, 0, n)
    w = work_of(gathers)
    w%fails_with = right
    call MPIX_Allgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, consume, &
                                c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == right, 'allgather: an error of a callback')
    call check(w%calls == merge(1, ranks, rank == 0), 'allgather: no callback after an error')
    call MPIX_Iallgather_compute(mine, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, consume, &
                                 c_loc(w), MPIX_FLASH_HINTS_INIT, comm, request, ierror)
    call check(ierror == MPI_SUCCESS, 'iallgather: an error to come')
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(ierror == right, 'iallgather: an error of a callback')

    call MPIX_Iallgather_compute(mine, -1, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, consume, &
                                 c_loc(w), MPIX_FLASH_HINTS_INIT, comm, request, ierror)
    call check(ierror == MPI_ERR_COUNT .and. request == MPI_REQUEST_NULL, 'iallgather: a negative count')
    call MPIX_Allgather_compute(mine, n, MPI_DATATYPE_NULL, gathered, n, MPI_DOUBLE_PRECISION, consume, &
                                c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == MPI_ERR_TYPE, 'allgather: no type')
  end subroutine

  ! Refused, and not copied.
  subroutine gaps
    type(work), target :: w
    real(c_double), asynchronous :: mine(n, 2), gathered(2, n, ranks)
    integer, asynchronous :: counts(2, ranks)

    mine = 0
    gathered = -1
    counts = 1
    w = work_of(gathers)
    call MPIX_Iallgather_compute(mine(:, 1), n, MPI_DOUBLE_PRECISION, gathered(1, :, :), n, &
                                 MPI_DOUBLE_PRECISION, consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, &
                                 request, ierror)
    call check(ierror == MPI_ERR_BUFFER .and. request == MPI_REQUEST_NULL, 'a row as receive buffer')
    call MPIX_Allgather_compute(mine(n:1:-1, 1), n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, &
                                consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == MPI_ERR_BUFFER, 'a send buffer backwards')
    call MPIX_Allgather_compute(mine(1:n - 1, :), n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, &
                                consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == MPI_ERR_BUFFER, 'columns that are cut')
    if (ranks > 1) then
      call MPIX_Allgatherv_compute(mine, 1, MPI_DOUBLE_PRECISION, gathered, counts(1, :), counts(:, 1), &
                                   MPI_DOUBLE_PRECISION, consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
      call check(ierror == MPI_ERR_ARG, 'counts with gaps')
    end if
    call check(w%calls == 0 .and. all(gathered == -1), 'nothing of what has gaps')
  end subroutine

  ! C's MPI_BOTTOM is no buffer, which a ring says.
  subroutine bottom
    type(work), target :: w
    real(c_double), asynchronous :: gathered(n, ranks)
    logical :: active

    call MPIX_Flash_active(comm, active)
    if (.not. active) return
    w = work_of(gathers)
    call MPIX_Allgather_compute(MPI_BOTTOM, n, MPI_DOUBLE_PRECISION, gathered, n, MPI_DOUBLE_PRECISION, &
                                consume, c_loc(w), MPIX_FLASH_HINTS_INIT, comm, ierror)
    call check(ierror == MPI_ERR_BUFFER, 'MPI_BOTTOM')
  end subroutine

  ! Fortran's numbers of requests are given back.
  subroutine many
    type(work), target :: w
    real(c_double), asynchronous :: mine(4), gathered(4, ranks)
    integer :: k, first

    mine = values(rank, 0, 4)
    first = -1
    do k = 1, 200
      w = work_of(gathers)
      call MPIX_Iallgather_compute(mine, 4, MPI_DOUBLE_PRECISION, gathered, 4, MPI_DOUBLE_PRECISION, consume, &
                                   c_loc(w), MPIX_FLASH_HINTS_INIT, comm, request)
      if (k == 1) first = request%MPI_VAL
      call check(abs(request%MPI_VAL - first) < 20, 'iallgather again and again: the number of the request')
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
      call check(ierror == MPI_SUCCESS .and. w%consumed == 4 * ranks, 'iallgather again and again')
    end do
  end subroutine
end module
