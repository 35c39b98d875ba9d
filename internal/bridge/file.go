package bridge

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
)

// beneath lets a name be nothing but an entry of the folder itself: it is the container's, which changes it meanwhile.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// Folder is an open folder of a container.
type Folder struct {
	dir *os.File // O_PATH
	key key
	uid uint32
}

// key is which folder it is, whatever its path.
type key struct{ dev, ino uint64 }

// OpenFolder opens the folder at an absolute path below root, which is a container's root as an open directory, for its user uid. Nothing is
// opened outside root, nor through a symbolic link, and the folder must be that user's own. What answers say cannot be changed by that user: they
// are root's, and stamped for a user that is root itself.
func OpenFolder(root *os.File, path string, uid uint32) (*Folder, error) {
	fd, err := unix.Openat2(int(root.Fd()), path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", path, err)
	}
	f := &Folder{dir: os.NewFile(uintptr(fd), path), uid: uid}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, errors.Join(fmt.Errorf("look at folder %s: %w", path, err), f.Close())
	}
	if st.Uid != uid {
		return nil, errors.Join(fmt.Errorf("folder %s is of user %d, and the container runs as %d: it must be that user's own", path, st.Uid, uid), f.Close())
	}
	f.key = key{st.Dev, st.Ino}
	return f, nil
}

// Close closes it.
func (f *Folder) Close() error { return f.dir.Close() }

func (f *Folder) open(name string, flags uint64, mode uint32) (*os.File, error) {
	fd, err := unix.Openat2(int(f.dir.Fd()), name, &unix.OpenHow{Flags: flags | unix.O_NOFOLLOW | unix.O_CLOEXEC, Mode: uint64(mode), Resolve: beneath})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// names lists some of what is in the folder; all tells that these are all.
func (f *Folder) names(most int) (names []string, all bool, err error) {
	dir, err := f.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, false, fmt.Errorf("list folder: %w", err)
	}
	defer dir.Close()
	names, err = dir.Readdirnames(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("list folder: %w", err)
	}
	return names, len(names) < most, nil
}

// What a request's file may be wrong in. A directory is left alone: nothing removes it but its owner.
var (
	errForm       = errors.New("no plain file of the folder's owner, with one name")
	errFolderLong = errors.New("too long")
	errDirectory  = errors.New("a directory")
)

// look opens a request without reading it, so that a FIFO or a device notices nothing, and tells its size.
func (f *Folder) look(name string) (*os.File, int64, error) {
	file, err := f.open(name, unix.O_PATH, 0)
	if err != nil {
		return nil, 0, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(file.Fd()), &st)
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		err = errDirectory
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 || st.Uid != f.uid: // a hard link may be of a file that its maker cannot read
		err = errForm
	case st.Size > wire.MaxLine:
		err = errFolderLong
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, st.Size, nil
}

// read reads at most so many bytes of what look has found: the same file, whatever has its name now.
func read(file *os.File, most int64) ([]byte, error) {
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(file.Fd())), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	in := os.NewFile(uintptr(fd), file.Name())
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	if int64(len(data)) > most { // it grew
		return nil, errFolderLong
	}
	return data, nil
}

// put makes a file whole before it has its name. It is this process's user's, and its mode keeps everybody else from writing it; its stamp
// tells root, too.
func (f *Folder) put(name string, data []byte) error {
	temp := wire.TempPrefix + rand.Text()
	file, err := f.open(temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, f.stamp(file, data), file.Chmod(0o644), file.Close())
	if err == nil {
		err = unix.Renameat(int(f.dir.Fd()), temp, int(f.dir.Fd()), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), f.remove(temp))
	}
	return nil
}

// stamp says what was written. Where the file system has no such attributes, only a user that is not root can be answered.
func (f *Folder) stamp(file *os.File, data []byte) error {
	sum := sha256.Sum256(data)
	if err := unix.Fsetxattr(int(file.Fd()), wire.Stamp, sum[:], 0); err != nil && f.uid == 0 {
		return fmt.Errorf("stamp an answer for root: %w", err)
	}
	return nil
}

// remove removes a file, whatever it is; one that is gone is fine.
func (f *Folder) remove(name string) error {
	if err := unix.Unlinkat(int(f.dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// changed is when an entry was changed last, in Unix seconds; 0: it is gone.
func (f *Folder) changed(name string) int64 {
	var st unix.Stat_t
	if err := unix.Fstatat(int(f.dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0
	}
	return st.Mtim.Sec
}
