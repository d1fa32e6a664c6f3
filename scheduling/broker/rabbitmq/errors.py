"""Turns pika's errors into sentences for operators."""

from __future__ import annotations

import re
import socket
import ssl

from pika import exceptions

from scheduling.broker.base import BrokerRefused, BrokerUnavailable
from scheduling.broker.rabbitmq.address import Address

ACCESS_REFUSED, NOT_ALLOWED = 403, 530


def explain(error: BaseException | None, address: Address) -> BrokerUnavailable:
    """Turn an exception of pika into a `BrokerUnavailable` whose text is a sentence for operators."""
    cause = _cause(error)
    if isinstance(cause, BrokerUnavailable):
        return cause
    return _refusal(cause, address) or BrokerUnavailable(_failure(cause, address))


def _refusal(cause: BaseException | None, address: Address) -> BrokerRefused | None:
    """The exception for a refused login; None if the broker did not refuse the login."""
    code = cause.reply_code if isinstance(cause, exceptions.ConnectionClosedByBroker) else 0
    wrong_login = exceptions.ProbableAuthenticationError | exceptions.AuthenticationError
    if isinstance(cause, wrong_login) or code == ACCESS_REFUSED:
        return BrokerRefused(
            f"RabbitMQ at {address} refuses the user or the password. Check CRON_BROKER_URL; "
            "note that `guest` may log in from the broker's own machine only."
        )
    if isinstance(cause, exceptions.ProbableAccessDeniedError) or code == NOT_ALLOWED:
        vhost = address.vhost
        return BrokerRefused(
            f"RabbitMQ at {address} has no virtual host {vhost!r} for this user. "
            f"Make it (rabbitmqctl add_vhost {vhost}) and allow it "
            f"(rabbitmqctl set_permissions --vhost {vhost} USER '.*' '.*' '.*')."
        )
    return None


def _failure(cause: BaseException | None, address: Address) -> str:
    if isinstance(cause, exceptions.IncompatibleProtocolError):
        return f"What answers at {address} does not speak AMQP 0-9-1, or speaks TLS on this port."
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"The certificate of RabbitMQ at {address} is not accepted: {cause.verify_message.rstrip('.')}. "
            "Name the authority's file with ?cafile= in CRON_BROKER_URL."
        )
    if isinstance(cause, ssl.SSLError):
        return f"No TLS with {address}: {cause.reason or str(cause)}. Is it the TLS port?"
    if isinstance(cause, socket.gaierror):
        return f"The host name in {address} cannot be resolved: {cause.strerror}."
    if "Timeout while setting up AMQP" in str(cause):
        return f"What listens at {address} says nothing: its server is suspended, or does not speak AMQP 0-9-1."
    if isinstance(cause, ConnectionRefusedError):
        return f"Nothing listens at {address}."
    if isinstance(cause, exceptions.ConnectionClosed | exceptions.ChannelClosed):
        return f"RabbitMQ at {address} closed the connection: {cause.reply_code} {cause.reply_text}"
    return f"RabbitMQ at {address} cannot be reached: {_short(cause)}"


def _cause(error: BaseException | None) -> BaseException | None:
    """The original exception, which pika wraps two or three times."""
    seen = 0
    while error is not None and seen < 8:
        seen += 1
        inner = getattr(error, "exceptions", None) or getattr(error, "exception", None)
        if inner is None and isinstance(error, exceptions.AMQPConnectionError) and error.args:
            inner = error.args[0]
        if isinstance(inner, list | tuple):
            inner = inner[-1] if inner else None
        if not isinstance(inner, BaseException):
            break
        error = inner
    return error


def _short(error: BaseException | None) -> str:
    text = re.sub(r"\s+", " ", str(error) or type(error).__name__)
    return text[:300]
