# kernel.bash: sourced by `lab`: the kernel of the guests, and the initial RAM disk with the modules that they need. Both
# come from the package of Debian's kernel, which is unpacked and not installed.
#
#   prepare_kernel           makes both in $kernel_folder, where they are not yet
#   "${kernel_tools[@]}"     what that needs, PROGRAM:PACKAGE
#
# The sourcing script has `die TEXT STATUS`, and its folder in $here.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

kernel_folder=${FLASH_LAB_KERNEL:-$(cd "$here/../.." && pwd)/build-rdma}
# shellcheck disable=SC2034 # used by the sourcing script
kernel_tools=(busybox:busybox-static cpio:cpio depmod:kmod modprobe:kmod xz:xz-utils)
kernel_modules=(virtio_pci virtio_net 9p 9pnet_virtio overlay crc32_generic rdma_rxe ib_uverbs rdma_ucm sch_netem sch_tbf)

# The package that holds the kernel: the one that the package for the newest kernel depends on.
kernel_package() {
    apt-cache depends linux-image-amd64 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }'
}

# unpack FOLDER: the package of the kernel. A user may download what only root may install.
unpack() {
    local package
    if ! command -v apt-get || ! command -v dpkg-deb; then
        die 'there is no kernel for guests: this machine has no apt that could download one' 77
    fi >/dev/null
    package=$(kernel_package)
    [[ $package ]] || die 'there is no kernel for guests: apt knows no package linux-image-amd64' 77
    (cd "$1" && apt-get -o APT::Sandbox::User= download --quiet --quiet "$package") >"$1/log" 2>&1 ||
        die "there is no kernel for guests: apt-get download $package failed ($(tail -n 1 "$1/log"))" 77
    dpkg-deb --extract "$1"/linux-image-*.deb "$1/package"
}

# make_initrd FOLDER VERSION: from what is unpacked in FOLDER/package.
make_initrd() {
    local root=$1/initrd package=$1/package version=$2 modules module
    modules=$package
    [[ -d $package/lib/modules ]] || modules=$package/usr # Debian 13
    mkdir -p "$root"/{bin,dev,low,modules,new,proc,sys,top}
    cp "$(command -v busybox)" "$here/init" "$root/"
    mv "$root/busybox" "$root/bin/"
    depmod --basedir "$modules" "$version"
    # In the order in which the kernel takes them.
    for module in "${kernel_modules[@]}"; do
        modprobe --dirname "$modules" --set-version "$version" --show-depends "$module" 2>/dev/null |
            awk '$1 == "insmod" { print $2 }' || : # it may be built in
    done | awk '!seen[$0]++' >"$1/modules"
    while read -r module; do
        case $module in
        *.xz) xz --decompress --stdout "$module" >"$root/modules/$(basename "$module" .xz)" ;;
        *) cp "$module" "$root/modules/" ;;
        esac
        basename "$module" .xz >>"$root/modules/order"
    done <"$1/modules"
    (cd "$root" && find . | cpio --create --format newc --quiet | gzip -1) >"$1/initrd.new"
}

prepare_kernel() {
    local scratch image
    if [[ -e $kernel_folder/initrd && ! $here/init -nt $kernel_folder/initrd && \
        ! $here/kernel.bash -nt $kernel_folder/initrd ]]; then
        return
    fi
    mkdir -p "$kernel_folder"
    scratch=$(mktemp -d "$kernel_folder/new.XXXXXX")
    (
        trap 'rm -rf "$scratch"' EXIT
        unpack "$scratch"
        image=$(compgen -G "$scratch/package/boot/vmlinuz-*")
        make_initrd "$scratch" "${image##*/vmlinuz-}"
        mv "$image" "$kernel_folder/vmlinuz"
        mv "$scratch/initrd.new" "$kernel_folder/initrd"
    )
}
