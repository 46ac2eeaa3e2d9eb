"""Services under s6: set-up, supervision, health, stopping."""
