"""SSH: keys, sshd's settings, the environment of sessions."""
