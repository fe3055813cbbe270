"""Validate a crate with roc-validator: `python validate_crate.py CRATE PROFILE CONTEXT`.

CONTEXT stands in for the JSON-LD context at w3id.org, so that no address is asked. It prints each
finding as a JSON object a line.
"""

import json
import sys
from pathlib import Path

import rdflib.plugins.shared.jsonld.context as of_rdflib
import requests
from rocrate_validator import models, services

crate, profile, context = sys.argv[1:]
text = Path(context).read_text(encoding="utf-8")
elsewhere = of_rdflib.source_to_json


def source_to_json(source, *words, **options):
    if str(source).startswith("https://w3id.org/ro/"):
        return json.loads(text), None
    return elsewhere(source, *words, **options)


def send(session, request, **options):
    assert request.url.startswith("https://w3id.org/ro/"), request.url
    answer = requests.Response()
    answer.status_code, answer._content, answer.url = 200, text.encode(), request.url
    answer.headers["Content-Type"], answer.request = "application/ld+json", request
    return answer


of_rdflib.source_to_json = source_to_json
requests.Session.send = send
least = models.Severity.RECOMMENDED
found = services.validate(
    services.ValidationSettings(
        rocrate_uri=crate, profile_identifier=profile, requirement_severity=least, no_cache=True
    )
)
for issue in found.get_issues():
    facts = {"severity": issue.severity.name, "check": issue.check.identifier}
    print(json.dumps(facts | {"message": str(issue.message)}))
print(json.dumps({"checks": len(found.executed_checks)}))
