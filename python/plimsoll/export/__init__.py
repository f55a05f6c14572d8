"""Export: the record in forms that other programs read: SQL over all records, traces, stacks.

The fact that constrains it: nothing is shown that the record does not hold. Where it has a sum and no times, the export
has a sum and no times. Reads records only, and writes nothing but the file that was asked for.
"""


class ExportError(Exception):
    """A question that cannot be answered, or an export that cannot be made; the message says what can."""
