# Sourced by docs/how-to/data.md: a PostgreSQL server of its own, which psql talks to without options. Its
# database app has the simulator's devices.
programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
mkdir database
as_owner=()
if ((EUID == 0)); then
    # The server refuses to run as root.
    chmod o+x .. . # So that its user gets through.
    chown postgres database
    as_owner=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
"${as_owner[@]}" "$programs/initdb" --pgdata="$PWD/database" --username=postgres --auth=trust --no-sync
"${as_owner[@]}" timeout 600 "$programs/postgres" -D "$PWD/database" -c listen_addresses= \
    -c unix_socket_directories="$PWD/database" -c fsync=off &
background+=($!)
export PGHOST=$PWD/database PGUSER=postgres
await psql --dbname=postgres --command='create database app'
awk 'BEGIN { print "token,country,registered_at" }
    { print $1 "," (NR % 2 ? "DE" : "FR") ",2022-01-01T00:00:00Z" }' apns/tokens.txt >devices.csv
psql --set=ON_ERROR_STOP=1 app <<'END'
create table devices (token text primary key, country text, registered_at timestamptz not null);
\copy devices from 'devices.csv' with (format csv, header)
END
