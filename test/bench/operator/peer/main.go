// The peer of Slipway's operator in benchmarks: an ordinary operator as a team that knows controller-runtime would write it. Each App
// gets a Secret, a Deployment, a Service, an Ingress and a NetworkPolicy, by CreateOrUpdate, and one condition.
package main

import (
	"flag"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	workers := flag.Int("workers", 8, "applications that are reconciled at once")
	namespace := flag.String("namespace", "default", "where its Lease is")
	flag.Parse()
	if err := run(*workers, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(workers int, namespace string) error {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(groupVersion, &App{}, &AppList{})
	addToGroupVersion(scheme)

	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.UserAgent = "peer"
	// The apiserver limits clients by priority and fairness; the client's own default of 20 requests a second would be all that is measured.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                true,
		LeaderElectionID:              "peer",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	reconciler := &reconciler{client: manager.GetClient(), scheme: scheme}
	err = ctrl.NewControllerManagedBy(manager).
		For(&App{}).
		Owns(&corev1.Secret{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&networkingv1.Ingress{}).
		Owns(&networkingv1.NetworkPolicy{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconciler)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
