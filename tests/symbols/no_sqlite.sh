#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that tickwheel itself neither uses nor links SQLite. tickwheel-durable does, which shows that the check
# can fail.
#
# usage: no_sqlite.sh NM TICKWHEEL DURABLE
set -eu

nm=$1
if "$nm" --dynamic --undefined-only "$2" | grep ' sqlite3_'; then
  echo "$2 uses the above"
  exit 1
fi
"$nm" --dynamic --undefined-only "$3" | grep -q ' sqlite3_'
