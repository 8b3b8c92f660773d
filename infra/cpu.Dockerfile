# Three images, from the repository root:
#   docker build -f infra/cpu.Dockerfile --target servers -t kgqa-servers:0.1.0 .
#   docker build -f infra/cpu.Dockerfile --target serve   -t kgqa-serve:0.1.0 .
#   docker build -f infra/cpu.Dockerfile --target worker  -t kgqa-worker-cpu:0.1.0 .
# TORCH_ARGS chooses the build of torch as in the Makefile: --build-arg TORCH_ARGS="--index-url <CPU wheel index>"
# saves several gigabytes of CUDA packages.
FROM python:3.11.15-slim AS base
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore \
    DO_NOT_TRACK=true \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    MLFLOW_DISABLE_TELEMETRY=true \
    HF_HUB_DISABLE_TELEMETRY=1 \
    HOME=/tmp \
    PREFECT_HOME=/tmp/prefect
RUN groupadd --gid 10001 kgqa \
    && useradd --uid 10001 --gid kgqa --no-create-home --home-dir /tmp --shell /usr/sbin/nologin kgqa \
    && install -d -o kgqa -g kgqa /srv/kgqa /srv/mlflow
WORKDIR /app
COPY constraints.txt ./

# The Prefect and MLflow servers behind our guard: the versions of the workers, with drivers for PostgreSQL and S3,
# without torch and without the rest of our code than what the guard imports.
FROM base AS servers
COPY infra/requirements-servers.txt infra/
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install -c constraints.txt -r infra/requirements-servers.txt asyncpg mlflow prefect
COPY tasks/__init__.py tasks/
COPY tasks/servers tasks/servers
COPY kgqa_core/__init__.py kgqa_core/errors.py kgqa_core/
COPY kgqa_core/serving/__init__.py kgqa_core/serving/addresses.py kgqa_core/serving/guard.py kgqa_core/serving/limits.py kgqa_core/serving/
USER 10001:10001
CMD ["python", "-m", "tasks.servers", "prefect", "--host", "0.0.0.0", "--port", "4200"]

# `kgqa` without extras: torch and the dependencies of pyproject.toml; the code comes last in each image, so that a change
# of code rebuilds one small layer.
FROM base AS packages
ARG TORCH_ARGS=""
# hadolint ignore=SC2086
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install -c constraints.txt ${TORCH_ARGS} torch==2.13.0
COPY pyproject.toml ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
        print(*project["dependencies"], sep="\n")' \
        > /tmp/requirements.txt \
    && pip install -c constraints.txt -r /tmp/requirements.txt setuptools \
    && rm /tmp/requirements.txt
# TOKENIZERS_PARALLELISM is no token.
# hadolint ignore=DL3064
ENV KGQA_HOME=/srv/kgqa \
    HF_HOME=/srv/kgqa/huggingface \
    NUMBA_CACHE_DIR=/tmp/numba \
    MPLCONFIGDIR=/tmp/matplotlib \
    TOKENIZERS_PARALLELISM=false \
    TRANSFORMERS_VERBOSITY=error

# `kgqa serve` alone: no Prefect, MLflow or peft.  It needs KGQA_SERVE_TOKEN, and a graph (`--kg FILE`) or a home with a run.
FROM packages AS serve
COPY README.md LICENSE setup.py ./
COPY kgqa kgqa
COPY kgqa_core kgqa_core
COPY tasks tasks
COPY flows flows
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && python -m compileall -q kgqa_core tasks flows
ARG REVISION=unknown
LABEL org.opencontainers.image.revision="${REVISION}"
USER 10001:10001
VOLUME /srv/kgqa
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=10s --start-period=2m --retries=6 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/ready', timeout=5)"]
CMD ["kgqa", "serve", "--host", "0.0.0.0", "--port", "8000"]

# The worker: with the extras of all options but those of a cluster.
FROM packages AS worker
RUN --mount=type=cache,target=/root/.cache/pip \
    python -c 'import tomllib; optional = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
        print(*(line for extra in ("run", "amr", "passages", "store", "neo4j", "languages") for line in optional[extra]), sep="\n")' \
        > /tmp/requirements.txt \
    && pip install -c constraints.txt -r /tmp/requirements.txt \
    && rm /tmp/requirements.txt
COPY README.md LICENSE prefect.yaml setup.py ./
COPY kgqa kgqa
COPY kgqa_core kgqa_core
COPY tasks tasks
COPY flows flows
COPY infra/setup.sh infra/
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && python -m compileall -q kgqa_core tasks flows
ENV PREFECT_LOCAL_STORAGE_PATH=/srv/kgqa/prefect/results \
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE=false \
    PREFECT_LOGGING_EXTRA_LOGGERS=kgqa \
    PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW=ignore \
    PREFECT_WORKER_WEBSERVER_HOST=127.0.0.1
ARG REVISION=unknown
LABEL org.opencontainers.image.revision="${REVISION}"
USER 10001:10001
VOLUME /srv/kgqa
HEALTHCHECK --interval=30s --timeout=10s --start-period=2m --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/health', timeout=5)"]
CMD ["prefect", "worker", "start", "--pool", "cpu", "--type", "process", "--with-healthcheck", "--install-policy", "never", "--no-create-pool-if-not-found"]
