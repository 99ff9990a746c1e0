# Open MPI as Spack's own recipe builds it, with its internal headers, which flash is built with.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

try:
    from spack_repo.builtin.packages.openmpi.package import Openmpi as BuiltinOpenmpi
except ImportError:  # before Spack 1.0
    from spack.pkg.builtin.openmpi import Openmpi as BuiltinOpenmpi
from spack.package import *


class Openmpi(BuiltinOpenmpi):
    __doc__ = BuiltinOpenmpi.__doc__

    def configure_args(self):
        return [*super().configure_args(), "--with-devel-headers"]
