#!/bin/sh
# SPDX-License-Identifier: MIT
# build.sh JAVAC JAR FOLDER OUT CLASSPATH SOURCE...: compiles the sources into FOLDER, and packs FOLDER into OUT.
set -e
javac=$1 jar=$2 folder=$3 out=$4 classpath=$5
shift 5
rm -rf "$folder"
mkdir -p "$folder"
"$javac" -Xlint:all -Werror -cp "$classpath" -d "$folder" "$@"
"$jar" --create --no-compress --file "$out" -C "$folder" .
