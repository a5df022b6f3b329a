"""Makes the wheel (PEP 517): the package, libsparserl, sparserl-server and sparserl.h; one that names this folder
in the place of the package (PEP 660, `pip install -e`); and an archive of the sources.

Builds the libraries in release mode, unless SPARSERL_LIBRARY names a folder that has them already
(libsparserl.a, and sparserl-server there or one above), and links the library, as `ffi/install/install.sh` does.
"""

import base64
import gzip
import hashlib
import io
import os
import platform
import stat
import subprocess
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CRATE = HERE.parent
ROOT = CRATE.parent
# Files that nothing is built of.
MEASURED = (".parquet", ".gz")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    archive, server = built()
    package = {f"sparserl/{file.name}": file for file in sorted((HERE / "sparserl").glob("*.py"))}
    package |= {f"sparserl/{file.name}": file for file in (CRATE / "sparserl.h", server)}
    with Wheel(wheel_directory) as wheel:
        for place, file in package.items():
            wheel.add(place, file.read_bytes(), is_program=file == server)
        wheel.add("sparserl/libsparserl.so", linked(archive))
        return wheel.finished()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    archive, server = built()
    # Where the package looks for them; it finds the header in the folder of the crate.
    for file, content in ((server.name, server.read_bytes()), ("libsparserl.so", linked(archive))):
        place = HERE / "sparserl" / file
        # Another file in the place of one that may be in use.
        place.unlink(missing_ok=True)
        place.write_bytes(content)
        place.chmod(0o755)
    with Wheel(wheel_directory) as wheel:
        wheel.add("sparserl.pth", f"{HERE}\n".encode())
        return wheel.finished()


def build_sdist(sdist_directory, config_settings=None):
    """All that git keeps, for Cargo builds no workspace without its members, but what was measured."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, stdout=subprocess.PIPE)
    names = [name for name in listed.stdout.decode().split("\0") if name and not name.endswith(MEASURED)]
    folder = f"sparserl-{version()}"
    description = (HERE / "pyproject.toml").read_text().replace('backend-path = ["."]', 'backend-path = ["ffi/python"]')
    contents = {name: (ROOT / name).read_bytes() for name in names}
    contents |= {"pyproject.toml": description.encode(), "PKG-INFO": metadata().encode()}
    path = Path(sdist_directory) / f"{folder}.tar.gz"
    # Always the same time, here too.
    with gzip.GzipFile(path, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode = len(content), 0o755 if os.access(ROOT / name, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return path.name


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def licences():
    return sorted(ROOT.glob("LICENSE-*"))


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


def metadata():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    lines = [
        "Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version()}",
        f"Summary: {project['description']}", f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"License-File: {file.name}" for file in licences()),
        *(f"Requires-Dist: {needed}" for needed in project["dependencies"]),
    ]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {needed} ; extra == "{extra}"' for needed in needs]
    return "\n".join(lines) + "\n"


class Wheel(zipfile.ZipFile):
    """A wheel in the making, which keeps its record."""

    def __init__(self, folder):
        self.tag, self.record = f"py3-none-{platform_tag()}", []
        # The fastest level, for the library, which is most of it.
        super().__init__(Path(folder) / f"sparserl-{version()}-{self.tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=1)

    def add(self, place, content, is_program=False):
        # Always the same time, so that the same files make the same wheel.
        entry = zipfile.ZipInfo(place, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
        self.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{place},sha256={digest},{len(content)}")

    def finished(self):
        """Its name, when all that it says of itself is in it, too."""
        info = f"sparserl-{version()}.dist-info"
        for file in licences():
            self.add(f"{info}/licenses/{file.name}", file.read_bytes())
        self.add(f"{info}/METADATA", metadata().encode())
        about = ["Wheel-Version: 1.0", "Generator: sparserl", "Root-Is-Purelib: false", f"Tag: {self.tag}", ""]
        self.add(f"{info}/WHEEL", "\n".join(about).encode())
        place = f"{info}/RECORD"
        self.add(place, "\n".join([*self.record, f"{place},,\n"]).encode())
        return Path(self.filename).name
