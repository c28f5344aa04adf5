"""results.duckdb: the only package that imports duckdb."""
