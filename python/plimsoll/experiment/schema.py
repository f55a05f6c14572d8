"""The JSON Schema of experiment files, for editors. `python -m plimsoll.experiment.schema` writes it."""

import json

from plimsoll.experiment.model import Experiment


def schema() -> str:
    """The schema as it is committed."""
    document = Experiment.model_json_schema()
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
