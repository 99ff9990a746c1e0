# FLASH_FORTRAN_WRAPPER, then AC_PROG_FC, then FLASH_FORTRAN
#
# Finds what the Fortran module needs: Open MPI's mpifort beside its mpicc, which is asked for flags only,
# the compiler that it calls (whose mpi_f08.mod no other one may be able to read), and array
# descriptors that C knows. Sets
#
#   MPIFC MPI_FCFLAGS MPI_FCLIBS   the wrapper, and its flags for a program that uses mpi_f08
#   CFI_CPPFLAGS                   for ISO_Fortran_binding.h
#   flash_fortran                  for people to read: the compiler, or why there is none
#   flash_no_fortran               the latter alone, or nothing
#
# and the condition HAVE_FORTRAN. Stops where --enable-fortran asked for what cannot be.
AC_DEFUN([FLASH_FORTRAN_WRAPPER], [
  AC_ARG_VAR([MPIFC], [Open MPI's compiler wrapper for Fortran (asked for flags only)])
  AC_ARG_ENABLE([fortran],
    [AS_HELP_STRING([--disable-fortran],
      [do not build the Fortran module mpix_flash_f08 (default: where Open MPI has mpi_f08)])],
    [], [enable_fortran=check])
  MPI_FCFLAGS= MPI_FCLIBS= CFI_CPPFLAGS= flash_why=
  AS_IF([test "$enable_fortran" = no], [flash_why="not wanted"],
    [test "$enable_asan" != no || test "$enable_tsan" != no],
      [flash_why="not with a sanitizer, of which the two compilers may have different ones"],
    [
      AC_PATH_PROGS([MPIFC], [`echo "$MPICC" | sed -e 's,.*/,,' -e 's/cc/fort/'`], [],
        [`AS_DIRNAME(["$MPICC"])`])
      AS_IF(["${MPIFC:-false}" --showme:version 2>/dev/null | grep 'Open MPI' >/dev/null],
        [: ${FC=`"$MPIFC" --showme:command`}],
        [flash_why="no mpifort of Open MPI beside $MPICC"])
    ])
  # A word that libtool knows.
  AS_IF([test -n "$flash_why"], [FC=no])
])

AC_DEFUN([FLASH_FORTRAN], [
  AC_FC_SRCEXT([f90], [], [: ${flash_why:="$FC does not work (Debian and Ubuntu: gfortran)"}])
  AS_IF([test -z "$flash_why"], [FLASH_MPI_F08])
  AS_IF([test -z "$flash_why"], [FLASH_DESCRIPTORS])
  AS_IF([test -z "$flash_why"], [flash_fortran="$FC, module mpix_flash_f08"], [
    flash_fortran="$flash_why: no module mpix_flash_f08"
    AS_IF([test "$enable_fortran" != check && test "$enable_fortran" != no],
      [AC_MSG_ERROR([no Fortran module: $flash_why. Leave --enable-fortran out, or see config.log.])])
  ])
  AM_CONDITIONAL([HAVE_FORTRAN], [test -z "$flash_why"])
  AC_SUBST([enable_fortran])
  AC_SUBST([flash_no_fortran], [$flash_why])
  AC_SUBST([MPI_FCFLAGS])
  AC_SUBST([MPI_FCLIBS])
  AC_SUBST([CFI_CPPFLAGS])
])

# A program with mpi_f08 and a buffer of any type and rank; and a default integer is C's int.
AC_DEFUN([FLASH_MPI_F08], [
  MPI_FCFLAGS=`"$MPIFC" --showme:compile`
  MPI_FCLIBS=`"$MPIFC" --showme:link | sed 's/-pthread//'`
  flash_save_FCFLAGS=$FCFLAGS
  flash_save_LIBS=$LIBS
  FCFLAGS="$FCFLAGS $MPI_FCFLAGS"
  LIBS="$MPI_FCLIBS $LIBS"
  AC_LANG_PUSH([Fortran])
  AC_MSG_CHECKING([whether $FC links with mpi_f08, and has assumed ranks])
  AC_LINK_IFELSE([AC_LANG_SOURCE([[
program conftest
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  interface
    subroutine take(buffer, comm, ierror) bind(C)
      import
      type(*), dimension(..), asynchronous :: buffer
      type(MPI_Comm), intent(in) :: comm
      integer(c_int), intent(out), optional :: ierror
    end subroutine
  end interface
  integer :: ierror

  call MPI_Init(ierror)
  call is_int(ierror)
contains
  subroutine is_int(number)
    integer(c_int), intent(in) :: number
    if (number /= MPI_SUCCESS) error stop
  end subroutine
end program
]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     flash_why="$FC builds no program with mpi_f08 and assumed ranks (config.log)"])
  AC_LANG_POP([Fortran])
  FCFLAGS=$flash_save_FCFLAGS
  LIBS=$flash_save_LIBS
])

# Whether C's ISO_Fortran_binding.h describes arrays as the Fortran compiler does. Another C compiler
# than gfortran's own may not have one: then gfortran's, behind everything else.
AC_DEFUN([FLASH_DESCRIPTORS], [
  AC_MSG_CHECKING([whether $CC knows the array descriptors of $FC])
  cat >conftest_array.c <<'_FLASH_EOF'
[#include <ISO_Fortran_binding.h>
int flash_array(const CFI_cdesc_t *a);
int flash_array(const CFI_cdesc_t *a)
{
    return a->rank == 2 && a->elem_len == 8 && a->dim[0].extent == 2 && a->dim[0].sm == 24 &&
           a->dim[1].extent == 4 && a->dim[1].sm == 32 && *(const double *) a->base_addr == 7.0;
}]
_FLASH_EOF
  flash_dir=`$FC -print-file-name=include 2>/dev/null`
  flash_made=no
  for CFI_CPPFLAGS in "" "-idirafter $flash_dir"; do
    AS_IF([$CC $CFLAGS $CPPFLAGS $CFI_CPPFLAGS -c conftest_array.c >&AS_MESSAGE_LOG_FD 2>&1],
      [flash_made=yes; break])
  done
  flash_save_LIBS=$LIBS
  LIBS="conftest_array.$OBJEXT $LIBS"
  AC_LANG_PUSH([Fortran])
  AS_IF([test $flash_made = yes], [AC_RUN_IFELSE([AC_LANG_SOURCE([[
program conftest
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function flash_array(array) bind(C)
      import
      type(*), dimension(..) :: array
    end function
  end interface
  real(c_double) :: a(4, 5)

  a = 0
  a(1, 2) = 7
  if (flash_array(a(1:4:3, 2:5)) == 0) error stop 1
end program
]])], [], [flash_made=no], [:])])
  AC_LANG_POP([Fortran])
  LIBS=$flash_save_LIBS
  rm -f conftest_array.*
  AC_MSG_RESULT([$flash_made])
  AS_IF([test $flash_made = no],
    [flash_why="$CC does not know the array descriptors of $FC (config.log)"])
])
