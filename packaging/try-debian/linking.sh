# In a system with the Debian packages: builds the programs of this folder by CMake and by pkg-config, without a word on
# where titin is, and couples them. CMakeLists.txt is that of docs/linking.md.
set -eu
cd "$(dirname "$0")"
unset PKG_CONFIG_PATH CMAKE_PREFIX_PATH

cp exchange.cpp macro.cpp
cp exchange.c meso.c
cp exchange.f90 micro.f90
cmake -B build -DCMAKE_C_FLAGS="-I$PWD -D_GNU_SOURCE" -DCMAKE_CXX_FLAGS="-I$PWD" >/dev/null
cmake --build build >/dev/null

mkdir pkg-config
cc -D_GNU_SOURCE exchange.c -o pkg-config/meso $(pkg-config --cflags --libs titin) -lm
c++ -std=c++17 exchange.cpp -o pkg-config/macro $(pkg-config --cflags --libs titin)
gfortran $(pkg-config --variable=fortran_sources titin) exchange.f90 -o pkg-config/micro $(pkg-config --libs titin)
pkg-config --libs titin | grep -qx -e '-ltitin *'
ldd pkg-config/meso | grep -q 'libtitin.so.0 => /lib/\|libtitin.so.0 => /usr/lib/'

mkdir by-config
cc -D_GNU_SOURCE exchange.c -o by-config/meso $(titin config --cflags --libs) -lm
c++ -std=c++17 exchange.cpp -o by-config/macro $(titin config --cflags --static)
gfortran $(titin config --fortran) exchange.f90 -o by-config/micro $(titin config --libs)

for build in build pkg-config by-config; do
    for pair in macro:meso meso:micro micro:macro; do
        sed -e "s|LEFT|$PWD/$build/${pair%:*}|" -e "s|RIGHT|$PWD/$build/${pair#*:}|" model.ymmsl >this.ymmsl
        titin run this.ymmsl --run-dir "run-$build-${pair%:*}" >log 2>&1 || { cat log; exit 1; }
        echo "$build: $pair"
    done
done

# A version that is not there is refused, and CMake says which one is.
mkdir newer
printf 'cmake_minimum_required(VERSION 3.20)\nproject(newer C)\nfind_package(titin 0.99 REQUIRED)\n' >newer/CMakeLists.txt
if cmake -S newer -B newer/build >newer/log 2>&1; then echo "find_package(titin 0.99) was not refused"; exit 1; fi
grep -q 'titin-config.cmake, version: 0\.' newer/log

# MUSCLE3's interface.
mkdir muscle3
printf 'cmake_minimum_required(VERSION 3.20)\nproject(muscle3 CXX)\nfind_package(libmuscle 0.10 REQUIRED)\nadd_executable(m m.cpp)\ntarget_link_libraries(m libmuscle::libmuscle)\n' >muscle3/CMakeLists.txt
printf '#include <libmuscle/libmuscle.hpp>\nint main() { return libmuscle::Message(0.0).timestamp() != 0.0; }\n' >muscle3/m.cpp
cmake -S muscle3 -B muscle3/build -Dlibmuscle_DIR="$(titin config --compat muscle3 --cmake-dir)" >/dev/null
cmake --build muscle3/build >/dev/null
muscle3/build/m

# Python, and a host of functions in a library.
python3 -c 'import numpy, titin; print(titin.__file__)'
titin --version
man -w titin >/dev/null 2>&1 || [ -e /usr/share/man/man1/titin.1.gz ] || echo "(no manual page: this system leaves them out)"
