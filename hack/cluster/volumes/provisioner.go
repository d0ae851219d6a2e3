package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v11/controller"
)

// Provisioner makes a volume on this machine's disk for each claim, and deletes it: what the library's controller calls.
// Both may be repeated after a failure or a restart.
type Provisioner struct {
	Disk Disk
	// Bounded is false where volumes are plain folders.
	Bounded bool
	// Node is the name of this node, where others have a process of their own; empty where there is one node.
	Node string
}

// ShouldProvision leaves claims of other nodes to those: the library asks.
func (p Provisioner) ShouldProvision(_ context.Context, claim *corev1.PersistentVolumeClaim) bool {
	return p.Node == "" || claim.Annotations[selectedNode] == p.Node
}

// ShouldDelete leaves volumes of other nodes to those: the library asks.
func (p Provisioner) ShouldDelete(_ context.Context, volume *corev1.PersistentVolume) bool {
	return IsOn(p.Node, volume)
}

// IsOn reports whether a volume is on this node's disk; an empty name is that of the one node there is.
func IsOn(node string, volume *corev1.PersistentVolume) bool {
	if node == "" {
		return true
	}
	required := volume.Spec.NodeAffinity
	if required == nil || required.Required == nil {
		return false
	}
	return slices.ContainsFunc(required.Required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(match corev1.NodeSelectorRequirement) bool {
			return match.Key == corev1.LabelHostname && slices.Contains(match.Values, node)
		})
	})
}

// selectedNode is the scheduler's annotation of a claim that waits for a volume.
const selectedNode = "volume.kubernetes.io/selected-node"

// Provision makes the volume `<volume>_<namespace>_<claim>` and describes it, on the node that the scheduler has selected.
func (p Provisioner) Provision(ctx context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	claim, class := options.PVC, options.StorageClass
	if err := supported(options); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	start := time.Now()
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	name := strings.Join([]string{options.PVName, claim.Namespace, claim.Name}, "_")
	makeVolume := p.Disk.Make
	if !p.Bounded {
		makeVolume = p.Disk.MakeFolder
	}
	if err := makeVolume(ctx, name, size.Value()); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	slog.Info("made", "volume", name, "size", size.String(), "milliseconds", time.Since(start).Milliseconds())
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			MountOptions:                  class.MountOptions,
			NodeAffinity:                  on(options.SelectedNode.Labels[corev1.LabelHostname]),
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			VolumeMode:                    claim.Spec.VolumeMode,
			// A local volume, not a hostPath: the kubelet then gives it the pod's fsGroup.
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: filepath.Join(p.Disk.Folder, name)},
			},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the volume with all that is in it.
func (p Provisioner) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	name, ok := p.Disk.NameOf(volume)
	if !ok {
		return &controller.IgnoredError{Reason: "it is not below " + p.Disk.Folder}
	}
	start := time.Now()
	if err := p.Disk.Drop(ctx, name); err != nil {
		return err
	}
	slog.Info("deleted", "volume", name, "milliseconds", time.Since(start).Milliseconds())
	return nil
}

// supported reports what a claim requests that a folder on one machine cannot be.
func supported(options controller.ProvisionOptions) error {
	spec := options.PVC.Spec
	switch {
	case spec.Selector != nil:
		return errors.New("a claim with a selector is not supported")
	case slices.Contains(spec.AccessModes, corev1.ReadWriteMany), slices.Contains(spec.AccessModes, corev1.ReadOnlyMany):
		return fmt.Errorf("access modes are ReadWriteOnce and ReadWriteOncePod, not %v", spec.AccessModes)
	case options.SelectedNode == nil:
		return errors.New("no node is selected: the storage class needs volumeBindingMode WaitForFirstConsumer")
	}
	return nil
}

// on is the affinity to the node with this host name.
func on(host string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{host}},
		},
	}}}}
}

// newProvisioning is the library's controller with the factory's informers, which the caller starts.
func newProvisioning(
	ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory, name string, provisioner Provisioner,
) *controller.ProvisionController {
	return controller.NewProvisionController(ctx, client, name, provisioner,
		controller.ClaimsInformer(factory.Core().V1().PersistentVolumeClaims().Informer()),
		controller.VolumesInformer(factory.Core().V1().PersistentVolumes().Informer()),
		controller.ClassesInformer(factory.Storage().V1().StorageClasses().Informer()),
		// One process of one machine.
		controller.LeaderElection(false),
		// What fails is tried again until it succeeds, less and less often.
		controller.FailedProvisionThreshold(0),
		controller.FailedDeleteThreshold(0),
	)
}
