package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is what the enforcer sees of the cluster, kept fresh by watches.
type Cluster struct {
	factory  informers.SharedInformerFactory
	cniCache string
}

// NewCluster prepares the watches; changed is called after every change of a policy, pod or namespace.
func NewCluster(kubeconfig, cniCache string, changed func()) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = "slipway-netpol"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(keepNeeded))
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Networking().V1().NetworkPolicies().Informer(),
		factory.Core().V1().Pods().Informer(),
		factory.Core().V1().Namespaces().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	return &Cluster{factory, cniCache}, nil
}

// Start begins watching and returns when everything has been listed once, or the context ends.
func (c *Cluster) Start(ctx context.Context) error {
	c.factory.Start(ctx.Done())
	for kind, synced := range c.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v could not be listed before the end", kind)
		}
	}
	return nil
}

// Snapshot returns what is known now.
func (c *Cluster) Snapshot() (Input, error) {
	policies, err := c.factory.Networking().V1().NetworkPolicies().Lister().List(labels.Everything())
	if err != nil {
		return Input{}, err
	}
	pods, err := c.factory.Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		return Input{}, err
	}
	namespaces, err := c.factory.Core().V1().Namespaces().Lister().List(labels.Everything())
	if err != nil {
		return Input{}, err
	}
	return Input{Policies: policies, Pods: pods, Namespaces: namespaces, Attached: AttachedAddresses(c.cniCache)}, nil
}

// keepNeeded drops what the rules do not depend on, since the store has every pod of the cluster.
func keepNeeded(object any) (any, error) {
	switch full := object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{
			ObjectMeta: keepMeta(full.ObjectMeta),
			Spec: corev1.PodSpec{
				HostNetwork:    full.Spec.HostNetwork,
				Containers:     keepPorts(full.Spec.Containers),
				InitContainers: keepPorts(full.Spec.InitContainers),
			},
			Status: corev1.PodStatus{
				Phase:  full.Status.Phase,
				HostIP: full.Status.HostIP,
				PodIP:  full.Status.PodIP,
				PodIPs: full.Status.PodIPs,
			},
		}, nil
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: keepMeta(full.ObjectMeta)}, nil
	case *networkingv1.NetworkPolicy:
		return &networkingv1.NetworkPolicy{ObjectMeta: keepMeta(full.ObjectMeta), Spec: full.Spec}, nil
	}
	return object, nil
}

func keepMeta(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              meta.Name,
		Namespace:         meta.Namespace,
		UID:               meta.UID,
		ResourceVersion:   meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp,
		Labels:            meta.Labels,
	}
}

func keepPorts(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for _, container := range containers {
		if len(container.Ports) > 0 {
			kept = append(kept, corev1.Container{Ports: container.Ports, RestartPolicy: container.RestartPolicy})
		}
	}
	return kept
}
