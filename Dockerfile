# syntax=docker/dockerfile:1

# One image for every service: `cronsite run_scheduler`, `run_worker`, `run_web`, `migrate`, ...
#   docker build -t cronsite .
# A project of your own builds on it: FROM cronsite, pip install your app, EXTRA_APPS=your_app.

# The Debian release is named so that the package names below keep their meaning.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
# mysqlclient has no wheel for Linux: it is compiled here, and only its library goes into the final stage.
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev libmariadb-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*
ARG EXTRAS=site,mysql,postgres
RUN python3 -m venv /app
ENV PATH=/app/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
# What the code needs with the EXTRAS above, by version and hash. `make lock` writes the file.
COPY docker/requirements.lock ./
RUN pip install --require-hashes -r requirements.lock
# What other EXTRAS need, from empty packages: these layers are made again only when one of the files changes.
COPY pyproject.toml README.md LICENSE hatch_build.py ./
RUN mkdir cronsite scheduling reports templates \
    && touch cronsite/__init__.py scheduling/__init__.py reports/__init__.py templates/.keep \
    && pip install ".[${EXTRAS}]" \
    && pip uninstall --yes cronsite
COPY cronsite cronsite
COPY scheduling scheduling
COPY reports reports
COPY templates templates
RUN pip install --no-deps .
# The key is thrown away: collecting files signs nothing. Settings refuse to be without one.
RUN SECRET_KEY=only-for-collectstatic STATIC_ROOT=/app/static cronsite collectstatic --noinput

FROM ${BASE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends libmariadb3 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 cron \
    && useradd --uid 10001 --gid cron --no-create-home --home-dir /data --shell /usr/sbin/nologin cron \
    # A named volume takes owner and mode from the folder it is mounted on first.
    && install -d -o cron -g cron -m 0750 /data /data/media
COPY --from=build /app /app
# PYTHONTZPATH is empty so that zones come from the tzdata package, the same in every container, never from
# what the base image happens to hold.
ENV PATH=/app/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONTZPATH= \
    DATA_DIR=/data \
    STATIC_ROOT=/app/static
WORKDIR /app
USER 10001:10001
EXPOSE 8000
# Producers and consumers stop at once, consumers drain first. Probes differ by service: see docker-compose.yml.
STOPSIGNAL SIGTERM
ENTRYPOINT ["cronsite"]
CMD ["run_web", "--host=0.0.0.0", "--port=8000"]
