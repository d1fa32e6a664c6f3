"""The pages of alerts: what is wrong now, who was told, and who has taken notice."""
