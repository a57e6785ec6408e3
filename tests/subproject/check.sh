#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a user's meson project, with this tree in its folder `subprojects`. Builds and runs the quick start,
# with the shared library and with the archive. Of our targets it must build only the library. The wrap file must
# also lead to the further libraries, of which it tries durable timers if SQLite is installed.
#
# usage: check.sh SOURCE_ROOT
set -eu

root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir "$folder/user" "$folder/user/subprojects"
cp "$root/docs/examples/quickstart.c" "$folder/user"
cp "$root/docs/packaging/tickwheel.wrap" "$folder/user/subprojects"
ln -s "$root" "$folder/user/subprojects/tickwheel"
cat > "$folder/user/meson.build" << 'END'
project('user', 'c')
executable('shared', 'quickstart.c', dependencies: dependency('tickwheel', version: '>= 0.1'))
executable('static', 'quickstart.c', dependencies: dependency('tickwheel', static: true))
END

# Forces the subproject, so that a copy installed on the system is not used.
meson setup "$folder/build" "$folder/user" --wrap-mode=forcefallback
ninja -C "$folder/build"
for program in shared static; do
  said=$("$folder/build/$program")
  if [ "$said" != "$(printf 'request 1: answered\nrequest 2: timed out')" ]; then
    echo "$program said: $said"
    exit 1
  fi
done
if find "$folder/build" -path '*test*' -name '*.o' | grep . || find "$folder/build" -name 'tickwheel-perf*' | grep .; then
  echo "a user's project builds our tests and tools"
  exit 1
fi

pkg-config --exists sqlite3 || exit 0
cat > "$folder/user/meson.build" << 'END'
project('user', 'c')
executable('durable', 'quickstart.c', dependencies: dependency('tickwheel-durable'))
END
meson setup "$folder/durable" "$folder/user" --wrap-mode=forcefallback -Dtickwheel:durable=enabled
