#!/usr/bin/env bash
# boot_files.sh DIR: puts into DIR what a guest boots: the distribution's kernel, downloaded and unpacked but not installed, and an initrd
# with its modules for virtio, 9p and soft-RoCE. Does nothing when both are there. Exits with 77 and a reason where they cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
[ ! -e "$dir/vmlinuz" ] || [ ! -e "$dir/initrd" ] || exit 0
for program in qemu-system-x86_64 busybox cpio modprobe; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || { echo "skipped: no $program here (scripts/setup.sh rdma)"; exit 77; }
done
export PATH=$PATH:/usr/sbin:/sbin

root=$dir/kernel
if [ ! -d "$root/lib/modules" ]; then
    package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    mkdir -p "$root"
    (cd "$root" && apt-get download -q "$package" >/dev/null && dpkg-deb -x linux-image-*.deb .) || { echo "skipped: the kernel's package cannot be downloaded"; exit 77; }
    rm -f "$root"/linux-image-*.deb
fi
version=$(ls "$root/lib/modules")
depmod -b "$root" "$version"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{bin,proc,sys,dev,lower,upper,root,modules}
cp "$(command -v busybox)" "$tree/bin/busybox"
install -m 755 "$here/initrd.sh" "$tree/init"
# In the order in which they are loaded. rdma_rxe asks for crc32 by a name that only crc32_generic has.
for module in crc32_generic virtio_pci 9pnet_virtio 9p overlay dummy rdma_ucm rdma_rxe; do
    modprobe -d "$root" -S "$version" --show-depends "$module" | awk '/^insmod/ { print $2 }'
done | awk '!seen[$0]++' | while read -r file; do
    name=$(basename "$file" .xz)
    if [[ $file == *.xz ]]; then xz -dc "$file" >"$tree/modules/$name"; else cp "$file" "$tree/modules/"; fi
    echo "$name" >>"$tree/modules/order"
done
(cd "$tree" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$dir/initrd"
cp "$root"/boot/vmlinuz-* "$dir/vmlinuz"
