"""Writes the review in answer.json as the one comment of swink on a pull request, as text, never as markup.

Wants GITHUB_TOKEN, GITHUB_REPOSITORY, PR_NUMBER and GITHUB_API_URL; has no dependencies.
"""

import json
import os
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any

MARK = "<!-- swink-review -->"
MOST = 60_000
MOST_FINDINGS = 50
AUTHOR = "github-actions[bot]"


def main(path: str) -> None:
    """Make the comment, or change the one that is there."""
    text = comment(json.loads(Path(path).read_bytes()))
    number = os.environ["PR_NUMBER"]
    if not re.fullmatch(r"[0-9]{1,10}", number):
        raise SystemExit("comment: PR_NUMBER is no number")
    issue = f"/repos/{os.environ['GITHUB_REPOSITORY']}"
    page = 1
    while comments := request("GET", f"{issue}/issues/{number}/comments?per_page=100&page={page}"):
        for one in comments:
            if one["user"]["login"] == AUTHOR and one["body"].startswith(MARK):
                request("PATCH", f"{issue}/issues/comments/{int(one['id'])}", {"body": text})
                return
        page += 1
    request("POST", f"{issue}/issues/{number}/comments", {"body": text})


def comment(answer: dict[str, Any]) -> str:
    """The comment for an answer that fits the schema; anything else is an error."""
    lines = [MARK, "**Review by swink**", "", plain(answer["summary"]), ""]
    for finding in answer["findings"][:MOST_FINDINGS]:
        place = f"{plain(finding['file'], 200)}:{int(finding['line'])}"
        lines.append(f"- {place}: {plain(finding['problem'])}")
    if not answer["findings"]:
        lines.append("No bugs found.")
    return "\n".join(lines)[:MOST]


def plain(text: str, most: int = 2_000) -> str:
    """Words of a model as words on the page: no markup, links or images, nobody called by @."""
    if not isinstance(text, str):
        raise SystemExit("comment: answer.json does not fit the schema")
    line = " ".join("".join(one if one.isprintable() else " " for one in text[:most]).split())
    line = re.sub(
        r"[\\`*_{}\[\]()#+!|~$:./-]", lambda found: f"&#{ord(found[0])};", line.replace("&", "&amp;")
    )
    return (
        line.replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("@", "&#64;\u2060")
        .replace("&#35;", "&#35;\u2060")
    )


def request(method: str, path: str, body: Any = None) -> Any:
    """One request to the API; redirects are not followed, so that the token goes nowhere else."""
    url = os.environ.get("GITHUB_API_URL", "").rstrip("/") + path
    headers = {
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "Accept": "application/vnd.github+json",
        "Content-Type": "application/json",
    }
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.build_opener(_NoRedirects).open(asked, timeout=30) as answer:
        return json.load(answer)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Follow none: urllib raises the status instead."""


if __name__ == "__main__":
    main(sys.argv[1])
