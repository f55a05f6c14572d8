"""Passwords never enter a record: connection strings are redacted before they are written.

Both spellings of libpq carry one: postgresql://user:secret@host/db?password=secret and "host=x password='secret'".
"""

import re

_HIDDEN = "***"
# Everything between the first colon after the user name and the last @ before the path: a password may hold : or @.
_URL_USERINFO = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]*://[^\s:@/]*:)\S*(?P<at>@)", re.IGNORECASE)
_PAIR = re.compile(
    r"(?P<key>\b(?:\w*password|sslpassword|passwd|pgpassword))(?P<eq>\s*=\s*)"
    r"(?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|(?:\\.|[^\s&'\"])+)",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """The text with every password of a URL or a key=value string replaced."""
    text = _URL_USERINFO.sub(rf"\g<head>{_HIDDEN}\g<at>", text)
    return _PAIR.sub(rf"\g<key>\g<eq>{_HIDDEN}", text)
