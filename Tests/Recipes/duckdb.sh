# Sourced by pages of docs/how-to: DuckDB's command line, and what it prints without colours.
"$repository/tools/install-clients" duckdb >/dev/null
export PATH=$repository/.build/clients/duckdb/bin:$PATH
