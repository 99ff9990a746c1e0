! gather_gemm.f90: C = A B in Fortran: all ranks have A, each has some columns of B, and all want C.
!
!   mpirun -n 4 --mca coll flash gather_gemm
!
! The columns are gathered, and multiplied as they arrive: those of one rank while those of the next
! are on their way.
!
! Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
module products
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use mpix_flash_f08
  implicit none

  integer, parameter :: rows = 48, inner = 64, columns = 60 ! A is rows x inner; a rank has `columns`

  type :: product_t
    real(c_double), pointer :: a(:, :), c(:, :)
  end type

contains

  ! One piece of one rank's block: whole columns of B, since hints%row is the length of one.
  integer(c_int) function multiply(block, arg) bind(C)
    type(MPIX_Flash_block), intent(in) :: block
    type(c_ptr), value :: arg
    type(product_t), pointer :: p
    real(c_double), pointer :: b(:, :)
    integer :: before, here

    call c_f_pointer(arg, p)
    before = int((block%displ + block%offset) / inner)
    here = int(block%count / inner)
    call c_f_pointer(block%data, b, [inner, here])
    p%c(:, before + 1:before + here) = matmul(p%a, b)
    multiply = MPI_SUCCESS
  end function
end module

program gather_gemm
  use products
  implicit none
  type(product_t), target :: p
  type(MPIX_Flash_hints) :: hints
  type(MPI_Request) :: request
  real(c_double), allocatable, asynchronous :: mine(:, :), all(:, :)
  real(c_double) :: error
  integer :: rank, ranks, i, j
  logical :: served

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate (p%a(rows, inner), p%c(rows, columns * ranks))
  allocate (mine(inner, columns), all(inner, columns * ranks))
  p%a = reshape([((sin(i + 0.5d0 * j), i=1, rows), j=1, inner)], [rows, inner])
  mine = reshape([((cos(0.2d0 * i - j - columns * rank), i=1, inner), j=1, columns)], [inner, columns])

  hints%pieces = 4
  hints%row = inner
  call MPIX_Iallgather_compute(mine, size(mine), MPI_DOUBLE_PRECISION, all, size(mine), &
                               MPI_DOUBLE_PRECISION, multiply, c_loc(p), hints, MPI_COMM_WORLD, request)
  ! A program that has something else to compute does so here.
  call MPI_Wait(request, MPI_STATUS_IGNORE)

  all = -1
  call MPI_Allgather(mine, size(mine), MPI_DOUBLE_PRECISION, all, size(mine), MPI_DOUBLE_PRECISION, &
                     MPI_COMM_WORLD)
  error = maxval(abs(p%c - matmul(p%a, all)))
  call MPI_Allreduce(MPI_IN_PLACE, error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  call MPIX_Flash_active(MPI_COMM_WORLD, served)
  if (rank == 0) then
    print '(i0, a, a, a, es8.1)', ranks, ' ranks, ', trim(merge('by flash     ', 'without flash', served)), &
      ': error', error
  end if
  deallocate (p%a, p%c)
  call MPI_Finalize()
  if (error > 1d-9) error stop 1
end program
