# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

import pathlib

try:
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

    languages = {"c": "", "cxx": "", "fortran": "+fortran"}
except ImportError:  # before Spack 1.0
    languages = {}
from spack.package import *


class OpenmpiCollFlash(AutotoolsPackage):
    """A collective component for Open MPI: non-blocking allgathers and reduce-scatters as rings over
    UCX that hide under computation, and an extension of MPI for programs that compute on what they
    communicate."""

    # The clone in which this recipe lies. From another tree: `spack dev-build`, or `spack develop`.
    git = pathlib.Path(__file__).resolve().parents[4].as_uri()

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("benchmarks", default=True, description="Benchmarks of matrix products, with OpenBLAS")
    variant("fortran", default=True, description="The extension for Fortran")
    variant("cuda", default=False, description="Buffers in the memory of CUDA devices")

    for language, wanted in languages.items():
        depends_on(language, type="build", when=wanted or None)
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")

    # A build is for one version of Open MPI, with its internal headers: those that Spack builds have
    # them by the recipe beside this one.
    depends_on("openmpi@4.1:5.0")
    depends_on("pmix", when="^openmpi@5:")
    depends_on("ucx@1.11:")
    depends_on("hwloc@2:")
    depends_on("openblas", when="+benchmarks")
    depends_on("cuda@12:", when="+cuda")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def configure_args(self):
        spec = self.spec
        args = [
            f"--with-ompi={spec['openmpi'].prefix}",
            f"--with-ucx={spec['ucx'].prefix}",
            f"--with-hwloc={spec['hwloc'].prefix}",
            "--without-mpich",
        ]
        args += self.enable_or_disable("fortran")
        if spec.satisfies("^openmpi@5:"):
            args.append(f"--with-pmix={spec['pmix'].prefix}")
        if spec.satisfies("+benchmarks"):
            args.append(f"--with-openblas={spec['openblas'].prefix}")
        else:
            args.append("--without-openblas")
        if spec.satisfies("+cuda"):
            args.append(f"--with-cuda={spec['cuda'].prefix}")
        else:
            args.append("--without-cuda")
        return args

    def setup_run_environment(self, env):
        # Where Open MPI looks for components: both folders, as in the environment module.
        ompi_info = Executable(self.spec["openmpi"].prefix.bin.ompi_info)
        own = ompi_info("--path", "pkglibdir", "--parsable", output=str).strip().split(":")[2]
        env.set("OMPI_MCA_opal_mca_base_component_path", f"{self.prefix.lib.openmpi}:{own}")
