#!/bin/sh
# Runs once, while the volume is empty: a role and a database each for Prefect and MLflow; neither sees the other's.
# psql reads the passwords from the environment: they stand in no argument list, and :'…' quotes them.
set -eu
: "${PREFECT_DB_PASSWORD:?is the password of the role prefect}"
: "${MLFLOW_DB_PASSWORD:?is the password of the role mlflow}"
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv prefect_password PREFECT_DB_PASSWORD
\getenv mlflow_password MLFLOW_DB_PASSWORD
CREATE ROLE prefect LOGIN PASSWORD :'prefect_password';
CREATE ROLE mlflow LOGIN PASSWORD :'mlflow_password';
CREATE DATABASE prefect OWNER prefect;
CREATE DATABASE mlflow OWNER mlflow;
REVOKE ALL ON DATABASE prefect FROM PUBLIC;
REVOKE ALL ON DATABASE mlflow FROM PUBLIC;
SQL
