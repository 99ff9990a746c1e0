! fortran_reduce.f90: MPIX_(I)reduce_scatter(_block)_compute and MPIX_(I)allreduce_compute from Fortran.
!
! Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
module fortran_reduce
  use fortran_work
  implicit none
  private
  public :: test_reduce

  integer, parameter :: n = 2100
  integer :: ierror
  type(MPI_Request) :: request
  type(work), target :: p, c

contains

  subroutine test_reduce
    call equal
    call unequal
    call own
    call merged
    call vector
    call users
    call halves
    call errors
  end subroutine

  subroutine begin(kind)
    integer, intent(in) :: kind

    p = work_of(kind)
    c = work_of(kind)
  end subroutine

  subroutine check_produced(count, what)
    integer, intent(in) :: count
    character(*), intent(in) :: what

    call check(ierror == MPI_SUCCESS, what)
    call check(p%wrong == 0 .and. p%produced == count, what//': what was produced')
  end subroutine

  subroutine equal
    real(c_double), asynchronous :: summed(n)

    summed = -1
    call begin(scatters)
    call MPIX_Reduce_scatter_block_compute(produce, c_loc(p), MPIX_FLASH_HINTS_INIT, summed, n, &
                                           MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierror)
    call check_produced(n * ranks, 'reduce_scatter_block')
    call check(all(summed == totals(rank, n)), 'reduce_scatter_block: the result')

    summed = -1
    call begin(scatters)
    p%row = 11
    call MPIX_Ireduce_scatter_block_compute(produce_early, c_loc(p), MPIX_Flash_hints(pieces=3, row=11), &
                                            summed, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_produced(n * ranks, 'ireduce_scatter_block, pending')
    call check(p%calls == 3 * ranks .and. p%last == rank, 'ireduce_scatter_block: its pieces')
    call check(all(summed == totals(rank, n)), 'ireduce_scatter_block: the result')

    call begin(scatters)
    call MPIX_Ireduce_scatter_block_compute(produce, c_loc(p), MPIX_FLASH_HINTS_INIT, summed, 0, &
                                            MPI_DOUBLE_PRECISION, MPI_SUM, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_produced(0, 'ireduce_scatter_block of nothing')
  end subroutine

  subroutine unequal
    integer, asynchronous :: counts(0:ranks - 1)
    real(c_double), asynchronous :: summed(3 * n)
    integer :: r, own

    counts = [(700 * mod(r + 2, 3), r=0, ranks - 1)]
    own = counts(rank)
    summed = -1
    call begin(scatters)
    call MPIX_Ireduce_scatter_compute(produce, c_loc(p), MPIX_Flash_hints(pieces=2), summed, counts, &
                                      MPI_DOUBLE_PRECISION, MPI_SUM, comm, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_produced(sum(counts), 'ireduce_scatter')
    call check(all(summed(:own) == totals(rank, own)) .and. all(summed(own + 1:) == -1), &
               'ireduce_scatter: the result')

    summed = -1
    call begin(scatters)
    call MPIX_Reduce_scatter_compute(produce, c_loc(p), MPIX_FLASH_HINTS_INIT, summed, counts, &
                                     MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierror)
    call check_produced(sum(counts), 'reduce_scatter')
    call check(all(summed(:own) == totals(rank, own)) .and. all(summed(own + 1:) == -1), &
               'reduce_scatter: the result')
  end subroutine

  ! The own sums are finished by a function in the hints.
  subroutine own
    type(MPIX_Flash_hints) :: hints
    real(c_double), asynchronous :: summed(n)

    summed = -1
    call begin(scatters)
    hints = MPIX_FLASH_HINTS_INIT
    hints%own = c_funloc(finish)
    hints%own_arg = c_loc(c)
    hints%pieces = 4
    call MPIX_Reduce_scatter_block_compute(produce, c_loc(p), hints, summed, n, MPI_DOUBLE_PRECISION, MPI_SUM, &
                                           comm, ierror)
    call check_produced(n * ranks, 'reduce_scatter_block and more')
    call check(c%wrong == 0 .and. c%consumed == n .and. all(summed == 2 * totals(rank, n)), &
               'reduce_scatter_block and more: the result')
  end subroutine

  ! One callback for all blocks.
  subroutine merged
    real(c_double), asynchronous :: summed(n)

    summed = -1
    call begin(scatters)
    call MPIX_Ireduce_scatter_block_compute(produce_all, c_loc(p), MPIX_Flash_hints(merge=1), summed, n, &
                                            MPI_DOUBLE_PRECISION, MPI_SUM, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check_produced(n * ranks, 'ireduce_scatter_block, merged')
    call check(p%calls == 1 .and. all(summed == totals(rank, n)), 'ireduce_scatter_block, merged: the result')
  end subroutine

  integer(c_int) function produce_all(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    type(work), pointer :: w
    real(c_double), pointer :: x(:, :)
    integer :: r

    produce_all = MPI_SUCCESS
    call look_at_all(block, arg, n, w, x)
    if (.not. associated(x)) return
    do r = 0, ranks - 1
      x(:, r + 1) = values(rank, r, n)
    end do
    w%produced = w%produced + int(block%count)
  end function

  subroutine vector
    real(c_double), asynchronous :: summed(n)

    summed = -1
    call begin(reduces)
    call MPIX_Allreduce_compute(produce, c_loc(p), consume, c_loc(c), MPIX_FLASH_HINTS_INIT, summed, n, &
                                MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierror)
    call check_produced(n, 'allreduce')
    call check(c%wrong == 0 .and. c%consumed == n .and. all(summed == totals(0, n)), 'allreduce: the result')

    summed = -1
    call begin(reduces)
    call MPIX_Iallreduce_compute(produce_early, c_loc(p), consume_later, c_loc(c), MPIX_Flash_hints(pieces=3), &
                                 summed, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, request)
    call complete_pending(c, request, MPI_SUCCESS, ierror)
    call check_produced(n, 'iallreduce, pending')
    call check(c%wrong == 0 .and. c%consumed == n .and. all(summed == totals(0, n)), 'iallreduce: the result')

    summed = -1
    call begin(reduces)
    call MPIX_Allreduce_compute(produce, c_loc(p), MPIX_FLASH_FN_NULL, c_null_ptr, MPIX_FLASH_HINTS_INIT, &
                                summed, n, MPI_DOUBLE_PRECISION, MPI_MAX, comm, ierror)
    call check_produced(n, 'allreduce without a consumer')
    call check(all(summed == values(ranks - 1, 0, n)), 'allreduce without a consumer: the result')
  end subroutine

  ! An operation of the program's own, in Fortran.
  subroutine users
    real(c_double), asynchronous :: summed(n)
    type(MPI_Op) :: op

    call MPI_Op_create(add, .true., op)
    summed = -1
    call begin(scatters)
    call MPIX_Reduce_scatter_block_compute(produce, c_loc(p), MPIX_FLASH_HINTS_INIT, summed, n, &
                                           MPI_DOUBLE_PRECISION, op, comm, ierror)
    call check_produced(n * ranks, 'reduce_scatter_block by an operation of the program')
    call check(all(summed == totals(rank, n)), 'reduce_scatter_block by an operation of the program: the result')
    call MPI_Op_free(op)
  end subroutine

  subroutine add(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    real(c_double), pointer :: a(:), b(:)

    call check(datatype == MPI_DOUBLE_PRECISION, 'the type of an operation of the program')
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = a + b
  end subroutine

  ! Ones of 16 bits.
  subroutine halves
    integer(c_int16_t), asynchronous :: summed(n)
    integer(c_int16_t) :: right
    type(MPI_Datatype) :: bf16
    integer :: size

    call MPIX_Flash_type(MPIX_FLASH_BF16, bf16, ierror)
    call check(ierror == MPI_SUCCESS, 'bfloat16')
    call MPI_Type_size(bf16, size)
    call check(size == 2, 'bfloat16: its size')
    summed = -1
    p = work_of(reduces)
    p%datatype = bf16
    call MPIX_Allreduce_compute(produce_ones, c_loc(p), MPIX_FLASH_FN_NULL, c_null_ptr, MPIX_FLASH_HINTS_INIT, &
                                summed, n, bf16, MPI_SUM, comm, ierror)
    call check_produced(n, 'allreduce of bfloat16')
    ! The upper half of single precision.
    right = int(shiftr(transfer(real(ranks, c_float), 0_c_int32_t), 16), c_int16_t)
    call check(all(summed == right), 'allreduce of bfloat16: the result')
    call MPIX_Flash_type(99, bf16, ierror)
    call check(ierror == MPI_ERR_ARG, 'a type that is none')
  end subroutine

  integer(c_int) function produce_ones(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    type(work), pointer :: w
    integer(c_int16_t), pointer :: x(:)

    call c_f_pointer(arg, w)
    call c_f_pointer(block%data, x, [block%count])
    call look(block, w)
    x = int(z'3f80', c_int16_t)
    w%produced = w%produced + int(block%count)
    produce_ones = MPI_SUCCESS
  end function

  ! A producer's error is its own rank's, and all others' that miss something.
  subroutine errors
    real(c_double), asynchronous :: summed(n)

    call begin(scatters)
    if (rank == 0) p%fails_with = MPI_ERR_TOPOLOGY
    call MPIX_Ireduce_scatter_block_compute(produce, c_loc(p), MPIX_FLASH_HINTS_INIT, summed, n, &
                                            MPI_DOUBLE_PRECISION, MPI_SUM, comm, request, ierror)
    if (ierror == MPI_SUCCESS) call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(ierror == merge(MPI_ERR_TOPOLOGY, MPI_ERR_OTHER, rank == 0), &
               'ireduce_scatter_block: an error of a producer')
    call MPIX_Reduce_scatter_block_compute(MPIX_FLASH_FN_NULL, c_null_ptr, MPIX_FLASH_HINTS_INIT, summed, n, &
                                           MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierror)
    call check(ierror == MPI_ERR_ARG, 'reduce_scatter_block without a producer')
    call MPIX_Allreduce_compute(produce, c_loc(p), MPIX_FLASH_FN_NULL, c_null_ptr, MPIX_FLASH_HINTS_INIT, &
                                summed, n, MPI_DOUBLE_PRECISION, MPI_OP_NULL, comm, ierror)
    call check(ierror == MPI_ERR_OP, 'allreduce without an operation')
  end subroutine
end module
