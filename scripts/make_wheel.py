#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the Python module and the library it needs.

Usage: make_wheel.py --version VERSION --module acl.abi3.so --library libascendcl.so
                     --python SOURCES --license LICENSE --output FOLDER
                     [--strip PROGRAM] [--unpacked]

A wheel is a zip file with a list of its contents; nothing is needed to make one, and equal contents
make equal files. SOURCES has the package understudy and the stubs. With --strip nothing in the
wheel has debug information, which is most of the library. With --unpacked the folder gets what the
wheel would install, but for the library, which has a place of its own in the installed tree.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import subprocess
import sys
import tempfile
import zipfile

# The unpacked tree has a name of its own: pip would take a wheel of the same name for installed.
NAMES = {"wheel": "understudy", "tree": "understudy-tree"}
METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: A software NPU: the Ascend runtime's memory system on any Linux machine
License: Apache-2.0
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Framework :: Pytest
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: make_wheel
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY_POINTS = """\
[pytest11]
understudy = understudy.pytest_plugin
"""
EXECUTABLE, READABLE = 0o755, 0o644


def package_files(sources, folder):
    """Yields (name, contents) of a package's own files."""
    for path in sorted((sources / folder).iterdir()):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield f"{folder}/{path.name}", path.read_bytes()


def binary(path, args):
    if not args.strip:
        return path.read_bytes()
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run([args.strip, "-g", "-o", stripped.name, str(path)], check=True)
        return pathlib.Path(stripped.name).read_bytes()


def names(args):
    """What it is called, and the folder that describes it."""
    name = NAMES["tree" if args.unpacked else "wheel"]
    return name, f"{name.replace('-', '_')}-{args.version}.dist-info"


def contents(args, tag):
    """Yields (name, contents) of everything but the list of contents."""
    yield "acl.abi3.so", binary(args.module, args)
    yield from package_files(args.python, "acl-stubs")
    yield from package_files(args.python, "understudy")
    if not args.unpacked:
        yield "understudy/lib64/libascendcl.so", binary(args.library, args)
    name, info = names(args)
    yield f"{info}/METADATA", METADATA.format(name=name, version=args.version).encode()
    yield f"{info}/WHEEL", WHEEL.format(tag=tag).encode()
    yield f"{info}/entry_points.txt", ENTRY_POINTS.encode()
    yield f"{info}/LICENSE", args.license.read_bytes()


def record(files, info):
    """The list of contents: name, digest, size."""
    lines = []
    for name, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return f"{info}/RECORD", "".join([*lines, f"{info}/RECORD,,\n"]).encode()


def mode_of(name):
    return EXECUTABLE if name.endswith(".so") else READABLE


def write_wheel(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files:
            entry = zipfile.ZipInfo(name)  # its time is always the same
            entry.external_attr = (0o100000 | mode_of(name)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


def write_folder(folder, files):
    for name, data in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode_of(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    for name in ("module", "library", "python", "license", "output"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--strip", metavar="PROGRAM")
    parser.add_argument("--unpacked", action="store_true")
    args = parser.parse_args()

    tag = f"cp38-abi3-linux_{platform.machine()}"
    files = list(contents(args, tag))
    args.output.mkdir(parents=True, exist_ok=True)
    if args.unpacked:
        write_folder(args.output, files)  # pip owns it not, so it has no list of contents
    else:
        name, info = names(args)
        files.append(record(files, info))
        write_wheel(args.output / f"{name}-{args.version}-{tag}.whl", files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
