#!/bin/sh
# Makes a cluster of six running servers: three primaries, and a replica of each on another machine.
# Usage: create.sh HOST:PORT HOST:PORT HOST:PORT HOST:PORT HOST:PORT HOST:PORT
set -eu
exec redis-cli --cluster create "$@" --cluster-replicas 1 --cluster-yes
