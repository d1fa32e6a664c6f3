"""The RabbitMQ transport. Only this package imports pika."""

from scheduling.broker.rabbitmq.adapter import RabbitBroker

__all__ = ["RabbitBroker"]
