# SPDX-License-Identifier: Apache-2.0
"""Sources that a tool reads together, because most of its time is spent in the headers they share."""

import tempfile


def run_joined(batch, folder, run):
    """What run(path) prints for a source in `folder` that includes the files of the batch.

    run gives (text, whether the source did not compile). Two files may use a name for different
    things: a batch that does not compile is divided and tried again.
    """
    if len(batch) == 1:
        return run(str(batch[0]))[0]
    with tempfile.NamedTemporaryFile("w", suffix=".cc", dir=folder) as joined:
        joined.write("".join(f'#include "{path}"\n' for path in batch))
        joined.flush()
        text, is_broken = run(joined.name)
    if not is_broken:
        return text
    middle = len(batch) // 2
    return run_joined(batch[:middle], folder, run) + run_joined(batch[middle:], folder, run)
