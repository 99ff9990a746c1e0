! test_fortran.f90: all of the module mpix_flash_f08: data, callbacks, arguments that cannot be.
!
!   test_fortran ring|plain    whether flash is to serve communicators of several ranks
!
! Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
program test_fortran
  use fortran_work
  use fortran_gather
  use fortran_reduce
  use fortran_exchange
  implicit none
  character(8) :: wanted
  logical :: active
  integer :: ierror

  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, ranks)

  call get_command_argument(1, wanted)
  call MPIX_Flash_active(comm, active, ierror)
  call check(ierror == MPI_SUCCESS .and. (active .eqv. wanted == 'ring' .and. ranks > 1), 'active')
  call MPIX_Flash_active(MPI_COMM_NULL, active, ierror)
  call check(ierror == MPI_ERR_COMM .and. .not. active, 'active: no communicator')

  call test_gather
  call test_reduce
  call test_exchange

  call MPI_Comm_free(comm)
  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (failures > 0) error stop 1
end program
