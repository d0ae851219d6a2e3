package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func addToGroupVersion(scheme *runtime.Scheme) { metav1.AddToGroupVersion(scheme, groupVersion) }

type reconciler struct {
	client client.Client
	scheme *runtime.Scheme
}

// Reconcile applies the children of one application, and reports that it did.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var app App
	if err := r.client.Get(ctx, request.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// Its children go with it, by their owner references.
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	for _, apply := range []func(context.Context, *App) error{
		r.applySecret, r.applyNetworkPolicy, r.applyDeployment, r.applyService, r.applyIngress,
	} {
		if err := apply(ctx, &app); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.report(ctx, &app)
}

func (r *reconciler) report(ctx context.Context, app *App) error {
	before := app.DeepCopyObject().(*App)
	app.Status.ObservedGeneration = app.Generation
	meta.SetStatusCondition(&app.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "Applied",
		ObservedGeneration: app.Generation,
	})
	if equality.Semantic.DeepEqual(before.Status, app.Status) {
		return nil
	}
	return r.client.Status().Update(ctx, app)
}

// apply creates the child or changes what differs.
func (r *reconciler) apply(ctx context.Context, app *App, child client.Object, mutate func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, child, func() error {
		child.SetLabels(labelsOf(app))
		mutate()
		return controllerutil.SetControllerReference(app, child, r.scheme)
	})
	return err
}

func labelsOf(app *App) map[string]string {
	return map[string]string{"app.kubernetes.io/name": app.Name, "app.kubernetes.io/managed-by": "peer"}
}

func metadata(app *App) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: app.Name, Namespace: app.Namespace}
}

func (r *reconciler) applySecret(ctx context.Context, app *App) error {
	secret := &corev1.Secret{ObjectMeta: metadata(app)}
	return r.apply(ctx, app, secret, func() {
		secret.Data = map[string][]byte{}
		for name, value := range app.Spec.Env {
			secret.Data[name] = []byte(value)
		}
	})
}

func (r *reconciler) applyNetworkPolicy(ctx context.Context, app *App) error {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metadata(app)}
	return r.apply(ctx, app, policy, func() {
		policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: labelsOf(app)}
		policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{
			Ports: []networkingv1.NetworkPolicyPort{{
				Protocol: ptr.To(corev1.ProtocolTCP),
				Port:     ptr.To(intstr.FromInt32(app.Spec.Port)),
			}},
			From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": "ingress"},
			}}},
		}}
	})
}

func (r *reconciler) applyDeployment(ctx context.Context, app *App) error {
	deployment := &appsv1.Deployment{ObjectMeta: metadata(app)}
	return r.apply(ctx, app, deployment, func() {
		deployment.Spec.Replicas = ptr.To(app.Spec.Replicas)
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(app)}
		deployment.Spec.Template.Labels = labelsOf(app)
		template := &deployment.Spec.Template.Spec
		template.AutomountServiceAccountToken = ptr.To(false)
		// What the apiserver defaults stays as it is: only what is declared is compared.
		if len(template.Containers) != 1 {
			template.Containers = make([]corev1.Container, 1)
		}
		container := &template.Containers[0]
		container.Name = "app"
		container.Image = app.Spec.Image
		container.EnvFrom = []corev1.EnvFromSource{{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: app.Name}},
		}}
		container.Ports = []corev1.ContainerPort{{ContainerPort: app.Spec.Port, Protocol: corev1.ProtocolTCP}}
		container.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			RunAsNonRoot:             ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	})
}

func (r *reconciler) applyService(ctx context.Context, app *App) error {
	service := &corev1.Service{ObjectMeta: metadata(app)}
	return r.apply(ctx, app, service, func() {
		service.Spec.Selector = labelsOf(app)
		service.Spec.Ports = []corev1.ServicePort{{
			Name:       "http",
			Port:       80,
			Protocol:   corev1.ProtocolTCP,
			TargetPort: intstr.FromInt32(app.Spec.Port),
		}}
	})
}

func (r *reconciler) applyIngress(ctx context.Context, app *App) error {
	ingress := &networkingv1.Ingress{ObjectMeta: metadata(app)}
	return r.apply(ctx, app, ingress, func() {
		ingress.Spec.Rules = []networkingv1.IngressRule{{
			Host: app.Spec.Host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{
					Path:     "/",
					PathType: ptr.To(networkingv1.PathTypePrefix),
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: app.Name,
						Port: networkingv1.ServiceBackendPort{Name: "http"},
					}},
				}},
			}},
		}}
	})
}
