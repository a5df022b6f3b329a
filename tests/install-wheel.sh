# Sourced: puts libraries of PyPI's wheels into folders of this repository. Needs python3 with pip.

temporary=

cleanup() {
    if [[ -n $temporary ]]; then rm -rf "$temporary"; fi
}
trap cleanup EXIT

# install_wheel <folder> <package> <version> <pattern of a file that must be there>…
# Puts the files of the wheel that match the patterns, and its licences, into the folder. Does nothing
# when they are there already.
install_wheel() {
    local folder=$1 package=$2 version=$3
    shift 3
    if [[ -f $folder/version && $(<"$folder/version") == "$version" ]]; then return; fi

    local destination
    destination=$(dirname "$folder")
    mkdir -p "$destination"
    # Beside the destination, so that the rename at the end is atomic.
    temporary=$(mktemp -d "$destination/.new-XXXXXX")
    echo "installing $package $version into $folder" >&2
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --dest "$temporary/wheel" "$package==$version"
    python3 -m zipfile -e "$temporary"/wheel/*.whl "$temporary/unpacked"

    local new=$temporary/new pattern
    mkdir "$new"
    for pattern in "$@" 'License*.txt' 'LICENSE*'; do
        find "$temporary/unpacked" -type f -name "$pattern" -exec mv -t "$new" {} +
    done
    for pattern in "$@"; do
        if ! compgen -G "$new/$pattern" >/dev/null; then
            echo "error: the wheel of $package $version holds no $pattern" >&2
            exit 1
        fi
    done
    echo "$version" >"$new/version"
    chmod 755 "$new"

    rm -rf "$folder"
    # -T: when another run was faster, fail instead of moving into its folder; its result is as good.
    mv -T "$new" "$folder" 2>/dev/null || [[ -f $folder/version ]]
    rm -rf "$temporary"
    temporary=
}
