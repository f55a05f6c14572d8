"""Scripts for an emulated guest that is client and server of NFS at once: a mount of its own disk over its loopback
device, and replies that are held back on their way."""

MODULES = ("virtio_pci", "virtio_blk", "ext4", "nfsv4", "nfsd", "sch_prio", "sch_netem", "cls_u32")
BLOCK = 8192
# nfsd by its own files, as the places of the environment have it; /mnt is the root that it exports, with sync. Version
# 4.1, since newer kernels read by another operation from 4.2 on.
MOUNT = f"""
ifconfig lo 127.0.0.1 up
mount -t nfsd nfsd /proc/fs/nfsd || exit 2
mkdir -p /nfs /tmp/clients
tell() {{ printf '%s\\n' "$2" >"$1" || exit 3; }}
files=/proc/fs/nfsd
tell $files/versions '-3 +4 -4.0 +4.1 -4.2'
[ ! -e $files/nfsv4recoverydir ] || tell $files/nfsv4recoverydir /tmp/clients
tell $files/nfsv4gracetime 10
tell $files/portlist 'tcp 2049'
tell $files/threads 4
printf 'Y\\n' >$files/v4_end_grace
tell /proc/net/rpc/auth.unix.ip/channel 'nfsd 127.0.0.1 2147483647 plimsoll'
tell /proc/net/rpc/nfsd.export/channel 'plimsoll /mnt 2147483647 {0x2400} 65534 65534 0'
tell /proc/net/rpc/nfsd.fh/channel 'plimsoll 1 \\x00000000 2147483647 /mnt'
mount -i -t nfs4 -o vers=4.1,proto=tcp,addr=127.0.0.1,clientaddr=127.0.0.1,rsize={BLOCK},wsize={BLOCK} \\
    127.0.0.1:/ /nfs || exit 4
"""


def held_back(held_ms: int, around_ms: int = 0) -> str:
    """Each reply for so long, evenly around it."""
    # Not busybox's own of the name, which knows no netem.
    return f"""
/bin/tc qdisc add dev lo root handle 1: prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 &&
    /bin/tc qdisc add dev lo parent 1:3 handle 30: netem delay {held_ms}ms {around_ms}ms limit 10000 &&
    /bin/tc filter add dev lo parent 1: protocol ip u32 match ip sport 2049 0xffff flowid 1:3 || exit 5
"""
