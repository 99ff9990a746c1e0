! fortran_work.f90: what the parts of test_fortran share: data that can be told from all other, callbacks
! that write it and look at it, and checks.
!
! Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
module fortran_work
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08
  use mpix_flash_f08
  implicit none

  integer, parameter :: gathers = 1, scatters = 2, reduces = 3, exchanges = 4

  type(MPI_Comm) :: comm ! returns errors
  integer :: rank, ranks
  integer :: failures = 0

  ! What one operation's callbacks do, and have seen. Of each element `width` numbers are in memory,
  ! the first of which is data.
  type :: work
    integer :: kind = gathers
    integer :: width = 1
    integer :: row = 1
    type(MPI_Datatype) :: datatype
    integer :: fails_with = MPI_SUCCESS
    integer :: produced = 0, consumed = 0, wrong = 0 ! elements
    integer :: calls = 0, first = -1, last = -1      ! the ranks of the first and the last block
    integer :: pending = 0
    type(MPIX_Flash_handle) :: handles(64)
  end type

contains

  subroutine check(right, what)
    logical, intent(in) :: right
    character(*), intent(in) :: what

    if (right) return
    failures = failures + 1
    write (error_unit, '(a, i0, a, i0, 2a)') 'rank ', rank, ' of ', ranks, ': ', what
  end subroutine

  type(work) function work_of(kind)
    integer, intent(in) :: kind

    work_of%kind = kind
    work_of%datatype = MPI_DOUBLE_PRECISION
  end function

  ! What `from` has for `to`, as its element number `index`, from 0 on.
  elemental real(c_double) function value(from, to, index)
    integer, intent(in) :: from, to
    integer(MPI_COUNT_KIND), intent(in) :: index

    value = 10000 * from + 1000 * to + real(index, c_double)
  end function

  ! The same, added up.
  elemental real(c_double) function total(to, index)
    integer, intent(in) :: to
    integer(MPI_COUNT_KIND), intent(in) :: index
    integer :: from

    total = sum([(value(from, to, index), from=0, ranks - 1)])
  end function

  ! Whole blocks.
  function values(from, to, length)
    integer, intent(in) :: from, to, length
    real(c_double) :: values(length)
    integer(MPI_COUNT_KIND) :: k

    values = [(value(from, to, k), k=0, length - 1)]
  end function

  function totals(to, length)
    integer, intent(in) :: to, length
    real(c_double) :: totals(length)
    integer(MPI_COUNT_KIND) :: k

    totals = [(total(to, k), k=0, length - 1)]
  end function

  ! What a piece is: in the block, cut at rows, of the type that the call was given.
  subroutine look(block, w)
    type(MPIX_Flash_block), intent(in) :: block
    type(work), intent(inout) :: w
    type(MPI_Datatype) :: datatype
    logical :: right

    datatype = MPIX_Flash_block_datatype(block)
    right = block%rank >= 0 .and. block%rank < ranks .and. block%piece >= 0 .and. &
            block%piece < block%pieces .and. block%count > 0 .and. &
            mod(block%offset, int(w%row, MPI_COUNT_KIND)) == 0 .and. block%on_stream == 0 .and. &
            datatype == w%datatype
    if (.not. right) w%wrong = w%wrong + 1
    if (w%calls == 0) w%first = block%rank
    w%last = block%rank
    w%calls = w%calls + 1
  end subroutine

  ! The same of all ranks' blocks at a time, each so long: their columns; null if they are not that.
  subroutine look_at_all(block, arg, length, w, x)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    integer, intent(in) :: length
    type(work), pointer, intent(out) :: w
    real(c_double), pointer, intent(out) :: x(:, :)

    call c_f_pointer(arg, w)
    call look(block, w)
    nullify (x)
    if (block%rank == 0 .and. block%ranks == ranks .and. block%count == length * ranks) then
      call c_f_pointer(block%data, x, [length, ranks])
    else
      w%wrong = w%wrong + 1
    end if
  end subroutine

  integer(c_int) function produce(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    type(work), pointer :: w
    real(c_double), pointer :: x(:)
    integer(MPI_COUNT_KIND) :: k

    call c_f_pointer(arg, w)
    call c_f_pointer(block%data, x, [block%count])
    call look(block, w)
    do k = 1, block%count
      select case (w%kind)
      case (gathers)
        x(k) = value(rank, 0, block%offset + k - 1)
      case (reduces)
        x(k) = value(rank, 0, block%displ + block%offset + k - 1)
      case default
        x(k) = value(rank, block%rank, block%offset + k - 1)
      end select
    end do
    w%produced = w%produced + int(block%count)
    produce = w%fails_with
  end function

  integer(c_int) function consume(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    type(work), pointer :: w
    real(c_double), pointer :: x(:, :)
    real(c_double) :: right
    integer(MPI_COUNT_KIND) :: k

    call c_f_pointer(arg, w)
    call c_f_pointer(block%data, x, [int(w%width, MPI_COUNT_KIND), block%count])
    call look(block, w)
    do k = 1, block%count
      select case (w%kind)
      case (gathers)
        right = value(block%rank, 0, block%offset + k - 1)
      case (scatters)
        right = total(block%rank, block%offset + k - 1)
      case (reduces)
        right = total(0, block%displ + block%offset + k - 1)
      case default
        right = value(block%rank, rank, block%offset + k - 1)
      end select
      if (x(1, k) /= right) w%wrong = w%wrong + 1
    end do
    w%consumed = w%consumed + int(block%count)
    consume = w%fails_with
  end function

  ! A reduce-scatter's last word on its sums: looks at them, and doubles them.
  integer(c_int) function finish(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    real(c_double), pointer :: x(:)

    finish = consume(block, arg)
    call c_f_pointer(block%data, x, [block%count])
    x = 2 * x
  end function

  ! Done before it has returned.
  integer(c_int) function produce_early(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    integer :: ierror

    call MPIX_Flash_complete(block%handle, produce(block, arg), ierror)
    call check(ierror == MPI_SUCCESS, 'completed inside the callback')
    produce_early = MPIX_FLASH_PENDING
  end function

  ! Done when complete_pending() says so.
  integer(c_int) function consume_later(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    type(work), pointer :: w

    consume_later = consume(block, arg)
    call c_f_pointer(arg, w)
    w%pending = w%pending + 1
    w%handles(w%pending) = block%handle
    consume_later = MPIX_FLASH_PENDING
  end function

  ! Completes the pieces of a request as they come, the latest one first.
  subroutine complete_pending(w, request, error, ierror)
    type(work), intent(inout), target :: w
    type(MPI_Request), intent(inout) :: request
    integer, intent(in) :: error
    integer, intent(out) :: ierror
    logical :: done

    do
      call MPI_Test(request, done, MPI_STATUS_IGNORE, ierror)
      if (done .or. ierror /= MPI_SUCCESS) exit
      if (w%pending > 0) then
        w%pending = w%pending - 1
        call MPIX_Flash_complete(w%handles(w%pending + 1), error)
      end if
    end do
  end subroutine
end module
