"""What Prometheus and load balancers ask for: /metrics, /healthz and /readyz, and the figures of one process."""
