"""Runs a notebook in a container: a program for `python -c`, whose argument is the notebook's path."""

RUN = """
import json, sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbformat.validate(book)
nbclient.NotebookClient(book, timeout=300).execute()
outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
text = "".join(output.get("text", "") for output in outputs)
images = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
print(json.dumps({"text": text, "images": images}))
"""
"""Its last line of output is JSON: the printed text, and the PNG pictures in base64."""
