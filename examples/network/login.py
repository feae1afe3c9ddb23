"""Asks GitHub for the name of the token's owner; the token itself is not here."""
import os

import requests

print(os.environ["GITHUB_TOKEN"])
print(requests.get("https://api.github.com/user", timeout=30).json()["login"])
