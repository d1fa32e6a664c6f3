"""The RabbitMQ transport; nothing outside this package imports pika."""

from scheduling.broker.rabbitmq.adapter import RabbitBroker

__all__ = ["RabbitBroker"]
