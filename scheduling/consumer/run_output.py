"""Makes the buffers for the output of runs. A buffer also logs the output, as `[Worker:name:id] text`."""

from __future__ import annotations

import logging

from scheduling.broker import Delivery
from scheduling.conf import own_logging
from scheduling.consumer.batch import Batch
from scheduling.consumer.output import Echo, OutputBuffer
from scheduling.consumer.running import label_of
from scheduling.consumer.secret_filter import SecretFilter, secret_texts, secrets_of
from scheduling.handlers.run_config import RunConfig

ECHO_LEVELS = {"DEBUG": 10, "INFO": 20, "SUCCESS": 25, "WARN": 30, "ERROR": 40}


def output_for(delivery: Delivery, config: RunConfig, limit: int) -> OutputBuffer:
    """The buffer of a run that is called by itself.

    Args:
        limit: how many bytes of the output are kept.
    """
    return _buffer(delivery, config, limit, secrets_of(delivery.message, config))


def share_output(batch: Batch, limit: int) -> None:
    """Give the runs of a closed batch their buffers. The leader's gets what the batch prints.

    The batch may print the secrets of each of its runs, and so may the error of each. All of them are masked.
    """
    texts = {text for run in batch.members for text in secret_texts(run.delivery.message, run.config)}
    secrets = SecretFilter(texts) if texts else None
    for run in batch.members:
        own = secrets.twin() if secrets is not None else None
        if run is batch.leader:
            run.output = _buffer(run.delivery, run.config, limit, own)
        else:
            run.output = OutputBuffer(limit, None, own)


def _buffer(delivery: Delivery, config: RunConfig, limit: int, secrets: SecretFilter | None) -> OutputBuffer:
    message = delivery.message
    head = label_of(message.type, config.handler, message.execution_id)
    logger = logging.getLogger("scheduling.output")
    echo: Echo | None = None
    if logger.isEnabledFor(logging.INFO):
        # The child has given the record to the project's handlers. Repeated at its own level, each line of it would be
        # one more event for them.
        loudest = logging.ERROR if own_logging() else logging.INFO

        def echo(level: str, text: str) -> None:
            logger.log(min(ECHO_LEVELS.get(level, logging.INFO), loudest), "%s %s", head, text)

    return OutputBuffer(limit, echo, secrets)
