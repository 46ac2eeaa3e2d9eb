"""The checks, one module per link of the chain; each exports its list as CHECKS."""
