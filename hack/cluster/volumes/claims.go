package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

const provisionedBy = "pv.kubernetes.io/provisioned-by"

// Grow makes space for this many bytes in a volume on the disk; it may have it already.
type Grow func(ctx context.Context, volume *corev1.PersistentVolume, bytes int64) error

// Resizer grows the volumes of one provisioner whose claims request more.
type Resizer struct {
	client      kubernetes.Interface
	provisioner string
	node        string
	grow        Grow
	claims      listers.PersistentVolumeClaimLister
	volumes     listers.PersistentVolumeLister
	synced      []cache.InformerSynced
	queue       workqueue.TypedRateLimitingInterface[string]
	broadcaster record.EventBroadcaster
	events      record.EventRecorder
}

// NewResizer registers with the factory's informers, which the caller starts; nothing happens before Run. With the name of a
// node it leaves volumes of others alone.
func NewResizer(
	client kubernetes.Interface, factory informers.SharedInformerFactory, provisioner, node string, grow Grow,
) (*Resizer, error) {
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	broadcaster := record.NewBroadcaster()
	r := &Resizer{
		client: client, provisioner: provisioner, node: node, grow: grow,
		claims: claims.Lister(), volumes: volumes.Lister(),
		synced:      []cache.InformerSynced{claims.Informer().HasSynced, volumes.Informer().HasSynced},
		queue:       workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		broadcaster: broadcaster,
		events:      broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "slipway-volumes"}),
	}
	enqueue := func(object any) {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && requestsMore(claim) {
			r.queue.Add(claim.Namespace + "/" + claim.Name)
		}
	}
	_, err := claims.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) },
	})
	return r, err
}

// Synced reports whether claims and volumes have been listed.
func (r *Resizer) Synced() bool {
	for _, synced := range r.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Run works until the context ends. What fails is logged and tried again, less and less often.
func (r *Resizer) Run(ctx context.Context) {
	r.broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: r.client.CoreV1().Events("")})
	defer r.broadcaster.Shutdown()
	context.AfterFunc(ctx, r.queue.ShutDown)
	if !cache.WaitForCacheSync(ctx.Done(), r.synced...) {
		return
	}
	var worker sync.WaitGroup
	worker.Add(1)
	go func() {
		defer worker.Done()
		for r.next(ctx) {
		}
	}()
	worker.Wait()
}

func (r *Resizer) next(ctx context.Context) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	if err := r.reconcile(ctx, key); err != nil {
		slog.Error("a volume could not grow; trying again", "claim", key, "error", err)
		r.queue.AddRateLimited(key)
		return true
	}
	r.queue.Forget(key)
	return true
}

// reconcile grows the volume of a claim, then patches the new size into the PersistentVolume, then into the claim's status.
func (r *Resizer) reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil
	}
	claim, err := r.claims.PersistentVolumeClaims(namespace).Get(name)
	if errors.IsNotFound(err) || err == nil && !requestsMore(claim) {
		return nil
	}
	if err != nil {
		return err
	}
	volume, err := r.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return fmt.Errorf("its volume: %w", err)
	}
	if !r.owns(volume, claim) {
		return nil
	}
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := r.grow(ctx, volume, wanted.Value()); err != nil {
		r.events.Eventf(claim, corev1.EventTypeWarning, "VolumeResizeFailed", "%v", err)
		return err
	}
	capacity := map[string]any{"capacity": map[string]string{string(corev1.ResourceStorage): wanted.String()}}
	if have := volume.Spec.Capacity[corev1.ResourceStorage]; have.Cmp(wanted) < 0 {
		patch := merge(volume.UID, map[string]any{"spec": capacity})
		_, err := r.client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("its volume: %w", err)
		}
	}
	patch := merge(claim.UID, map[string]any{"status": capacity})
	_, err = r.client.CoreV1().PersistentVolumeClaims(namespace).Patch(
		ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	slog.Info("grown", "claim", key, "volume", volume.Name, "size", wanted.String())
	r.events.Eventf(claim, corev1.EventTypeNormal, "VolumeResizeSuccessful", "The volume is %s large.", wanted.String())
	return nil
}

// owns reports whether a volume is the claim's, of this program's provisioner and of its node.
func (r *Resizer) owns(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.UID == claim.UID && volume.Annotations[provisionedBy] == r.provisioner && IsOn(r.node, volume)
}

// requestsMore reports whether a bound claim requests more than it has. Sizes never shrink; the apiserver rejects that.
func requestsMore(claim *corev1.PersistentVolumeClaim) bool {
	have, wanted := claim.Status.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil && have.Cmp(wanted) < 0
}

// merge is a merge patch for the object with this UID and no other.
func merge(uid types.UID, content map[string]any) []byte {
	content["metadata"] = map[string]any{"uid": uid}
	patch, err := json.Marshal(content)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return patch
}
