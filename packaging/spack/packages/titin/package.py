"""titin for Spack 1.0 and newer: ``spack repo add packaging/spack``, then ``spack install titin``.

cargo takes the crates from its registry while it builds.
"""

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Titin(Package):
    """Couples simulation codes: multiscale models of programs in Python, C, C++ and Fortran."""

    homepage = "https://github.com/titin/titin"
    git = "https://github.com/titin/titin.git"

    license("Apache-2.0", checked_by="titin")

    version("main", branch="main")
    # The tag comes with the release.
    version("0.1.0", tag="v0.1.0")

    extends("python@3.11:")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("py-cyclonedx-python-lib@11:", type="build")
    depends_on("py-maturin@1.16", type="build")
    depends_on("py-pip", type="build")
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("py-pyyaml@6:", type=("build", "run"))

    conflicts("platform=darwin", msg="titin runs on Linux")
    conflicts("platform=windows", msg="titin runs on Linux")

    @property
    def own_prefix(self):
        """What `titin config --prefix` prints: the folder with include, lib and fortran."""
        return join_path(self.prefix, python_platlib_of(self), "titin")

    @property
    def headers(self):
        found = find_headers("titin", join_path(self.own_prefix, "include"))
        found.directories = [join_path(self.own_prefix, "include")]
        return found

    @property
    def libs(self):
        return find_libraries("libtitin", root=join_path(self.own_prefix, "lib"), shared=True)

    def install(self, spec, prefix):
        python("tools/wheel.py", "--profile", "release")
        (wheel,) = find("target/wheels", "titin-*.whl")
        python("-m", "pip", "install", "--no-deps", "--no-index", f"--prefix={prefix}", wheel)

    def setup_dependent_build_environment(self, env, dependent_spec):
        env.prepend_path("CMAKE_PREFIX_PATH", self.own_prefix)
        env.prepend_path("PKG_CONFIG_PATH", join_path(self.own_prefix, "lib", "pkgconfig"))

    def setup_run_environment(self, env):
        env.prepend_path("CMAKE_PREFIX_PATH", self.own_prefix)
        env.prepend_path("PKG_CONFIG_PATH", join_path(self.own_prefix, "lib", "pkgconfig"))


def python_platlib_of(package):
    """Where the Python of a package puts packages with extensions, below a prefix."""
    return package.spec["python"].package.platlib
