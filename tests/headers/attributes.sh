#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that all code beyond ISO C is in one file: src/base/compiler.h, and export.h for the public headers.
#
# usage: attributes.sh SOURCE_ROOT
set -eu

cd "$1"
marks='__attribute|__declspec|_Pragma|#[[:space:]]*pragma|\[\[[a-z]'
# First checks that these files have such code. Otherwise the search below could not fail.
for place in src/base/compiler.h include/tickwheel/export.h; do
  grep -q __attribute "$place"
done
if grep -rnE "$marks" src include --include='*.[ch]' | grep -vE '^(src/base/compiler|include/tickwheel/export)\.h:'; then
  echo "attributes outside src/base/compiler.h: the lines above"
  exit 1
fi
