"""What the exercises say, in the reader's language.

The English sentences stand in the checks, beside the mistakes that they name. They are the keys of the table
of every other language, `labs/exercises/LANGUAGE.json`: sentence -> translation, with the same {places}.
"""

import functools
import json
import os
from pathlib import Path

TABLES = Path(__file__).parent


def language() -> str:
    """The language of the reader: what the environment variable LABS_LANGUAGE says, such as "zh", or "en"."""
    return os.environ.get("LABS_LANGUAGE", "en")


def say(sentence: str, **places: object) -> str:
    """Return an English sentence in the reader's language, its {places} filled as `str.format` does.

    Raises: ValueError if the language has no table, or its table lacks the sentence.
    """
    if language() != "en":
        table = _table(TABLES / f"{language()}.json")
        if sentence not in table:
            raise ValueError(f"{language()}.json must translate {sentence!r}, which it does not have")
        sentence = table[sentence]
    return sentence.format(**places) if places else sentence


@functools.cache
def _table(file: Path) -> dict[str, str]:
    if not file.is_file():
        raise ValueError(
            f"there is no {file.name} for readers of {file.stem!r}: translate the sentences into one"
        )
    return json.loads(file.read_text("utf8"))
