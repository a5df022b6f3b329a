"""Makes the wheel (PEP 517): the package, libsparserl, sparserl-server and sparserl.h.

Builds them in release mode, unless SPARSERL_LIBRARY names a folder that has them already
(libsparserl.a, and sparserl-server there or one above), and links the library, as `ffi/install/install.sh` does.
"""

import base64
import hashlib
import os
import platform
import stat
import subprocess
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CRATE = HERE.parent
ROOT = CRATE.parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    archive, server = built()
    package = {f"sparserl/{file.name}": file for file in sorted((HERE / "sparserl").glob("*.py"))}
    package |= {f"sparserl/{file.name}": file for file in (CRATE / "sparserl.h", server)}
    info = f"sparserl-{version}.dist-info"
    licences = {f"{info}/licenses/{file.name}": file for file in sorted(ROOT.glob("LICENSE-*"))}
    tag = f"py3-none-{platform_tag()}"
    name = f"sparserl-{version}-{tag}.whl"
    with Wheel(Path(wheel_directory) / name) as wheel:
        for place, file in (package | licences).items():
            wheel.add(place, file.read_bytes(), is_program=file == server)
        wheel.add("sparserl/libsparserl.so", linked(archive))
        wheel.add(f"{info}/METADATA", metadata(project, version, licences).encode())
        about = ["Wheel-Version: 1.0", "Generator: sparserl", "Root-Is-Purelib: false", f"Tag: {tag}", ""]
        wheel.add(f"{info}/WHEEL", "\n".join(about).encode())
        wheel.add_record(f"{info}/RECORD")
    return name


def built():
    """The static library and the server."""
    named = os.environ.get("SPARSERL_LIBRARY")
    if named:
        folder = Path(named).resolve()
    else:
        subprocess.run(["cargo", "build", "--release", "--locked", "--manifest-path", CRATE / "Cargo.toml",
                        "--lib", "--bins"], check=True)
        folder = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "release"
    servers = [place / "sparserl-server" for place in (folder, folder.parent)]
    server = next((server for server in servers if server.is_file()), servers[0])
    return folder / "libsparserl.a", server


def linked(archive):
    """The shared library, with versions of its symbols."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libsparserl.so"
        subprocess.run([CRATE / "install/link.sh", archive, library], check=True)
        return library.read_bytes()


def platform_tag():
    """Machines with at least this glibc (PEP 600): the binaries need nothing else."""
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    return f"manylinux_{glibc}_{platform.machine()}"


def metadata(project, version, licences):
    lines = [
        "Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}",
        f"Summary: {project['description']}", f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"License-File: {Path(place).name}" for place in licences),
        *(f"Requires-Dist: {needed}" for needed in project["dependencies"]),
    ]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {needed} ; extra == "{extra}"' for needed in needs]
    return "\n".join(lines) + "\n"


class Wheel(zipfile.ZipFile):
    """A wheel in the making, which keeps its record."""

    def __init__(self, path):
        # The fastest level, for the library, which is most of it.
        super().__init__(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.record = []

    def add(self, place, content, is_program=False):
        # Always the same time, so that the same files make the same wheel.
        entry = zipfile.ZipInfo(place, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
        self.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{place},sha256={digest},{len(content)}")

    def add_record(self, place):
        self.add(place, "\n".join([*self.record, f"{place},,\n"]).encode())
