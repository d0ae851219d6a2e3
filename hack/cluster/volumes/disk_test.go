package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

const mib = int64(1) << 20

// newDisk is an empty one, or a skip that says what is missing.
func newDisk(t *testing.T) Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount")
	}
	if err := Bounded(); err != nil {
		t.Skip(err)
	}
	disk := Disk{Folder: t.TempDir()}
	t.Cleanup(func() {
		images, _ := filepath.Glob(filepath.Join(disk.Folder, "*"+imageSuffix))
		for _, image := range images {
			if err := disk.Drop(context.Background(), filepath.Base(image[:len(image)-len(imageSuffix)])); err != nil {
				command(context.Background(), "umount", "-l", image[:len(image)-len(imageSuffix)])
			}
		}
	})
	return disk
}

// freeBytes is how many bytes anybody can still write to a volume.
func freeBytes(t *testing.T, folder string) int64 {
	t.Helper()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		t.Fatal(err)
	}
	return int64(stat.Bavail) * stat.Bsize
}

func TestVolumesHaveTheRequestedSize(t *testing.T) {
	disk := newDisk(t)
	for name, size := range map[string]int64{"smallest": 200 * mib, "usual": 1 << 30, "large": 200 << 30} {
		if err := disk.Make(t.Context(), name, size); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(disk.Folder, name)
		if free := freeBytes(t, folder); free < size || free > size+size/20+32*mib {
			t.Errorf("%s: %d MiB free of %d", name, free/mib, size/mib)
		}
		if entries, _ := os.ReadDir(folder); len(entries) != 0 {
			t.Errorf("%s is not empty: %v", name, entries)
		}
		if info, _ := os.Stat(folder); info.Mode().Perm() != 0o777 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	err := os.WriteFile(filepath.Join(disk.Folder, "smallest", "much"), bytes.Repeat([]byte("x"), int(300*mib)), 0o644)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("more than it holds: %v", err)
	}
}

func TestGrowsInUseAndKeepsWhatIsThere(t *testing.T) {
	disk := newDisk(t)
	if err := disk.Make(t.Context(), "v", 64*mib); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(disk.Folder, "v")
	file, err := os.Create(filepath.Join(folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.WriteString("before ")
	for range 2 {
		if err := disk.Grow(t.Context(), "v", 500*mib); err != nil {
			t.Fatal(err)
		}
	}
	if free := freeBytes(t, folder); free < 500*mib-mib {
		t.Errorf("%d MiB free", free/mib)
	}
	if err := disk.Grow(t.Context(), "v", 64*mib); err != nil || freeBytes(t, folder) < 500*mib-mib {
		t.Errorf("shrank: %v", err)
	}
	file.WriteString("after")
	if text, _ := os.ReadFile(file.Name()); string(text) != "before after" {
		t.Errorf("%q", text)
	}
}

func TestAStartOfTheMachineMountsAll(t *testing.T) {
	disk := newDisk(t)
	folder := filepath.Join(disk.Folder, "v")
	err := errors.Join(disk.Make(t.Context(), "v", 64*mib), os.WriteFile(folder+"/data", []byte("kept"), 0o644),
		command(t.Context(), "umount", folder), disk.MountAll(t.Context()), disk.MountAll(t.Context()),
		disk.Make(t.Context(), "v", 64*mib))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(folder + "/data"); string(text) != "kept" {
		t.Errorf("%q", text)
	}
}

func TestFoldersWithoutAFileHaveRoom(t *testing.T) {
	disk := Disk{Folder: t.TempDir()}
	path := filepath.Join(disk.Folder, "v")
	if err := disk.MakeFolder(t.Context(), "v", 64*mib); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o777 {
		t.Fatalf("%v %v", info, err)
	}
	if err := disk.Grow(t.Context(), "v", 1<<40); err != nil {
		t.Error(err)
	}
	if err := disk.Drop(t.Context(), "v"); err != nil {
		t.Error(err)
	}
}
