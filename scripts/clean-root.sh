#!/usr/bin/env bash
# clean-root.sh: runs the README's two commands, `make demo` and `make test`, in a minimal Debian that has only what
# the README asks for (PACKAGES below). So it finds the package or the step that a developer's machine hides.
# The commands run in a clone of the committed HEAD: first as root, which installs packages, then as an ordinary
# user, who has these packages, no sudo and no /usr/sbin in PATH. The first failure ends the run with the end of
# its log and a non-zero exit code.
#
#   --as root|user|both   who runs the commands (default: both). With `user`, root only runs scripts/setup.sh.
#   --run COMMAND         runs COMMAND instead of the two; each further --run is one more command
#   --suite NAME          the Debian release (default: bookworm)
#   --dir DIR             where roots, the cached bare root and logs lie (default: ~/.cache/offpath/clean-root)
#   --keep                leaves the root there at the end
#   --in ROOT             runs in a root that was kept, with new clones and the packages that it has
#
# Needs root, on Debian; installs mmdebstrap if it is missing. Packages come from the sources of this machine: the
# root gets its apt sources and options, its proxies, pip's settings and its own certificates. Everything that is
# mounted or started belongs to namespaces, so it ends with the script, also when the script is killed.
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(ca-certificates git make)
MIB_NEEDED=12000
as=both suite=bookworm keep='' old='' root='' commands=()
dir=${XDG_CACHE_HOME:-$HOME/.cache}/offpath/clean-root

usage() {
    sed -n 's/^#  \( .*\)/\1/p' "$0" >&2
    exit 2
}
fail() {
    echo "clean-root: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
        --keep) keep=1 && shift && continue ;;
        --as | --run | --suite | --dir | --in) [ $# -gt 1 ] || usage ;;
        *) usage ;;
    esac
    case $1 in
        --as) as=$2 ;;
        --run) commands+=("$2") ;;
        --suite) suite=$2 ;;
        --dir) dir=$2 ;;
        --in) old=$(realpath "$2") keep=1 ;;
    esac
    shift 2
done
case $as in root | user | both) ;; *) usage ;; esac
[ ${#commands[@]} -gt 0 ] || commands=("make demo" "make test")
[ "$(id -u)" -eq 0 ] || fail "only root can make a root: use sudo"
# shellcheck source=/dev/null
. /etc/os-release
[ "$ID" = debian ] || fail "this machine's package sources are not Debian's"

mkdir -p "$dir/logs"
dir=$(realpath "$dir")
work=$(mktemp -d "$dir/work.XXXXXX")
child=
at_end() {
    set +e
    if [ -n "$child" ]; then
        echo interrupted
        kill -KILL -- "-$child" 2>/dev/null
        wait "$child" 2>/dev/null
    fi
    local remove=("$work")
    if [ -n "$keep" ]; then
        [ -z "$root" ] || echo "clean-root: kept $root; run more in it with --in $root"
    elif [ -n "$root" ]; then
        remove+=("$root")
    fi
    # A killed process may still write for a moment.
    rm -rf --one-file-system "${remove[@]}" 2>/dev/null || { sleep 1 && rm -rf --one-file-system "${remove[@]}"; }
}
trap at_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# part NAME COMMAND...: runs one part with its output in a log, and prints its time. The part has a process group of
# its own (set -m), so that it does not start with SIGINT ignored, as other jobs in the background do.
part() {
    local name=$1 log code=0 since=$SECONDS
    shift
    log=$dir/logs/$(tr -c 'a-zA-Z0-9\n' - <<<"$name" | cut -c -60).log
    printf '%-60s' "${name:0:58}"
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    child=$!
    set +m
    wait "$child" || code=$?
    child=
    echo "$((SECONDS - since)) s"
    [ "$code" -eq 0 ] || { tail -n 40 "$log" >&2 && fail "'$name' ended with exit code $code; all of its output is in $log"; }
}

# The apt sources of this machine, for the suite that is wanted.
sources() {
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        grep -Eq "^[^#]*\b$VERSION_CODENAME\b" "$file" 2>/dev/null || continue
        sed "s/\b$VERSION_CODENAME\b/$suite/g" "$file" >"$work/$(basename "$file")"
        echo "$work/$(basename "$file")"
    done
}

# Becomes a command in namespaces of its own. These end with this script, and with them all mounts and processes.
alone() { # COMMAND...
    exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc "$@"
}

make_bare() { # SOURCE...: writes $work/bare.tar
    if ! command -v mmdebstrap; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap
    fi
    # `minbase` is what the container image of a release has: the packages without which no Debian is.
    # shellcheck disable=SC2016  # mmdebstrap sets $1
    TMPDIR=$work alone mmdebstrap --mode=root --format=tar --variant=minbase --include="${PACKAGES[*]}" --aptopt="$work/apt.conf" \
        --setup-hook='cp -a /etc/apt/auth.conf* /etc/apt/trusted.gpg.d "$1/etc/apt/" 2>/dev/null || true' \
        "$suite" "$work/bare.tar" "$@"
}

# Brings what is this machine's own into the root: names, certificates, pip's settings, and each file that a setting
# of apt or pip names, such as a key.
bring() {
    local file
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /usr/local/share/ca-certificates; do
        [ ! -e $file ] || cp -rLT $file "$root$file"
    done
    for file in ~/.config/pip/pip.conf ~/.pip/pip.conf; do
        [ ! -e "$file" ] || cat "$file" >>"$root/etc/pip.conf"
    done
    { cat "$work/apt.conf" "$root/etc/pip.conf" /etc/apt/sources.list.d/* 2>/dev/null && for file in $passed; do echo "${!file}"; done; } |
        grep -oE '(^|[ ="])/[^] ";]+' | tr -d ' ="' | sort -u >"$work/paths" || true
    while read -r file; do
        [ ! -e "$file" ] || [ -e "$root$file" ] || { mkdir -p "$root${file%/*}" && cp -rL "$file" "$root$file"; }
    done <"$work/paths"
    chroot "$root" update-ca-certificates
}

fill() { # TARBALL
    tar -xpf "$1" -C "$root" --numeric-owner --exclude='./dev/*'
    chmod 755 "$root"
    bring
    chroot "$root" useradd --create-home --shell /bin/bash user
}

clone() { # ACCOUNT HOME: the account gets a repository of its own to clone, since git trusts no other's
    rm -rf "$root$2/offpath" "$root$2/offpath.git"
    git clone -q --bare "file://$PWD" "$root$2/offpath.git"
    chroot "$root" chown -R "$1:" "$2/offpath.git"
    inside "$1" . "git clone -q offpath.git offpath"
}

# Runs as process 1 of new namespaces, and so takes in processes whose parents end, as an init does.
enter() { # ROOT ACCOUNT FOLDER COMMAND
    local node
    cd "$1"
    mount --bind . .
    cd "$1"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount -t tmpfs -o mode=755,nosuid tmpfs dev
    for node in null zero full random urandom tty; do
        : >"dev/$node"
        mount --bind "/dev/$node" "dev/$node"
    done
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    for node in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${node%:*}" "dev/${node#*:}"; done
    # Not chroot, in which the kernel makes no user namespaces.
    pivot_root . mnt
    umount -l /mnt
    cd /
    # A container sets none of these names for root.
    [ "$2" != root ] || set -- "$1" "$2" "$3" "unset USER LOGNAME MAIL; $4"
    su -l "$2" -w "${passed// /,}" -c "cd $3 || exit; $4"
    exit
}
inside() { # ACCOUNT FOLDER COMMAND
    export -f enter
    export passed
    alone bash -euc 'enter "$@"' enter "$root" "$@"
}

run_as() { # ACCOUNT COMMAND...: runs the commands in a clone of the account's own
    local account=$1 command
    shift
    part "$account: git clone" clone "$account" "$(chroot "$root" sh -c "echo ~$account")"
    for command in "$@"; do
        part "$account: $command" inside "$account" offpath "$command"
    done
}

[ "$(df -m --output=avail "$dir" | tail -n 1)" -ge $MIB_NEEDED ] || fail "$dir has less than $MIB_NEEDED MiB left; name another with --dir"

# Variables by which programs find proxies, certificates and packages.
passed=$(compgen -e | grep -v '^PIP_CACHE_DIR$' |
    grep -Ei '^(PIP_.*|(http|https|ftp|all|no)_proxy|SSL_CERT_.*|(REQUESTS|CURL)_CA_BUNDLE|GIT_SSL_CAINFO)$' | paste -sd ' ' || true)
apt-config dump Acquire | grep -Ev '^Acquire::(IndexTargets|cdrom)' >"$work/apt.conf"
mapfile -t files < <(sources)
[ ${#files[@]} -gt 0 ] || fail "no apt source of this machine names $VERSION_CODENAME"

root=$old
if [ -z "$root" ]; then
    bare=$dir/$suite-$(cat "$work/apt.conf" "${files[@]}" - <<<"${PACKAGES[*]}" | sha256sum | cut -c -12).tar
    find "$dir" -maxdepth 1 -name '*.tar' -mtime +7 -delete
    if [ ! -e "$bare" ]; then
        part "making a bare $suite" make_bare "${files[@]}"
        mv "$work/bare.tar" "$bare"
    fi
    root=$(mktemp -d "$dir/$suite.XXXXXX")
    part "unpacking it" fill "$bare"
fi
case $as in
    root) run_as root "${commands[@]}" ;;
    user) [ -n "$old" ] || run_as root "scripts/setup.sh tests" ;;&
    both) run_as root "${commands[@]}" ;;&
    user | both) run_as user "${commands[@]}" ;;
esac
echo "clean-root: all went well in $SECONDS s; $(du -sxm "$root" | cut -f 1) MiB"
