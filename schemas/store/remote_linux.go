package store

import "golang.org/x/sys/unix"

// remote reports whether a folder lies on a file system of another machine, or behind FUSE, where locks may not hold.
func remote(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, lustre, gpfs:
		return true
	}
	return false
}

// The magic numbers of file systems for which the package unix has no constant.
const (
	lustre = 0x0bd00bd0
	gpfs   = 0x47504653
)
