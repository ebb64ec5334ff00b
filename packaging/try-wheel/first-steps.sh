# What a user types first, in a system without a compiler: looks at titin, which is in /titin, and couples two programs.
set -eu
cd "$(dirname "$0")"
. /titin/bin/activate
titin --version
titin check model.ymmsl
titin run model.ymmsl --run-dir run
grep -qx '20 numbers, their sum 190.0' result.txt

# All that `titin config` names is there.
for directory in --prefix --include-dir --lib-dir --cmake-dir --pkg-config-dir; do
    [ -d "$(titin config $directory)" ]
done
for file in $(titin config --fortran --fortran-mpi --fortran-coarray); do [ -f "$file" ]; done
[ -f "$(titin config --include-dir)/titin.hpp" ] && [ -f "$(titin config --lib-dir)/libtitin.a" ]
titin config --cflags --libs
