package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Disk keeps volumes as files with a file system each, mounted beside them: so a volume has the size that was requested, and
// grows while it is in use. The volume `name` is the file `name.img` and the folder `name`.
type Disk struct{ Folder string }

const (
	imageSuffix = ".img"
	draftSuffix = ".draft"
)

// Of XFS: growing ext4 in use takes a capability (CAP_SYS_RESOURCE) that the root of some virtual machines does not have.
const (
	logMiB = 64
	// reservedMiB is what XFS keeps for itself, at most.
	reservedMiB = 48
	// leastMiB is the smallest that mkfs.xfs makes.
	leastMiB = 300
)

// imageSize is what a file system takes that has room for this many bytes.
func imageSize(bytes int64) int64 {
	return max(bytes+bytes/50+(logMiB+reservedMiB)<<20, leastMiB<<20)
}

// Make makes a volume with room for this many bytes, empty and writable for everybody, unless it is there.
func (d Disk) Make(ctx context.Context, name string, bytes int64) error {
	folder, image := d.paths(name)
	if _, err := os.Stat(image); err == nil {
		return d.mount(ctx, name)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	// Under its name only once it is complete: what is cut off here leaves nothing that is taken for a volume.
	draft := image + draftSuffix
	if err := os.WriteFile(draft, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(draft, imageSize(bytes)); err != nil {
		return err
	}
	// Fewer features than by default, for those would take room of every part of the disk.
	features := []string{"-q", "-m", "reflink=0,rmapbt=0", "-l", fmt.Sprintf("size=%dm", logMiB)}
	if err := command(ctx, "mkfs.xfs", append(features, draft)...); err != nil {
		return err
	}
	if err := os.Rename(draft, image); err != nil {
		return err
	}
	if err := d.mount(ctx, name); err != nil {
		return err
	}
	return os.Chmod(folder, 0o777)
}

// MakeFolder makes a volume without a size: a plain folder, writable for everybody.
func (d Disk) MakeFolder(_ context.Context, name string, _ int64) error {
	folder, _ := d.paths(name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return os.Chmod(folder, 0o777)
}

// NameOf is the name of a PersistentVolume on this disk; false when it is elsewhere.
func (d Disk) NameOf(volume *corev1.PersistentVolume) (string, bool) {
	local := volume.Spec.Local
	if local == nil || filepath.Dir(local.Path) != d.Folder {
		return "", false
	}
	return filepath.Base(local.Path), true
}

// Grow makes room for this many bytes, while the volume is in use. It never shrinks, and a folder without a file of its
// own has all the room that there is.
func (d Disk) Grow(ctx context.Context, name string, bytes int64) error {
	folder, image := d.paths(name)
	info, err := os.Stat(image)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := d.mount(ctx, name); err != nil {
		return err
	}
	if info.Size() < imageSize(bytes) {
		if err := os.Truncate(image, imageSize(bytes)); err != nil {
			return err
		}
	}
	devices, err := loopDevices(ctx, image)
	if err != nil {
		return err
	}
	for _, device := range devices {
		// Both may have been done before, by a run that was cut off.
		if err := errors.Join(command(ctx, "losetup", "-c", device), command(ctx, "xfs_growfs", "-d", folder)); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes a volume with all that is in it; it may be deleted already.
func (d Disk) Drop(ctx context.Context, name string) error {
	folder, image := d.paths(name)
	for range 20 {
		mounted, err := isMounted(folder)
		if err != nil {
			return err
		}
		if !mounted {
			break
		}
		if command(ctx, "umount", folder) != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	if mounted, err := isMounted(folder); err != nil || mounted {
		return errors.Join(err, fmt.Errorf("%s is in use", folder))
	}
	return errors.Join(os.RemoveAll(image), os.RemoveAll(image+draftSuffix), os.RemoveAll(folder))
}

// MountAll mounts what a start of the machine has left unmounted.
func (d Disk) MountAll(ctx context.Context) error {
	images, err := filepath.Glob(filepath.Join(d.Folder, "*"+imageSuffix))
	if err != nil {
		return err
	}
	var problems []error
	for _, image := range images {
		name := strings.TrimSuffix(filepath.Base(image), imageSuffix)
		if err := d.mount(ctx, name); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

func (d Disk) paths(name string) (folder, image string) {
	folder = filepath.Join(d.Folder, name)
	return folder, folder + imageSuffix
}

func (d Disk) mount(ctx context.Context, name string) error {
	folder, image := d.paths(name)
	if mounted, err := isMounted(folder); err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return command(ctx, "mount", "-t", "xfs", "-o", "loop,noatime,discard", image, folder)
}

func isMounted(folder string) (bool, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return false, err
	}
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(folder)
	return bytes.Contains(mounts, []byte(" "+escaped+" ")), nil
}

func loopDevices(ctx context.Context, image string) ([]string, error) {
	output, err := exec.CommandContext(ctx, "losetup", "-n", "-O", "NAME", "-j", image).Output()
	if err != nil {
		return nil, fmt.Errorf("losetup -j: %w", err)
	}
	return strings.Fields(string(output)), nil
}

// command runs a program; its output becomes the error.
func command(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(output[:min(len(output), 500)]))
	}
	return nil
}

// Bounded reports why this machine cannot keep volumes as files with file systems; nil where it can.
func Bounded() error {
	for _, name := range []string{"mkfs.xfs", "xfs_growfs", "losetup", "mount", "umount"} {
		if _, err := exec.LookPath(name); err != nil {
			return err
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return err
	}
	filesystems, err := os.ReadFile("/proc/filesystems")
	if err == nil && !bytes.Contains(filesystems, []byte("\txfs\n")) {
		err = errors.New("the kernel has no XFS")
	}
	return err
}
