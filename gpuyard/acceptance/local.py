"""HTTP to this machine's own containers: never through a proxy, whatever the environment says."""

from __future__ import annotations

import requests

HTTP = requests.Session()
HTTP.trust_env = False
