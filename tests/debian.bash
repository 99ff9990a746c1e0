# debian.bash: sourced by what runs in a Debian of its own, beside this machine's: needs root, as
# debootstrap does, and namespaces, in which all that is mounted stays. The sourcing script has the
# repository's folder as its working directory, and `die TEXT`.
#
#   install_release RELEASE ROOT [PACKAGE]...   a minimal release of Debian's in the folder ROOT
#   remove FOLDER...                            such folders
#   copy_sources FOLDER                         the files that git knows, as they are
#   enter ROOT [FROM:TO[:ro]]... -- COMMAND...  COMMAND in it, with folders of this machine, instead
#                                               of this shell, so that what ends this ends that
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

PATH=$PATH:/usr/sbin:/sbin

# The archive that this machine itself installs from.
mirror() {
    # shellcheck disable=SC2016 # apt's variables
    apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' |
        awk -F '|' '$1 == "Debian" && $2 ~ /^https?:/ && $2 !~ /security/ { print $2; exit }'
}

# Nothing is mounted beneath these any more, whatever became of the namespaces.
remove() {
    rm -rf --one-file-system "$@"
}

install_release() {
    local release=$1 root=$2 archive packages
    shift 2
    packages=$(IFS=, && echo "ca-certificates${*:+,$*}")
    [[ $release =~ ^[a-z]+$ ]] || die "$release is no name of a release: give trixie, for instance"
    [[ -e /etc/debian_version ]] || die "this machine has no Debian whose archive could be asked"
    archive=$(mirror)
    [[ $archive ]] || die "apt knows no archive of Debian's: give one in /etc/apt"
    remove "$root.new"
    # What it mounts goes with the namespaces, however it ends.
    unshare --mount --pid --fork --kill-child debootstrap --variant=minbase \
        --include="$packages" "$release" "$root.new" "$archive" >"$root.log" 2>&1 ||
        die "debootstrap failed: see $root.log"
    # As this machine reaches the archive, so does the release.
    cp -a /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf "$root.new/etc/apt/apt.conf.d/" \
        2>/dev/null || :
    mv "$root.new" "$root"
}

copy_sources() {
    git ls-files -z |
        while IFS= read -r -d '' file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done |
        tar --create --null --files-from - | tar --extract --directory "$1"
}

# Not chroot: in one, no further namespaces can be made, as the emulated hosts need.
enter() {
    local root=$1 folders=() name environment=(HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin)
    shift
    while [[ $1 != -- ]]; do
        folders+=("$1")
        shift
    done
    shift
    for name in http_proxy https_proxy no_proxy FLASH_TEST_TIMEOUT FLASH_TEST_LOADED; do
        [[ ${!name-} ]] && environment+=("$name=${!name}")
    done
    # shellcheck disable=SC2016 # expanded by the inner shell
    exec unshare --mount --ipc --pid --fork --kill-child env -i "${environment[@]}" bash -euc '
        root=$1
        shift
        mount --make-rprivate /
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        # What earlier runs left there has the same process numbers.
        mount -t tmpfs tmpfs "$root/tmp"
        mount -t tmpfs tmpfs "$root/dev/shm"
        while [[ $1 != -- ]]; do
            IFS=: read -r from to option <<<"$1"
            mkdir -p "$root$to"
            mount -o "bind${option:+,$option}" "$from" "$root$to"
            shift
        done
        shift
        mkdir -p "$root/mnt/old"
        cd "$root"
        pivot_root . mnt/old
        umount -l /mnt/old
        cd /
        exec "$@"
    ' bash "$root" "${folders[@]}" -- "$@"
}
