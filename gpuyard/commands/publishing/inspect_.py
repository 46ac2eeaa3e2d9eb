"""`gpuyard inspect`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.errors import UsageError
from gpuyard.publish import reference, signing
from gpuyard.publish.page import page


def inspect_(
    image: Annotated[str, typer.Argument(metavar="REF", help="HOST:PORT/NAME:TAG, or @sha256:… for a digest.")],
    key: Annotated[Path | None, typer.Option(help="The signer's public key: only what it signed counts.")] = None,
    identity: Annotated[
        str,
        typer.Option(metavar="REGEX", help="A pipeline's identity in a keyless signature: only what it signed counts."),
    ] = "",
    issuer: Annotated[str, typer.Option(help="Who vouches for that identity.")] = signing.GITHUB,
    ca_file: Annotated[Path | None, typer.Option(help="Who signed the registry's certificate.")] = None,
    plain_http: Annotated[bool | None, typer.Option(help="No TLS; not needed for loopback addresses.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON, with all evidence in full.")] = False,
) -> None:
    """Show a published image: contents, driver, GPUs, the verification report, evidence of training, signature.

    Exit codes: 0 shown; 1 not there, or with --key or --identity: not signed by it.
    """
    if key and not key.is_file():
        raise UsageError("key-missing", f"--key {key}: no such file; expected the signer's public key (cosign.pub)")
    if key and identity:
        raise UsageError("key-with-keyless", "--key and --identity exclude each other: name one signer")
    trust = signing.Key(key) if key else signing.Keyless(identity, issuer) if identity else None
    repository, tag = reference.parse(image, ca_file, plain_http)
    found = reference.read(repository, tag, trust)
    if as_json:
        print(json.dumps({**vars(found), "repository": str(repository)}, default=vars, indent=1))
    else:
        print(page(found, shutil.get_terminal_size((100, 40)).columns))
    if trust and found.signature != "good":
        raise typer.Exit(1)
