package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v11/controller"
)

func requestOf(change func(*controller.ProvisionOptions)) controller.ProvisionOptions {
	reclaim := corev1.PersistentVolumeReclaimDelete
	claim := claimOf("1Gi", "0", corev1.ClaimPending)
	claim.Spec.VolumeName = ""
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	options := controller.ProvisionOptions{
		StorageClass: &storagev1.StorageClass{ReclaimPolicy: &reclaim},
		PVName:       "pvc-1",
		PVC:          claim,
		SelectedNode: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "host"}}},
	}
	change(&options)
	return options
}

func asIs(*controller.ProvisionOptions) {}

func TestProvisionsAndDeletesAFolder(t *testing.T) {
	provisioner := Provisioner{Disk: Disk{Folder: t.TempDir()}}
	var described *corev1.PersistentVolume
	// Either may be repeated: the process ended before the apiserver had its result.
	for range 2 {
		volume, _, err := provisioner.Provision(t.Context(), requestOf(asIs))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(provisioner.Disk.Folder, "pvc-1_a_data-0")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o777 || volume.Spec.Local.Path != path {
			t.Fatalf("%v, %v, %v", volume.Spec.Local, info, err)
		}
		host := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
		if size := volume.Spec.Capacity.Storage().String(); size != "1Gi" || host != "host" {
			t.Errorf("%s on %s", size, host)
		}
		if err := os.WriteFile(filepath.Join(path, "data"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		described = volume
	}
	for range 2 {
		if err := provisioner.Delete(t.Context(), described); err != nil {
			t.Fatal(err)
		}
	}
	if entries, _ := os.ReadDir(provisioner.Disk.Folder); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestProvisionsAFileSystemAsLargeAsRequested(t *testing.T) {
	provisioner := Provisioner{Disk: newDisk(t), Bounded: true}
	volume, _, err := provisioner.Provision(t.Context(), requestOf(asIs))
	if err != nil {
		t.Fatal(err)
	}
	path := volume.Spec.Local.Path
	if mounted, err := isMounted(path); !mounted {
		t.Fatalf("not mounted: %v", err)
	}
	if free := freeBytes(t, path); free < 1<<30 {
		t.Errorf("%d MiB free", free/mib)
	}
	if err := provisioner.Delete(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(provisioner.Disk.Folder); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRefusesWhatAFolderCannotBe(t *testing.T) {
	provisioner := Provisioner{Disk: Disk{Folder: t.TempDir()}}
	for name, change := range map[string]func(*controller.ProvisionOptions){
		"selector":     func(o *controller.ProvisionOptions) { o.PVC.Spec.Selector = &metav1.LabelSelector{} },
		"access modes": func(o *controller.ProvisionOptions) { o.PVC.Spec.AccessModes[0] = corev1.ReadWriteMany },
		"node":         func(o *controller.ProvisionOptions) { o.SelectedNode = nil },
	} {
		if _, _, err := provisioner.Provision(t.Context(), requestOf(change)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeletesNothingElsewhere(t *testing.T) {
	provisioner := Provisioner{Disk: Disk{Folder: t.TempDir()}}
	kept := t.TempDir()
	volume := volumeOf(local, "1Gi")
	volume.Spec.Local = &corev1.LocalVolumeSource{Path: kept}
	var ignored *controller.IgnoredError
	if err := provisioner.Delete(t.Context(), volume); !errors.As(err, &ignored) {
		t.Error(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

func TestAClaimGetsItsVolumeAndAReleasedOneIsDeleted(t *testing.T) {
	request := requestOf(asIs)
	class := request.StorageClass
	class.Name, class.Provisioner = "local-path", local
	claim := request.PVC
	claim.Spec.StorageClassName = &class.Name
	claim.Annotations = map[string]string{
		"volume.kubernetes.io/storage-provisioner": local, "volume.kubernetes.io/selected-node": "n",
	}
	disk := Disk{Folder: t.TempDir()}
	released := volumeOf(local, "1Gi")
	released.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	released.Status.Phase = corev1.VolumeReleased
	released.Spec.Local = &corev1.LocalVolumeSource{Path: filepath.Join(disk.Folder, "released")}
	if err := os.Mkdir(released.Spec.Local.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(class, claim, released, request.SelectedNode)
	factory := informers.NewSharedInformerFactory(client, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	provisioning := newProvisioning(ctx, client, factory, local, Provisioner{Disk: disk})
	factory.Start(ctx.Done())
	go provisioning.Run(ctx)
	eventually(t, "the claim has no volume, or the released one is there", func() bool {
		volumes, _ := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
		return len(volumes.Items) == 1 && volumes.Items[0].Name == "pvc-claim" &&
			volumes.Items[0].Annotations[provisionedBy] == local
	})
	if entries, _ := os.ReadDir(disk.Folder); len(entries) != 1 || entries[0].Name() != "pvc-claim_a_data-0" {
		t.Errorf("folders: %v", entries)
	}
}

// Where each node has a process of its own, a claim is that of the node the scheduler chose, a volume that of the disk it is on.
func TestLeavesVolumesOfOtherNodesAlone(t *testing.T) {
	chosen := requestOf(asIs)
	chosen.PVC.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "host"}
	volume, _, err := Provisioner{Disk: Disk{Folder: t.TempDir()}}.Provision(t.Context(), chosen)
	if err != nil {
		t.Fatal(err)
	}
	for node, mine := range map[string]bool{"host": true, "other": false, "": true} {
		provisioner := Provisioner{Node: node}
		if provisioner.ShouldProvision(t.Context(), chosen.PVC) != mine {
			t.Errorf("node %q: claim", node)
		}
		if provisioner.ShouldDelete(t.Context(), volume) != mine {
			t.Errorf("node %q: volume", node)
		}
		volume.Annotations = map[string]string{provisionedBy: "local"}
		volume.Spec.ClaimRef = &corev1.ObjectReference{UID: chosen.PVC.UID}
		if resizer := (&Resizer{provisioner: "local", node: node}); resizer.owns(volume, chosen.PVC) != mine {
			t.Errorf("node %q: growing", node)
		}
	}
	if (Provisioner{Node: "host"}).ShouldDelete(t.Context(), &corev1.PersistentVolume{}) {
		t.Error("a volume of no node")
	}
}
