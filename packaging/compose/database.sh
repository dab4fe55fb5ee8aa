# What a database's container starts, as the user `postgres`. db1 makes the first database; the others, and later every
# server with an empty volume, become standbys of the one that takes writes.
set -eu

hosts="host=db1,db2,db3 target_session_attrs=read-write connect_timeout=3"
hosts="$hosts user=replication password=$REPLICATION_PASSWORD"

other_takes_writes() {
    psql -XAtqc 'SELECT 1' "$hosts dbname=postgres" >/dev/null 2>&1
}

# If db1 has lost its volume, its standbys answer, and one of them has to be promoted: db1 makes no second database.
is_first() {
    [ "$(hostname)" = db1 ] && ! pg_isready -q -h db2 && ! pg_isready -q -h db3
}

while [ ! -s "$PGDATA/PG_VERSION" ]; do
    if other_takes_writes; then
        # Renamed when it is whole: a copy that was interrupted is made again. The hosts get into primary_conninfo, so
        # that the standby follows whichever is promoted.
        rm -rf "$PGDATA.copy"
        pg_basebackup --dbname="$hosts" --pgdata="$PGDATA.copy" --write-recovery-conf --checkpoint=fast
        mv -T "$PGDATA.copy" "$PGDATA"
    elif is_first; then
        break
    else
        echo "waiting for a database that takes writes"
        sleep 2
    fi
done

if [ -s "$PGDATA/PG_VERSION" ] && [ ! -e "$PGDATA/standby.signal" ] && other_takes_writes; then
    echo "another database takes writes; remove the volume of $(hostname), for it to become a standby" >&2
    exit 1
fi

# A standby is known by its cluster_name, which synchronous_standby_names lists. That setting is no flag here: the image
# passes flags to its temporary server, too, whose commits would wait for standbys that do not exist yet.
# wal_keep_size lets a standby that was away for a while go on without a new copy.
exec docker-entrypoint.sh postgres -c cluster_name="$(hostname)" -c wal_keep_size=1GB
