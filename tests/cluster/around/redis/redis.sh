#!/bin/sh
# Start as a follower of the Redis that the Sentinels name; the first pod, where nobody names one, begins as the one that writes.
# A Service of its own keeps each pod's address the same wherever it runs.
set -eu
case $HOSTNAME in *-0) own=10.96.7.10 other=10.96.7.11 ;; *) own=10.96.7.11 other=10.96.7.10 ;; esac
first=10.96.7.10
for sentinel in 0 1 2; do
    named=$(timeout 3 redis-cli -h "sentinel-$sentinel.sentinels.outside.svc.cluster.local" -p 26379 --raw \
        sentinel get-master-addr-by-name saltern 2>/dev/null | head -n 1) || true
    case $named in 10.*) first=$named; break ;; esac
done
# One that lost its data while it wrote would have the other one forget all, too: it waits until the Sentinels have chosen that one.
kept=$(timeout 3 redis-cli -h "$other" --raw dbsize 2>/dev/null) || kept=0
if [ "$first" = "$own" ] && [ ! -e /data/appendonlydir ] && [ "$kept" -gt 0 ]; then
    echo "the Sentinels name this Redis, which has no data, while $other has $kept keys" >&2
    sleep 3
    exit 1
fi
set -- /usr/local/etc/redis.conf --replica-announce-ip "$own" --repl-diskless-sync-delay 0
[ "$first" = "$own" ] || set -- "$@" --replicaof "$first" 6379
exec redis-server "$@"
