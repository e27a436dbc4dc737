#!/bin/sh
# A Sentinel writes its configuration down, so it has a copy of its own; one that starts anew asks the others who writes now.
set -eu
# What it knew before its container or its node started anew: who follows, and which other Sentinels there are.
[ ! -e /data/sentinel.conf ] || exec redis-server /data/sentinel.conf --sentinel
first=10.96.7.10
for sentinel in 0 1 2; do
    named=$(timeout 3 redis-cli -h "sentinel-$sentinel.sentinels.outside.svc.cluster.local" -p 26379 --raw \
        sentinel get-master-addr-by-name saltern 2>/dev/null | head -n 1) || true
    case $named in 10.*) first=$named; break ;; esac
done
# Five seconds: on a machine with a queue of 80 processes a Redis may be silent for two, and each failover may lose what has not been copied.
cat >/data/sentinel.conf <<END
port 26379
dir /data
protected-mode no
sentinel monitor saltern $first 6379 2
sentinel down-after-milliseconds saltern 5000
sentinel failover-timeout saltern 10000
sentinel parallel-syncs saltern 1
END
exec redis-server /data/sentinel.conf --sentinel
