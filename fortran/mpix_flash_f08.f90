! mpix_flash_f08.f90: <mpix_flash.h> for Fortran: collectives that compute while they communicate.
!
! The contract of each call (threads, order, memory, errors) is the header's. What differs:
!
! - Handles are mpi_f08's. `ierror` may be left out, and comes last.
! - Buffers are contiguous: whole arrays, contiguous sections, scalars, also as the first element of
!   something longer. Nothing is ever copied, in or out: a section with gaps (a(::2), a row of a
!   matrix) is refused with MPI_ERR_BUFFER; a derived datatype describes it. An assumed-size array
!   is passed by an element, a(1), or has bounds, a(1:n). MPI_IN_PLACE is mpi_f08's; MPI_BOTTOM
!   is C's: NULL, which these calls refuse where there is data.
! - Arrays of counts and displacements are assumed-shape, for the same reason: not copied, and with
!   gaps refused, with MPI_ERR_ARG. They, and the buffers, last until the request is complete, and
!   are ASYNCHRONOUS in the caller, as for MPI's own non-blocking calls. An expression as an actual
!   argument does not last.
! - Where C takes NULL for hints, here it is MPIX_FLASH_HINTS_INIT; for a function,
!   MPIX_FLASH_FN_NULL.
! - A callback is a bind(C) function with the interface MPIX_Flash_compute_fn, best of a module: an
!   internal one is gone when its host returns, and needs an executable stack. MPI hands it on as
!   it is: nothing of this module lives as long as a request.
!
! Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
module mpix_flash_f08
  use, intrinsic :: iso_c_binding, only: c_funptr, c_int, c_null_funptr, c_null_ptr, c_ptr, c_size_t, &
                                         c_sizeof
  use mpi_f08, only: MPI_BOTTOM, MPI_COUNT_KIND, MPI_Comm, MPI_Datatype, MPI_IN_PLACE, MPI_Op, &
                     MPI_Request
  implicit none
  private

  public :: MPIX_Flash_handle, MPIX_Flash_block, MPIX_Flash_hints, MPIX_Flash_compute_fn
  public :: MPIX_FLASH_HINTS_INIT, MPIX_FLASH_FN_NULL, MPIX_FLASH_PENDING
  public :: MPIX_FLASH_BF16, MPIX_FLASH_FP16
  public :: MPIX_Flash_active, MPIX_Flash_block_datatype, MPIX_Flash_complete, MPIX_Flash_type
  public :: MPIX_Iallgather_compute, MPIX_Allgather_compute
  public :: MPIX_Iallgatherv_compute, MPIX_Allgatherv_compute
  public :: MPIX_Ireduce_scatter_block_compute, MPIX_Reduce_scatter_block_compute
  public :: MPIX_Ireduce_scatter_compute, MPIX_Reduce_scatter_compute
  public :: MPIX_Iallreduce_compute, MPIX_Allreduce_compute
  public :: MPIX_Ialltoall_compute, MPIX_Alltoall_compute
  public :: MPIX_Ialltoallv_compute, MPIX_Alltoallv_compute

  integer(c_int), parameter :: MPIX_FLASH_PENDING = -int(z'464c', c_int)
  integer(c_int), parameter :: MPIX_FLASH_BF16 = 1, MPIX_FLASH_FP16 = 2

  ! Names a piece that is pending. A value, to be copied.
  type, bind(C) :: MPIX_Flash_handle
    type(c_ptr) :: operation = c_null_ptr
    integer(MPI_COUNT_KIND) :: piece = 0
  end type

  ! What a callback is asked to work on: C's structure itself, so numbers begin at 0. For a pointer to
  ! the data: call c_f_pointer(block%data, values, [block%count]).
  type, bind(C) :: MPIX_Flash_block
    integer(c_int) :: rank, piece, pieces, ranks
    integer(MPI_COUNT_KIND) :: displ, offset, count
    type(c_ptr), private :: datatype ! C's handle: see MPIX_Flash_block_datatype()
    type(c_ptr) :: data
    integer(c_int) :: on_stream
    type(c_ptr) :: stream
    type(MPIX_Flash_handle) :: handle
  end type

  ! A variable of this type begins as MPIX_FLASH_HINTS_INIT. `own` is c_funloc() of a function with the
  ! interface below.
  type, bind(C) :: MPIX_Flash_hints
    integer(c_size_t), private :: size = 8 * c_sizeof(c_null_ptr) ! of this structure
    integer(c_int) :: pieces = 0
    integer(MPI_COUNT_KIND) :: row = 0
    integer(c_int) :: on_stream = 0
    type(c_ptr) :: stream = c_null_ptr
    type(c_funptr) :: own = c_null_funptr
    type(c_ptr) :: own_arg = c_null_ptr
    integer(c_int) :: merge = 0
  end type

  type(MPIX_Flash_hints), parameter :: MPIX_FLASH_HINTS_INIT = MPIX_Flash_hints()

  abstract interface
    ! Returns MPI_SUCCESS, MPIX_FLASH_PENDING or an error code.
    integer(c_int) function MPIX_Flash_compute_fn(block, arg) bind(C)
      import
      type(MPIX_Flash_block), intent(in) :: block
      type(c_ptr), value :: arg
    end function
  end interface

  ! No function, where C takes NULL.
  procedure(MPIX_Flash_compute_fn), bind(C, name="mpix_flash_fn_null_f08") :: MPIX_FLASH_FN_NULL

  ! The calls are C's, over descriptors of the arrays: those who know whether an array has gaps. No
  ! buffer is INTENT(IN): producers write to send buffers.
  interface
    ! The datatype of an element, in mpi_f08's form; in any thread that may call MPI.
    type(MPI_Datatype) function MPIX_Flash_block_datatype(block) &
        bind(C, name="mpix_flash_block_datatype_f08")
      import
      type(MPIX_Flash_block), intent(in) :: block
    end function

    subroutine MPIX_Flash_complete(handle, error, ierror) bind(C, name="mpix_flash_complete_f08")
      import
      type(MPIX_Flash_handle), intent(in) :: handle
      integer(c_int), intent(in) :: error
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Flash_type(which, datatype, ierror) bind(C, name="mpix_flash_type_f08")
      import
      integer(c_int), intent(in) :: which
      type(MPI_Datatype), intent(out) :: datatype
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    ! Not public: C has no default logical.
    subroutine flash_f08_active(comm, served, ierror) bind(C, name="flash_f08_active")
      import
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out) :: served
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    type(c_ptr) function flash_f08_address(variable) bind(C, name="flash_f08_address")
      import
      type(*), intent(in) :: variable
    end function
  end interface

  ! Non-blocking.
  interface
    subroutine MPIX_Iallgather_compute(sendbuf, sendcount, sendtype, recvbuf, recvcount, &
                 recvtype, consume, arg, hints, comm, request, ierror) &
                 bind(C, name="mpix_iallgather_compute_f08")
      import
      type(*), dimension(..), asynchronous :: sendbuf, recvbuf
      integer(c_int), intent(in) :: sendcount, recvcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      procedure(MPIX_Flash_compute_fn) :: consume
      type(c_ptr), value :: arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Iallgatherv_compute(sendbuf, sendcount, sendtype, recvbuf, recvcounts, &
                 displs, recvtype, consume, arg, hints, comm, request, ierror) &
                 bind(C, name="mpix_iallgatherv_compute_f08")
      import
      type(*), dimension(..), asynchronous :: sendbuf, recvbuf
      integer(c_int), intent(in) :: sendcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      integer(c_int), dimension(:), intent(in), asynchronous :: recvcounts, displs
      procedure(MPIX_Flash_compute_fn) :: consume
      type(c_ptr), value :: arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Ireduce_scatter_block_compute(produce, arg, hints, recvbuf, recvcount, &
                 datatype, op, comm, request, ierror) &
                 bind(C, name="mpix_ireduce_scatter_block_compute_f08")
      import
      procedure(MPIX_Flash_compute_fn) :: produce
      type(c_ptr), value :: arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(*), dimension(..), asynchronous :: recvbuf
      integer(c_int), intent(in) :: recvcount
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Ireduce_scatter_compute(produce, arg, hints, recvbuf, recvcounts, datatype, &
                 op, comm, request, ierror) bind(C, name="mpix_ireduce_scatter_compute_f08")
      import
      procedure(MPIX_Flash_compute_fn) :: produce
      type(c_ptr), value :: arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(*), dimension(..), asynchronous :: recvbuf
      integer(c_int), dimension(:), intent(in), asynchronous :: recvcounts
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Iallreduce_compute(produce, produce_arg, consume, consume_arg, hints, &
                 recvbuf, count, datatype, op, comm, request, ierror) &
                 bind(C, name="mpix_iallreduce_compute_f08")
      import
      procedure(MPIX_Flash_compute_fn) :: produce, consume
      type(c_ptr), value :: produce_arg, consume_arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(*), dimension(..), asynchronous :: recvbuf
      integer(c_int), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Ialltoall_compute(sendbuf, sendcount, sendtype, recvbuf, recvcount, &
                 recvtype, produce, produce_arg, consume, consume_arg, hints, comm, request, &
                 ierror) bind(C, name="mpix_ialltoall_compute_f08")
      import
      type(*), dimension(..), asynchronous :: sendbuf, recvbuf
      integer(c_int), intent(in) :: sendcount, recvcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      procedure(MPIX_Flash_compute_fn) :: produce, consume
      type(c_ptr), value :: produce_arg, consume_arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Ialltoallv_compute(sendbuf, sendcounts, sdispls, sendtype, recvbuf, &
                 recvcounts, rdispls, recvtype, produce, produce_arg, consume, consume_arg, &
                 hints, comm, request, ierror) bind(C, name="mpix_ialltoallv_compute_f08")
      import
      type(*), dimension(..), asynchronous :: sendbuf, recvbuf
      integer(c_int), dimension(:), intent(in), asynchronous :: sendcounts, sdispls, recvcounts, rdispls
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      procedure(MPIX_Flash_compute_fn) :: produce, consume
      type(c_ptr), value :: produce_arg, consume_arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

  ! The blocking forms.
  interface
    subroutine MPIX_Allgather_compute(sendbuf, sendcount, sendtype, recvbuf, recvcount, &
                 recvtype, consume, arg, hints, comm, ierror) &
                 bind(C, name="mpix_allgather_compute_f08")
      import
      type(*), dimension(..) :: sendbuf, recvbuf
      integer(c_int), intent(in) :: sendcount, recvcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      procedure(MPIX_Flash_compute_fn) :: consume
      type(c_ptr), value :: arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Allgatherv_compute(sendbuf, sendcount, sendtype, recvbuf, recvcounts, &
                 displs, recvtype, consume, arg, hints, comm, ierror) &
                 bind(C, name="mpix_allgatherv_compute_f08")
      import
      type(*), dimension(..) :: sendbuf, recvbuf
      integer(c_int), intent(in) :: sendcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      integer(c_int), dimension(:), intent(in) :: recvcounts, displs
      procedure(MPIX_Flash_compute_fn) :: consume
      type(c_ptr), value :: arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Reduce_scatter_block_compute(produce, arg, hints, recvbuf, recvcount, &
                 datatype, op, comm, ierror) bind(C, name="mpix_reduce_scatter_block_compute_f08")
      import
      procedure(MPIX_Flash_compute_fn) :: produce
      type(c_ptr), value :: arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(*), dimension(..) :: recvbuf
      integer(c_int), intent(in) :: recvcount
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Reduce_scatter_compute(produce, arg, hints, recvbuf, recvcounts, datatype, &
                 op, comm, ierror) bind(C, name="mpix_reduce_scatter_compute_f08")
      import
      procedure(MPIX_Flash_compute_fn) :: produce
      type(c_ptr), value :: arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(*), dimension(..) :: recvbuf
      integer(c_int), dimension(:), intent(in) :: recvcounts
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Allreduce_compute(produce, produce_arg, consume, consume_arg, hints, &
                 recvbuf, count, datatype, op, comm, ierror) &
                 bind(C, name="mpix_allreduce_compute_f08")
      import
      procedure(MPIX_Flash_compute_fn) :: produce, consume
      type(c_ptr), value :: produce_arg, consume_arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(*), dimension(..) :: recvbuf
      integer(c_int), intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Alltoall_compute(sendbuf, sendcount, sendtype, recvbuf, recvcount, &
                 recvtype, produce, produce_arg, consume, consume_arg, hints, comm, ierror) &
                 bind(C, name="mpix_alltoall_compute_f08")
      import
      type(*), dimension(..) :: sendbuf, recvbuf
      integer(c_int), intent(in) :: sendcount, recvcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      procedure(MPIX_Flash_compute_fn) :: produce, consume
      type(c_ptr), value :: produce_arg, consume_arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine

    subroutine MPIX_Alltoallv_compute(sendbuf, sendcounts, sdispls, sendtype, recvbuf, &
                 recvcounts, rdispls, recvtype, produce, produce_arg, consume, consume_arg, &
                 hints, comm, ierror) bind(C, name="mpix_alltoallv_compute_f08")
      import
      type(*), dimension(..) :: sendbuf, recvbuf
      integer(c_int), dimension(:), intent(in) :: sendcounts, sdispls, recvcounts, rdispls
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      procedure(MPIX_Flash_compute_fn) :: produce, consume
      type(c_ptr), value :: produce_arg, consume_arg
      type(MPIX_Flash_hints), intent(in) :: hints
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface

contains

  subroutine MPIX_Flash_active(comm, flag, ierror)
    type(MPI_Comm), intent(in) :: comm
    logical, intent(out) :: flag
    integer(c_int), intent(out), optional :: ierror
    integer(c_int) :: served

    call flash_f08_active(comm, served, ierror)
    flag = served /= 0
  end subroutine

  ! Asked by C, which has no names for them: where mpi_f08's MPI_IN_PLACE and MPI_BOTTOM are.
  subroutine flash_f08_sentinels(in_place, bottom) bind(C, name="flash_f08_sentinels")
    type(c_ptr), intent(out) :: in_place, bottom

    in_place = flash_f08_address(MPI_IN_PLACE)
    bottom = flash_f08_address(MPI_BOTTOM)
  end subroutine
end module
