# Run once by the image, on db1's temporary server; the standbys copy what it does.
psql -X -v ON_ERROR_STOP=1 --username postgres \
    -v replication="$REPLICATION_PASSWORD" -v tidewatch="$DATABASE_PASSWORD" <<'SQL'
CREATE ROLE replication LOGIN REPLICATION PASSWORD :'replication';
CREATE ROLE tidewatch LOGIN PASSWORD :'tidewatch';
CREATE DATABASE tidewatch OWNER tidewatch;
-- Whichever is the primary, a commit waits for one of the other two. In force when the server starts for good.
ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (db1, db2, db3)';
SQL
# The image's own line for all databases does not include replication.
echo 'host replication replication all scram-sha-256' >>"$PGDATA/pg_hba.conf"
