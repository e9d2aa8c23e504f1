"""Packs a directory of a release: `archive.py DIRECTORY SECONDS` writes DIRECTORY.tar.gz. The same files give the same bytes, on every system."""

import gzip
import pathlib
import sys
import tarfile

directory, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nothing of the machine that packs: no user, no time, of the permissions only whether it is a program."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = seconds
    is_program = pathlib.Path(member.name).name in ("chipless", "chipless.exe")
    member.mode = 0o755 if is_program or member.isdir() else 0o644
    return member


with (
    open(f"{directory}.tar.gz", "wb") as file,
    gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=seconds) as packed,
    tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
):
    for path in sorted([directory, *directory.rglob("*")]):
        archive.add(path, arcname=path.as_posix(), recursive=False, filter=plain)
