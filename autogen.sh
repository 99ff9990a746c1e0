#!/bin/sh
# Makes ./configure. Needs autoconf, automake, libtool and pkg-config.
set -eu
cd "$(dirname "$0")"
exec autoreconf --install --warnings=all
