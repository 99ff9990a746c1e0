# FLASH_LIBRARY(VAR, MODULE, FOLDER, LIBS, PROLOGUE, BODY)
#
# Finds a library under FOLDER if that is not empty, else by pkg-config's MODULE, else where the
# compiler looks anyway, and tries a program of PROLOGUE and BODY with it. Sets VAR_CPPFLAGS,
# VAR_LIBS, VAR_VERSION (for people to read) and flash_found (yes or no).
AC_DEFUN([FLASH_LIBRARY], [
  AC_REQUIRE([PKG_PROG_PKG_CONFIG])
  $1_CPPFLAGS=
  $1_LIBS="$4"
  $1_VERSION=
  flash_path=$PKG_CONFIG_PATH
  flash_found=maybe
  AS_IF([test -n "$3"], [
    flash_found=no
    flash_lib=`echo "$4" | sed 's/^-l\([[^ ]]*\).*/lib\1.so/'`
    for flash_dir in "$3/lib/`$CC -print-multiarch 2>/dev/null`" "$3/lib64" "$3/lib"; do
      AS_IF([test $flash_found = no && test -e "$flash_dir/$flash_lib"],
        [flash_found=maybe flash_libdir=$flash_dir])
    done
    AS_IF([test "$3" != /usr], [
      $1_CPPFLAGS="-isystem $3/include"
      $1_LIBS="-L$flash_libdir -Wl,-rpath,$flash_libdir $4"
    ])
    flash_path="$flash_libdir/pkgconfig"
  ], [test -n "$PKG_CONFIG" && $PKG_CONFIG --exists $2], [
    # Their headers' warnings are not ours.
    $1_CPPFLAGS=`$PKG_CONFIG --cflags $2 | sed 's/-I */-isystem /g'`
    $1_LIBS="`$PKG_CONFIG --libs-only-L $2` $4"
  ])
  AS_IF([test -n "$PKG_CONFIG"],
    [$1_VERSION=`PKG_CONFIG_PATH=$flash_path $PKG_CONFIG --modversion $2 2>/dev/null`])
  AS_IF([test -z "$$1_VERSION"], [$1_VERSION="of unknown version"])

  flash_save_CPPFLAGS=$CPPFLAGS
  flash_save_LIBS=$LIBS
  CPPFLAGS="$$1_CPPFLAGS $CPPFLAGS"
  LIBS="$$1_LIBS $LIBS"
  AC_MSG_CHECKING([for $2])
  AS_IF([test $flash_found = maybe],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([$5], [$6])], [flash_found=yes], [flash_found=no])])
  AC_MSG_RESULT([$flash_found])
  CPPFLAGS=$flash_save_CPPFLAGS
  LIBS=$flash_save_LIBS
  AC_SUBST([$1_CPPFLAGS])
  AC_SUBST([$1_LIBS])
])
