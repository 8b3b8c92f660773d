#!/bin/sh
# Makes the work pools that are missing, sets how many runs the GPU pool takes at once, and registers every deployment of
# prefect.yaml.  May be run again at any time; PREFECT_API_URL says where the server is.
set -eu
: "${PREFECT_API_URL:?names the Prefect server, for example http://127.0.0.1:4200/api}"
cd "$(dirname "$0")/.."

for pool in cpu gpu; do
    prefect --no-prompt work-pool inspect "$pool" >/dev/null 2>&1 ||
        prefect --no-prompt work-pool create "$pool" --type process
done
prefect --no-prompt work-pool set-concurrency-limit gpu "${KGQA_GPU_SLOTS:-1}"
prefect --no-prompt deploy --all
