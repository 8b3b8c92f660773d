# The worker of the pool `gpu`, from the repository root:
#   docker build -f infra/cuda.Dockerfile -t kgqa-worker-cuda:0.1.0 .
# The CUDA libraries come with the wheels of torch, the driver from the host by the NVIDIA container toolkit; so the base
# is plain Python.  TORCH_ARGS="--index-url <wheel index>" chooses a CUDA that the host's driver serves.
FROM python:3.11.15-slim
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
    && install -d -o kgqa -g kgqa /srv/kgqa
WORKDIR /app
COPY constraints.txt ./
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
# TOKENIZERS_PARALLELISM is no token.
# hadolint ignore=DL3064
ENV KGQA_HOME=/srv/kgqa \
    PREFECT_LOCAL_STORAGE_PATH=/srv/kgqa/prefect/results \
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE=false \
    PREFECT_LOGGING_EXTRA_LOGGERS=kgqa \
    PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW=ignore \
    PREFECT_WORKER_WEBSERVER_HOST=127.0.0.1 \
    HF_HOME=/srv/kgqa/huggingface \
    NUMBA_CACHE_DIR=/tmp/numba \
    MPLCONFIGDIR=/tmp/matplotlib \
    TOKENIZERS_PARALLELISM=false \
    TRANSFORMERS_VERBOSITY=error \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG REVISION=unknown
LABEL org.opencontainers.image.revision="${REVISION}"
USER 10001:10001
VOLUME /srv/kgqa
HEALTHCHECK --interval=30s --timeout=10s --start-period=2m --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/health', timeout=5)"]
CMD ["prefect", "worker", "start", "--pool", "gpu", "--type", "process", "--limit", "1", "--with-healthcheck", "--install-policy", "never", "--no-create-pool-if-not-found"]
