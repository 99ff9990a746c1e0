# FLASH_OPEN_MPI(COMPAT)
#
# Finds Open MPI with its internal headers; COMPAT is the folder of headers that it forgets to
# install. Stops with one sentence if something is missing. Sets
#
#   MPICC OMPI_INFO MPIRUN              the programs, with their paths
#   MPI_CPPFLAGS MPI_LIBS               for a program that includes <mpi.h>
#   OMPI_CPPFLAGS OMPI_LIBS             for a part of Open MPI
#   ompi_version ompi_prefix ompi_libdir ompi_pkglibdir
AC_DEFUN([FLASH_OPEN_MPI], [
  AC_ARG_VAR([MPICC], [Open MPI's compiler wrapper (asked for flags only)])
  AC_ARG_WITH([ompi],
    [AS_HELP_STRING([--with-ompi=DIR],
      [Open MPI is installed in DIR: DIR/bin/mpicc (default: mpicc in PATH)])],
    [AS_CASE([$withval],
      [yes], [with_ompi=],
      [no], [AC_MSG_ERROR([coll/flash is a part of Open MPI: it cannot be built --without-ompi.])])],
    [with_ompi=])
  AS_IF([test -n "$with_ompi"],
    [flash_bins="$with_ompi/bin"], [flash_bins=$PATH])
  # Other MPI libraries have an mpicc, too.
  AC_PATH_PROGS_FEATURE_CHECK([MPICC], [mpicc mpicc.openmpi],
    [AS_IF(["$ac_path_MPICC" --showme:version 2>/dev/null | grep 'Open MPI' >/dev/null],
      [ac_cv_path_MPICC=$ac_path_MPICC ac_path_MPICC_found=:])],
    [ac_cv_path_MPICC=], [$flash_bins])
  MPICC=$ac_cv_path_MPICC
  AS_IF([test -n "$MPICC" && ! "$MPICC" --showme:version 2>/dev/null | grep 'Open MPI' >/dev/null],
    [AC_MSG_ERROR([$MPICC is not Open MPI's mpicc: leave MPICC out, or name Open MPI's folder by --with-ompi=DIR.])])
  AS_IF([test -z "$MPICC"],
    [AC_MSG_ERROR([no mpicc of Open MPI's was found in $flash_bins: install Open MPI (Debian and Ubuntu: libopenmpi-dev) or name its folder by --with-ompi=DIR.])])

  flash_bins="`AS_DIRNAME(["$MPICC"])`:$flash_bins"
  AC_PATH_PROGS([OMPI_INFO], [ompi_info ompi_info.openmpi], [], [$flash_bins])
  AC_PATH_PROGS([MPIRUN], [mpirun`echo "$MPICC" | sed -n 's/.*\.openmpi$/.openmpi/p'`],
    [], [$flash_bins])
  AS_IF([test -z "$OMPI_INFO" || test -z "$MPIRUN"],
    [AC_MSG_ERROR([ompi_info or mpirun is missing beside $MPICC: install the rest of Open MPI (Debian and Ubuntu: openmpi-bin).])])

  flash_ompi_path() {
    "$OMPI_INFO" --path "$[1]" --parsable 2>/dev/null | sed -n "s/^path:$[1]://p"
  }
  AC_MSG_CHECKING([for Open MPI's version])
  ompi_version=`"$OMPI_INFO" --parsable 2>/dev/null | sed -n 's/^ompi:version:full://p'`
  AC_MSG_RESULT([$ompi_version])
  AS_CASE([$ompi_version],
    [4.1.*|5.0.*], [],
    [6.0.*], [AC_MSG_WARN([coll/flash has been compiled for Open MPI 6.0, and never run with it.])],
    [AC_MSG_ERROR([coll/flash knows Open MPI 4.1, 5.0 and 6.0, and this is ${ompi_version:-unknown}: name the folder of one of these by --with-ompi=DIR, or extend ompi_coll_flash/compat/coll_flash_compat.h.])])
  ompi_prefix=`flash_ompi_path prefix`
  ompi_libdir=`flash_ompi_path libdir`
  ompi_incdir=`flash_ompi_path incdir`
  ompi_pkglibdir=`flash_ompi_path pkglibdir`

  # From 5.0 on, its headers include those of the PMIx that it was built with.
  AC_ARG_WITH([pmix],
    [AS_HELP_STRING([--with-pmix=DIR],
      [PMIx, for Open MPI 5, is installed in DIR (default: as pkg-config says, or with Open MPI)])],
    [AS_CASE([$withval], [yes|no], [with_pmix=])], [with_pmix=])
  PMIX_CPPFLAGS=
  PMIX_LIBS=
  AS_CASE([$ompi_version], [4.*], [], [
    AS_IF([test -z "$with_pmix" && test -e "$ompi_libdir/libpmix.so"],
      [with_pmix=$ompi_prefix])
    FLASH_LIBRARY([PMIX], [pmix], [$with_pmix], [-lpmix],
      [[#include <pmix.h>]], [[return PMIx_Initialized();]])
    AS_IF([test $flash_found = no],
      [AC_MSG_ERROR([PMIx, which Open MPI $ompi_version was built with, was not found: install it (Debian and Ubuntu: libpmix-dev) or name its folder by --with-pmix=DIR.])])
  ])

  # Open MPI's headers as system headers: their warnings are not ours.
  MPI_CPPFLAGS=`"$MPICC" --showme:compile |
    sed -e 's/-pthread//' -e 's,-I/usr/include\( \|$\),,g' -e 's/-I */-isystem /g'`
  MPI_LIBS=`"$MPICC" --showme:link | sed 's/-pthread//'`
  OMPI_CPPFLAGS="$MPI_CPPFLAGS -isystem $ompi_incdir/openmpi $PMIX_CPPFLAGS -idirafter $1"
  OMPI_LIBS="-L$ompi_libdir $MPI_LIBS -lopen-pal $PMIX_LIBS"

  flash_save_CPPFLAGS=$CPPFLAGS
  flash_save_LIBS=$LIBS
  AC_MSG_CHECKING([whether programs link with Open MPI])
  CPPFLAGS="$MPI_CPPFLAGS $CPPFLAGS"
  LIBS="$MPI_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0);]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$CC cannot build a program with the flags that $MPICC gives ($MPI_CPPFLAGS $MPI_LIBS): see config.log.])])

  AC_MSG_CHECKING([for Open MPI's internal headers])
  CPPFLAGS="$OMPI_CPPFLAGS $flash_save_CPPFLAGS"
  LIBS="$OMPI_LIBS $flash_save_LIBS"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include "ompi_config.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/op/op.h"]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     flash_why=`sed -n 's/.*fatal error: //p' conftest.err | head -n 1`
     AS_IF([test -e "$ompi_incdir/openmpi/ompi/mca/coll/coll.h"],
       [AC_MSG_ERROR([Open MPI's internal headers in $ompi_incdir/openmpi do not compile (${flash_why:-see config.log}): install what they include (Debian and Ubuntu: libevent-dev libpmix-dev, for Open MPI 5).])],
       [AC_MSG_ERROR([Open MPI's internal headers are not in $ompi_incdir/openmpi: install them (Debian and Ubuntu: libopenmpi-dev), or configure Open MPI --with-devel-headers where it is built from source.])])])

  # The headers have inline functions that need the instructions that Open MPI was built for.
  AC_MSG_CHECKING([for flags that Open MPI's internal headers need])
  LIBS="$OMPI_LIBS $flash_save_LIBS"
  flash_save_CFLAGS=$CFLAGS
  flash_linked=no
  for flash_flag in "" -mcx16; do
    CFLAGS="$flash_flag $flash_save_CFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include "ompi_config.h"
#include "opal/class/opal_free_list.h"
#include "opal/runtime/opal_progress.h"
#include "ompi/op/op.h"]],
      [[opal_free_list_t list;
        opal_progress();
        opal_free_list_return_mt(&list, opal_free_list_get_mt(&list));
        return ompi_mpi_op_sum.op.o_flags != 0;]])],
      [flash_linked=yes; break])
  done
  CFLAGS=$flash_save_CFLAGS
  AS_IF([test $flash_linked = no],
    [AC_MSG_RESULT([none found])
     AC_MSG_ERROR([a program that uses Open MPI's internals does not link with $OMPI_LIBS: see config.log.])])
  AC_MSG_RESULT([${flash_flag:-none}])
  OMPI_CPPFLAGS="$flash_flag $OMPI_CPPFLAGS"

  # What COMPAT says of threads must be what the library was built with. A program that does not
  # even start says nothing of that.
  AS_CASE([$ompi_version], [4.*], [], [
    AC_MSG_CHECKING([whether Open MPI's locks are as its headers say])
    CFLAGS="$flash_flag $flash_save_CFLAGS"
    flash_locks="not tried"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include "ompi_config.h"
#include "opal/class/opal_free_list.h"]],
        [[return opal_mutex_t_class.cls_sizeof == sizeof(opal_mutex_t) ? 0 : 2;]])],
      [AS_IF([test "$cross_compiling" != yes], [
        ./conftest$EXEEXT >&AS_MESSAGE_LOG_FD 2>&1
        AS_CASE([$?], [0], [flash_locks=yes], [2], [flash_locks=no])
      ])])
    CFLAGS=$flash_save_CFLAGS
    AC_MSG_RESULT([$flash_locks])
    AS_IF([test "$flash_locks" = no],
      [AC_MSG_ERROR([Open MPI $ompi_version was built with other threads than POSIX ones: flash cannot be built for it.])])
  ])
  CPPFLAGS=$flash_save_CPPFLAGS
  LIBS=$flash_save_LIBS

  AC_SUBST([MPI_CPPFLAGS])
  AC_SUBST([MPI_LIBS])
  AC_SUBST([OMPI_CPPFLAGS])
  AC_SUBST([OMPI_LIBS])
  AC_SUBST([ompi_pkglibdir])
])
