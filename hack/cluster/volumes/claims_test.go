package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const local = "rancher.io/local-path"

func grown(context.Context, *corev1.PersistentVolume, int64) error { return nil }

func sized(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func claimOf(requested, has string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data-0", UID: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "v", Resources: corev1.VolumeResourceRequirements{Requests: sized(requested)},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: phase, Capacity: sized(has)},
	}
}

func volumeOf(provisioner, has string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "volume", Annotations: map[string]string{provisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: sized(has), ClaimRef: &corev1.ObjectReference{Namespace: "a", Name: "data-0", UID: "claim"},
		},
	}
}

// startResizer starts a resizer, which ends with the test, and waits until it has listed claims and volumes and watches them: the fake
// client reports no change that happens between a list and the watch after it.
func startResizer(t *testing.T, client *fake.Clientset, grow Grow) {
	t.Helper()
	var watches atomic.Int32
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		defer watches.Add(1)
		watched, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		return true, watched, err
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	resizer, err := NewResizer(client, factory, local, "", grow)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	ended := make(chan struct{})
	go func() { defer close(ended); resizer.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	for !resizer.Synced() || watches.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
}

func start(t *testing.T, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(objects...)
	startResizer(t, client, grown)
	return client
}

func sizes(t *testing.T, client *fake.Clientset) (claim, volume string) {
	t.Helper()
	liveClaim, err := client.CoreV1().PersistentVolumeClaims("a").Get(t.Context(), "data-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	liveVolume, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return liveClaim.Status.Capacity.Storage().String(), liveVolume.Spec.Capacity.Storage().String()
}

func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func TestGrowsVolumeAndClaim(t *testing.T) {
	client := start(t, claimOf("1Gi", "1Gi", corev1.ClaimBound), volumeOf(local, "1Gi"))
	_, err := client.CoreV1().PersistentVolumeClaims("a").Update(t.Context(), claimOf("5Gi", "1Gi", corev1.ClaimBound), metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the volume does not grow", func() bool {
		claim, volume := sizes(t, client)
		return claim == "5Gi" && volume == "5Gi"
	})
	eventually(t, "no event is recorded", func() bool {
		events, _ := client.CoreV1().Events("a").List(t.Context(), metav1.ListOptions{})
		return len(events.Items) == 1 && events.Items[0].Reason == "VolumeResizeSuccessful"
	})
}

func TestWhatWasLeftHalfDoneIsFinished(t *testing.T) {
	client := start(t, claimOf("5Gi", "1Gi", corev1.ClaimBound), volumeOf(local, "5Gi"))
	eventually(t, "the claim's status does not have the size", func() bool { claim, _ := sizes(t, client); return claim == "5Gi" })
	for _, action := range client.Actions() {
		if action.Matches("patch", "persistentvolumes") {
			t.Error("a volume that has its size was patched")
		}
	}
}

func TestRefusalsAreTriedAgain(t *testing.T) {
	client := fake.NewClientset(claimOf("5Gi", "1Gi", corev1.ClaimBound), volumeOf(local, "1Gi"))
	var refused atomic.Int32
	client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused.Add(1) < 3, nil, errors.New("not now")
	})
	startResizer(t, client, grown)
	eventually(t, "the volume does not grow after refusals", func() bool { claim, _ := sizes(t, client); return claim == "5Gi" })
}

func TestNothingIsReportedBeforeTheDiskHasGrown(t *testing.T) {
	client := fake.NewClientset(claimOf("5Gi", "1Gi", corev1.ClaimBound), volumeOf(local, "1Gi"))
	var requested atomic.Int64
	full := func(_ context.Context, _ *corev1.PersistentVolume, bytes int64) error {
		requested.Store(bytes)
		return errors.New("the disk is full")
	}
	startResizer(t, client, full)
	eventually(t, "no event states why", func() bool {
		events, _ := client.CoreV1().Events("a").List(t.Context(), metav1.ListOptions{})
		return len(events.Items) > 0 && events.Items[0].Reason == "VolumeResizeFailed"
	})
	if claim, volume := sizes(t, client); claim != "1Gi" || volume != "1Gi" || requested.Load() != 5<<30 {
		t.Errorf("claim %s, volume %s, requested %d", claim, volume, requested.Load())
	}
}

func TestLeavesAlone(t *testing.T) {
	leaving := claimOf("5Gi", "1Gi", corev1.ClaimBound)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	leaving.Finalizers = []string{"kubernetes.io/pvc-protection"}
	stranger := volumeOf(local, "1Gi")
	stranger.Spec.ClaimRef.UID = "another"
	for name, objects := range map[string][]runtime.Object{
		"a claim that requests less":       {claimOf("1Gi", "5Gi", corev1.ClaimBound), volumeOf(local, "1Gi")},
		"a claim that is not bound":        {claimOf("5Gi", "1Gi", corev1.ClaimPending), volumeOf(local, "1Gi")},
		"a claim on its way out":           {leaving, volumeOf(local, "1Gi")},
		"another provisioner's volume":     {claimOf("5Gi", "1Gi", corev1.ClaimBound), volumeOf("csi.example", "1Gi")},
		"a volume that is another claim's": {claimOf("5Gi", "1Gi", corev1.ClaimBound), stranger},
	} {
		t.Run(name, func(t *testing.T) {
			client := start(t, objects...)
			time.Sleep(50 * time.Millisecond)
			for _, action := range client.Actions() {
				if action.GetVerb() == "patch" {
					t.Errorf("patched %v", action.GetResource())
				}
			}
		})
	}
}
