"""Reference training: small data, models and loops whose outcome is known, in one definition each."""
